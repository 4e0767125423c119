import type { NodeAddress } from '../node-address.ts';
import { formatNodeAddress } from '../node-address.ts';
import { NodeCommandError, NodeRefusedError } from './errors.ts';

/** A node's own report on itself at one moment. */
export interface Replication {
  /** Names the process: another one after every start. */
  readonly runId: string;
  readonly role: 'primary' | 'replica';
  /** Names the stream of writes in which `offset` counts. */
  readonly replicationId: string;
  /** The stream that this one continued, when this node or its primary was promoted. */
  readonly formerReplicationId: string | undefined;
  /**
   * Up to where `formerReplicationId` is the same stream (the first offset that is not); -1 without
   * one.
   */
  readonly formerOffset: number;
  /** `master_repl_offset`: how far the node's data are in the stream `replicationId`. */
  readonly offset: number;
  /**
   * `slave_repl_offset` of a replica, undefined on a primary. 1: Redis has emptied it for a copy,
   * or its process has just started without a position. It does not tell how far the data are:
   * Redis forgets it before the data.
   */
  readonly linkOffset: number | undefined;
  /** Without a backlog the offset of a primary stands still, whatever is written. */
  readonly hasBacklog: boolean;
  /** Whether it has no keys in any database, and no functions. */
  readonly isEmpty: boolean;
  /** false: no write has changed the data of this process since its start. */
  readonly hasWritten: boolean;
  /** Whether a manager has set it aside: it takes no writes, and copies no node. */
  readonly isAside: boolean;
  /** The node that the replica was told to follow; undefined on a primary. */
  readonly primary: NodeAddress | undefined;
  /** Whether a replica is connected to its primary; true on a primary. */
  readonly linkUp: boolean;
  /**
   * Whether it takes a full copy from its primary. It keeps its own data until it loads that copy.
   */
  readonly syncing: boolean;
  /**
   * The part of that copy that has arrived, in percent; undefined if the primary does not say how
   * much it is.
   */
  readonly copiedPercent: number | undefined;
  /**
   * Whether it reads its data, from its disk or from a copy. It refuses nearly all commands then.
   */
  readonly loading: boolean;
  /** Whether it loads a copy. Nothing is left of the data that it had before. */
  readonly loadsCopy: boolean;
  /** Whether a replica answers reads while its link is down. true if CONFIG GET is refused. */
  readonly servesStaleReads: boolean;
  /** `replica-priority`. 0: never promote it. */
  readonly priority: number;
  readonly connectedReplicas: number;
  /** `min-replicas-to-write`. 0 if CONFIG GET is refused. */
  readonly minReplicasToWrite: number;
}

/**
 * The address that a node follows when it is set aside. Nothing listens there, so the node copies
 * nothing. Its link is down, so it refuses every replica of its own.
 */
export const asideAddress: NodeAddress = '127.0.0.1:1';

/**
 * The address that a replica follows for a moment when it is held: nothing more arrives there, and
 * its data still count.
 */
export const heldAddress: NodeAddress = '127.0.0.1:2';

/** Sends one command and resolves with its answer. */
export type Ask = (parts: readonly string[]) => Promise<unknown>;

/** @returns rejects with NodeRefusedError for a node that cannot be moved, such as a Sentinel */
export async function readReplication(address: NodeAddress, ask: Ask): Promise<Replication> {
  // One INFO, so that all fields are of the same moment. Without sections, because several at once
  // are known only since 7.0.
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

/**
 * Whether the node has no data. A keyspace section without databases says that there are no keys. A
 * missing section says nothing.
 */
function isEmpty(info: string, fields: ReadonlyMap<string, string>): boolean {
  if (!/^# Keyspace\r?$/m.test(info)) return false;
  const hasKeys = [...fields.keys()].some((name) => /^db\d+$/.test(name));
  // Functions came with 7.0.
  return !hasKeys && (fields.get('number_of_functions') ?? '0') === '0';
}

/** Whether data were changed since the process started. true also if that cannot be known. */
function hasWritten(fields: ReadonlyMap<string, string>): boolean {
  const count = (name: string) => Number(fields.get(name) ?? Number.NaN);
  const changes = count('rdb_changes_since_last_save');
  // Redis 7.0 counts its saves, but CONFIG RESETSTAT sets the count to 0.
  if (fields.has('rdb_saves') && count('rdb_saves') !== 0) return true;
  const startedAt = Math.floor(count('server_time_usec') / 1e6) - count('uptime_in_seconds');
  // Redis counts its start as a save. Both clocks count whole seconds.
  const neverSaved = count('rdb_last_save_time') <= startedAt + 1;
  return !(changes === 0 && neverSaved);
}

function copiedPercent(fields: ReadonlyMap<string, string>): number | undefined {
  const total = Number(fields.get('master_sync_total_bytes') ?? 0);
  const left = Number(fields.get('master_sync_left_bytes') ?? -1);
  const read = Number(fields.get('master_sync_read_bytes') ?? total - left);
  return total > 0 && read >= 0 && read <= total ? Math.floor((100 * read) / total) : undefined;
}

/** undefined if the setting is unknown, or CONFIG is renamed or forbidden, as on hosted servers. */
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
