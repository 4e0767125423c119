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
  /** Bytes of the stream of writes: what a primary has written, what a replica has applied. */
  readonly offset: number;
  /** As the replica was told; undefined on a primary. */
  readonly primary: NodeAddress | undefined;
  /** A replica's connection to its primary; true on a primary. */
  readonly linkUp: boolean;
  /** It takes a whole copy from its primary, and has no data of its own until that is there. */
  readonly syncing: boolean;
  /** It reads its data from disk, and refuses nearly all commands. */
  readonly loading: boolean;
  /** It writes every command to a file, so a start of its process loses (nearly) nothing. */
  readonly keepsData: boolean;
  /** Whether a replica answers reads while its link is down. True where CONFIG GET is refused. */
  readonly servesStaleReads: boolean;
  /** `replica-priority`: 0 is never to be promoted. */
  readonly priority: number;
  readonly connectedReplicas: number;
  /** `min-replicas-to-write`. 0 where CONFIG GET is refused. */
  readonly minReplicasToWrite: number;
}

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
): Omit<Replication, 'servesStaleReads' | 'minReplicasToWrite'> {
  const text = (name: string) => fields.get(name) ?? '';
  const count = (name: string, absent: number) => Number(fields.get(name) ?? absent);
  const role = text('role') === 'master' ? 'primary' : 'replica';
  const former = text('master_replid2');
  return {
    runId: text('run_id'),
    role,
    replicationId: text('master_replid'),
    formerReplicationId: /^0*$/.test(former) ? undefined : former,
    formerOffset: count('second_repl_offset', -1),
    offset: count(role === 'primary' ? 'master_repl_offset' : 'slave_repl_offset', 0),
    primary:
      role === 'primary'
        ? undefined
        : formatNodeAddress({ host: text('master_host'), port: count('master_port', 0) }),
    linkUp: role === 'primary' || text('master_link_status') === 'up',
    syncing: text('master_sync_in_progress') === '1',
    loading: text('loading') === '1' || text('async_loading') === '1',
    keepsData: text('aof_enabled') === '1',
    priority: count('slave_priority', 100),
    connectedReplicas: count('connected_slaves', 0),
  };
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
