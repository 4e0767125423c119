/**
 * The znodes. `nodes`, `manager_node_state` and `manual_failover` are those of the Ruby gem
 * redis_failover, byte for byte, so that its clients and ours can be mixed. What is ours stands beside
 * them, where the gem does not look: `primary`, `position`, `failover_requests`, `managers`.
 */
import type { NodeAddress } from './node-address.ts';
import { rubyFloat } from './ruby-float.ts';

export interface Paths {
  readonly root: string;
  /** Persistent, JSON of `Nodes`: the gem's clients follow it. Absent while the primary moves. */
  readonly nodes: string;
  /** Holds a child for each manager: ephemeral, JSON of `Report`. */
  readonly reports: string;
  /** Written by the gem's clients: `host:port`, or `ANY_SLAVE`. */
  readonly manualFailover: string;
  /** Persistent, JSON of `PrimaryRecord`: ours. */
  readonly primary: string;
  /** Persistent, JSON of `PositionRecord`: ours. It changes often, and no client reads it. */
  readonly position: string;
  /** Holds an ephemeral sequential child for each request, JSON of `FailoverRequest`: ours. */
  readonly requests: string;
  /** The election's name below `root`: the managers are its candidates. */
  readonly election: string;
}

export const defaultRoot = '/redis_failover';
export const anyReplica = 'ANY_SLAVE';

export function pathsBelow(root: string): Paths {
  return {
    root,
    nodes: `${root}/nodes`,
    reports: `${root}/manager_node_state`,
    manualFailover: `${root}/manual_failover`,
    primary: `${root}/primary`,
    position: `${root}/position`,
    requests: `${root}/failover_requests`,
    election: 'managers',
  };
}

/** What the gem's clients go by. */
export interface Nodes {
  readonly master: NodeAddress | null;
  readonly slaves: readonly NodeAddress[];
  readonly unavailable: readonly NodeAddress[];
}

/** The two znodes that say who is the primary, with what tells which of them was written last. */
export interface Named {
  readonly record: { readonly value: PrimaryRecord; readonly modifiedZxid: bigint };
  readonly nodes: { readonly value: Nodes; readonly createdZxid: bigint };
}

/**
 * Whether a manager of the gem has moved the primary since ours wrote last, also if it is the same node again. At each
 * move the gem deletes `nodes` and creates it anew. When ours create it, they write `primary` in the same
 * transaction.
 */
export function isMovedByGem({ record, nodes }: Named): boolean {
  const { master } = nodes.value;
  if (master === null) return false;
  return master !== record.value.primary || nodes.createdZxid > record.modifiedZxid;
}

/** What one manager sees. */
export interface Report {
  /** Latency in seconds. */
  readonly available: Readonly<Record<NodeAddress, number>>;
  readonly unavailable: readonly NodeAddress[];
}

/**
 * Who is the primary, and since which term. Never deleted. A client believes it for `viewMs` after it
 * sent the request that confirmed it; whoever moves the primary away from a node that cannot be
 * asked waits for that long after it has written `primary: null`.
 */
