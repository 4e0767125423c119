import type { NodeAddress } from '../node-address.ts';
import { formatNodeAddress } from '../node-address.ts';
import { NodeCommandError, NodeRefusedError } from './errors.ts';

/** What a node says of itself at one moment. */
export interface Replication {
  /** Another one after every start of the process. */
  readonly runId: string;
  readonly role: 'primary' | 'replica';
  /** Names the history of writes that `offset` counts in. */
  readonly replicationId: string;
  /** The history that this one went on from, at the promotion of this node or of its primary. */
  readonly formerReplicationId: string | undefined;
  /** Up to where `formerReplicationId` is the same history; -1 without one. */
  readonly formerOffset: number;
  /** `master_repl_offset`: how far its data are in the stream that `replicationId` names. */
  readonly offset: number;
  /**
   * `slave_repl_offset` of a replica, undefined on a primary. 1: Redis has emptied it for a copy, or its
   * process has just started without a position. It is no position: Redis forgets it before the data.
   */
  readonly linkOffset: number | undefined;
  /** Without a backlog the offset of a primary stands still, whatever is written. */
  readonly hasBacklog: boolean;
  /** It has no keys in any database, and no functions. */
  readonly isEmpty: boolean;
  /** False: no write has changed the data of this process since its start. */
  readonly hasWritten: boolean;
  /** A manager has set it aside: it takes no writes, and copies nobody. */
  readonly isAside: boolean;
  /** As the replica was told; undefined on a primary. */
  readonly primary: NodeAddress | undefined;
  /** A replica's connection to its primary; true on a primary. */
  readonly linkUp: boolean;
  /** It takes a whole copy from its primary. It has its own data until it loads what it has got. */
  readonly syncing: boolean;
  /** How much of that copy has arrived, in percent; undefined where the primary does not say how much it is. */
  readonly copiedPercent: number | undefined;
  /** It reads its data, from its disk or from such a copy, and refuses nearly all commands. */
  readonly loading: boolean;
  /** It loads what it has copied: of what it had before nothing is left. */
  readonly loadsCopy: boolean;
  /** Whether a replica answers reads while its link is down. True where CONFIG GET is refused. */
  readonly servesStaleReads: boolean;
  /** `replica-priority`: 0 is never to be promoted. */
  readonly priority: number;
  readonly connectedReplicas: number;
  /** `min-replicas-to-write`. 0 where CONFIG GET is refused. */
  readonly minReplicasToWrite: number;
}

/**
 * Whom a node follows that is set aside. Nobody listens there, so it copies nothing; and it refuses
 * every replica of its own, for its link is down.
 */
export const asideAddress: NodeAddress = '127.0.0.1:1';

/** Whom a replica is told to follow for a moment, so that nothing more arrives there: its data count. */
export const heldAddress: NodeAddress = '127.0.0.1:2';

/** Sends one command and gives its answer. */
export type Ask = (parts: readonly string[]) => Promise<unknown>;

/** @returns rejects NodeRefusedError for what is no node that can be moved, such as a Sentinel */
export async function readReplication(address: NodeAddress, ask: Ask): Promise<Replication> {
  // In one INFO all belongs together. Without sections: several at once are known since 7.0 only.
  const [info, servesStaleReads, minReplicasToWrite] = await Promise.all([
    ask(['INFO']),
    setting(ask, 'replica-serve-stale-data'),
    setting(ask, 'min-replicas-to-write'),
  ]);
  const fields = parseInfo(String(info));
  checkMode(address, fields);
  return {
    ...replicationOf(fields),
    isEmpty: isEmpty(String(info), fields),
    servesStaleReads: servesStaleReads !== 'no',
    minReplicasToWrite: Number(minReplicasToWrite ?? 0),
  };
}

/** The lines `name:value` of an INFO. */
export function parseInfo(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0 && !line.startsWith('#')) {
      fields.set(line.slice(0, colon), line.slice(colon + 1));
    }
  }
  return fields;
}