export interface PrimaryRecord {
  /** Counts the primaries: one more at each move. Never falls. */
  readonly term: number;
  /** null while it moves: nobody writes anywhere. */
  readonly primary: NodeAddress | null;
  /** Who was the primary last, so that a successor of a manager that died in mid-move knows. */
  readonly former: NodeAddress | null;
  /**
   * Of the data of the primary, as Redis names it (`master_replid`); null when not known. A primary
   * that comes back with another one has lost its data, and a node with another one has other data.
   */
  readonly replicationId: string | null;
  /**
   * What the data of the primary include: each stream of writes with the offset up to which they do, the
   * oldest first, its own last. Absent in what version 0.1.0 has written.
   */
  readonly lineage?: Readonly<Record<string, number>>;
  /**
   * While the primary moves: what the data of a node include that was promoted, and is not published. `lineage`
   * and `replicationId` stay those of the last term till then: they say who has anything of it. Absent: none.
   */
  readonly promoting?: Readonly<Record<string, number>> | undefined;
  /**
   * Nodes, each with its process (`run_id`), that an operator lets copy this term's primary, whatever only
   * they have. Absent: none.
   */
  readonly discarded?: Readonly<Record<NodeAddress, string>> | undefined;
  /** Of the process of the primary (`run_id`): only another one can have lost data. */
  readonly runId: string | null;
  /**
   * Managers of the gem have published here a moment ago, and nobody knows what clients still make of
   * that.
   */
  readonly gemViews: boolean;
  readonly viewMs: number;
  /** The manager that wrote this, and the token of its term. */
  readonly manager: string;
  readonly token: string;
  /**
   * The zxid (decimal) of the last write of `manual_failover` that was dealt with, so that a request
   * that came while no manager led is neither lost nor carried out twice.
   */
  readonly manualSeen: string;
}

/** How far the primary was in its stream of writes when the elected manager looked last. */
export interface PositionRecord {
  /** `master_replid` */
  readonly stream: string;
  readonly offset: number;
}

/**
 * `node`: whom to promote; null for the best replica. Ephemeral: whoever asks and dies is not served
 * an hour later.
 */
export interface FailoverRequest {
  readonly node: NodeAddress | null;
  /**
   * Absent: a failover. What an operator says of a node that is set aside: its data are the ones to keep,
   * or may be thrown away. Managers of version 0.1.0 cannot read such a request, and pass it over.
   */
  readonly action?: 'keep' | 'discard' | undefined;
  readonly requestedBy: string;
  /**
   * The asker waits that long for a node that is still copying, and reads `progress`. Absent in requests of
   * version 0.1.0: those are not written to before their outcome.
   */
  readonly waitMs?: number | undefined;
  /** What the manager waits for, in words. */
  readonly progress?: string | undefined;
  /** Absent until a manager has dealt with it. */
  readonly outcome?:
    | { readonly done: true; readonly primary: NodeAddress; readonly term: number }
    | { readonly done: false; readonly error: string };
}

export function encodeNodes({ master, slaves, unavailable }: Nodes): string {
  return JSON.stringify({ master, slaves, unavailable });
}

export function encodeReport({ available, unavailable }: Report): string {
  const latencies = Object.entries(available).map(
    ([node, seconds]) => `${JSON.stringify(node)}:${rubyFloat(seconds)}`,
  );
  return `{"available":{${latencies.join(',')}},"unavailable":${JSON.stringify(unavailable)}}`;
}

export function encodePrimary(record: PrimaryRecord): string {
  const { term, primary, former, replicationId, runId, gemViews, viewMs } = record;
  const { manager, token, manualSeen, lineage, promoting, discarded } = record;
  return JSON.stringify({
    ...{ term, primary, former, replicationId, runId },
    ...(lineage === undefined ? {} : { lineage }),
    ...(promoting === undefined ? {} : { promoting }),
    ...(discarded === undefined ? {} : { discarded }),
    ...(gemViews ? { gemViews } : {}),
    ...{ viewMs, manager, token, manualSeen },
  });
}

export function encodePosition({ stream, offset }: PositionRecord): string {
  return JSON.stringify({ stream, offset });
}

export function encodeRequest(request: FailoverRequest): string {
  const { node, action, requestedBy, waitMs, progress, outcome } = request;
  const more = { requestedBy, waitMs, progress, outcome };
  if (action !== undefined) return JSON.stringify({ action, target: node, ...more });
  return JSON.stringify({ node, ...more });
}

/** @throws LayoutError for what is no such JSON; `path` stands in it */
export function decodeNodes(path: string, text: string): Nodes {
  const { master, slaves, unavailable } = parseObject(path, text);
  const valid = (master === null || isText(master)) && isTexts(slaves) && isTexts(unavailable);
  return valid
    ? { master, slaves, unavailable }
    : refuse(path, text, 'master, slaves, unavailable');
}