function replicationOf(
  fields: ReadonlyMap<string, string>,
): Omit<Replication, 'servesStaleReads' | 'minReplicasToWrite' | 'isEmpty'> {
  const text = (name: string) => fields.get(name) ?? '';
  const count = (name: string, absent: number) => Number(fields.get(name) ?? absent);
  const role = text('role') === 'master' ? 'primary' : 'replica';
  const former = text('master_replid2');
  const primary =
    role === 'primary'
      ? undefined
      : formatNodeAddress({ host: text('master_host'), port: count('master_port', 0) });
  const linkOffset = role === 'primary' ? undefined : count('slave_repl_offset', 0);
  const syncing = text('master_sync_in_progress') === '1';
  return {
    runId: text('run_id'),
    role,
    replicationId: text('master_replid'),
    formerReplicationId: /^0*$/.test(former) ? undefined : former,
    formerOffset: count('second_repl_offset', -1),
    offset: count('master_repl_offset', 0),
    linkOffset,
    hasBacklog: text('repl_backlog_active') === '1',
    hasWritten: hasWritten(fields),
    isAside: primary === asideAddress,
    primary,
    linkUp: role === 'primary' || text('master_link_status') === 'up',
    syncing,
    copiedPercent: syncing ? copiedPercent(fields) : undefined,
    loading: text('loading') === '1' || text('async_loading') === '1',
    loadsCopy: text('loading') === '1' && syncing && linkOffset === 1,
    priority: count('slave_priority', 100),
    connectedReplicas: count('connected_slaves', 0),
  };
}

/** A section without databases says that there are no keys; a missing section says nothing. */
function isEmpty(info: string, fields: ReadonlyMap<string, string>): boolean {
  if (!/^# Keyspace\r?$/m.test(info)) return false;
  const hasKeys = [...fields.keys()].some((name) => /^db\d+$/.test(name));
  // Functions came with 7.0.
  return !hasKeys && (fields.get('number_of_functions') ?? '0') === '0';
}

/** Whether anything was changed since the process started, or nobody can say. */
function hasWritten(fields: ReadonlyMap<string, string>): boolean {
  const count = (name: string) => Number(fields.get(name) ?? Number.NaN);
  const changes = count('rdb_changes_since_last_save');
  // Redis 7.0 counts its saves, and CONFIG RESETSTAT sets that to 0.
  if (fields.has('rdb_saves') && count('rdb_saves') !== 0) return true;
  const startedAt = Math.floor(count('server_time_usec') / 1e6) - count('uptime_in_seconds');
  // Redis takes its start for a save. Both clocks count whole seconds.
  const neverSaved = count('rdb_last_save_time') <= startedAt + 1;
  return !(changes === 0 && neverSaved);
}

function copiedPercent(fields: ReadonlyMap<string, string>): number | undefined {
  const total = Number(fields.get('master_sync_total_bytes') ?? 0);
  const left = Number(fields.get('master_sync_left_bytes') ?? -1);
  const read = Number(fields.get('master_sync_read_bytes') ?? total - left);
  return total > 0 && read >= 0 && read <= total ? Math.floor((100 * read) / total) : undefined;
}

/** undefined where it is unknown, or CONFIG is renamed or forbidden, as hosted servers have it. */
async function setting(ask: Ask, name: string): Promise<string | undefined> {
  try {
    const pair = await ask(['CONFIG', 'GET', name]);
    return Array.isArray(pair) && typeof pair[1] === 'string' ? pair[1] : undefined;
  } catch (error) {
    if (error instanceof NodeCommandError || error instanceof NodeRefusedError) return undefined;
    throw error;
  }
}

function checkMode(address: NodeAddress, fields: ReadonlyMap<string, string>): void {
  const mode = fields.get('redis_mode') ?? 'standalone';
  if (mode !== 'standalone') {
    const wayOut =
      mode === 'sentinel'
        ? 'it is a Sentinel, not a server with data; take the port of the server'
        : 'it is in cluster mode, and a cluster moves its primaries itself';
    throw new NodeRefusedError(address, wayOut, `redis_mode:${mode}`);
  }
  const role = fields.get('role');
  if (role !== 'master' && role !== 'slave') {
    throw new NodeRefusedError(address, 'its INFO tells no role', `role:${role}`);
  }
}