/** @throws LayoutError */
export function decodeReport(path: string, text: string): Report {
  const { available, unavailable } = parseObject(path, text);
  const isOfLatencies =
    isMap(available) && Object.values(available).every((each) => typeof each === 'number');
  return isOfLatencies && isTexts(unavailable)
    ? { available: available as Report['available'], unavailable }
    : refuse(path, text, 'available, unavailable');
}

/** @throws LayoutError */
export function decodePrimary(path: string, text: string): PrimaryRecord {
  const record = parseObject(path, text) as Partial<Record<keyof PrimaryRecord, unknown>>;
  const { term, primary, former, viewMs, manager, token, manualSeen } = record;
  const { replicationId = null, runId = null, gemViews = false } = record;
  const { lineage, promoting, discarded } = record;
  const valid =
    isCount(term) &&
    (primary === null || isText(primary)) &&
    (former === null || isText(former)) &&
    (replicationId === null || isText(replicationId)) &&
    (runId === null || isText(runId)) &&
    (lineage === undefined || isOffsets(lineage)) &&
    (promoting === undefined || isOffsets(promoting)) &&
    (discarded === undefined || isMapOfTexts(discarded)) &&
    typeof gemViews === 'boolean' &&
    isCount(viewMs) &&
    isText(manager) &&
    isText(token) &&
    isText(manualSeen);
  return valid
    ? {
        ...{ term, primary, former, replicationId, runId, gemViews, viewMs },
        ...{ manager, token, manualSeen },
        ...(lineage === undefined ? {} : { lineage }),
        ...(promoting === undefined ? {} : { promoting }),
        ...(discarded === undefined ? {} : { discarded }),
      }
    : refuse(path, text, 'term, primary, former, viewMs, manager, token, manualSeen');
}

/** @throws LayoutError */
export function decodePosition(path: string, text: string): PositionRecord {
  const { stream, offset } = parseObject(path, text);
  return isText(stream) && isCount(offset)
    ? { stream, offset }
    : refuse(path, text, 'stream, offset');
}

/** @throws LayoutError */
export function decodeRequest(path: string, text: string): FailoverRequest {
  const { action, target, requestedBy, waitMs, progress, outcome, ...more } = parseObject(
    path,
    text,
  );
  const asked: FailoverRequest['action'] =
    (action === 'keep' || action === 'discard') && isText(target) ? action : undefined;
  const node = asked === undefined ? more['node'] : target;
  if (!(node === null || isText(node)) || !isText(requestedBy)) {
    return refuse(path, text, 'node, requestedBy');
  }
  const request: FailoverRequest = {
    node,
    requestedBy,
    ...(asked === undefined ? {} : { action: asked }),
    ...(isCount(waitMs) ? { waitMs } : {}),
    ...(isText(progress) ? { progress } : {}),
  };
  if (outcome === undefined) return request;
  return { ...request, outcome: outcome as NonNullable<FailoverRequest['outcome']> };
}

/** A znode holds something else than it should. Nothing is changed then. */
export class LayoutError extends Error {
  override readonly name: string = 'LayoutError';
  readonly code = 'LAYOUT';
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

function parseObject(path: string, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refuse(path, text, 'JSON');
  }
  if (typeof value !== 'object' || value === null) return refuse(path, text, 'a JSON object');
  return value as Record<string, unknown>;
}

function refuse(path: string, text: string, wanted: string): never {
  throw new LayoutError(
    path,
    `the node ${path} holds ${JSON.stringify(text.slice(0, 200))}, which is not what redis_failover ` +
      `keeps there (${wanted}): is the root right?`,
  );
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText);
}

function isOffsets(value: unknown): value is Readonly<Record<string, number>> {
  return isMap(value) && Object.values(value).every(Number.isSafeInteger);
}

function isMapOfTexts(value: unknown): value is Readonly<Record<string, string>> {
  return isMap(value) && Object.values(value).every(isText);
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
