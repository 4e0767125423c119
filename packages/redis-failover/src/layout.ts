/**
 * The znodes below the root. `nodes`, `manager_node_state` and `manual_failover` are those of the
 * Ruby gem redis_failover, byte for byte, so that its clients and ours can be mixed. Our own znodes
 * stand beside them, where the gem does not look: `primary`, `position`, `failover_requests`,
 * `managers`.
 */
import type { NodeAddress } from './node-address.ts';
import { rubyFloat } from './ruby-float.ts';

export interface Paths {
  readonly root: string;
  /** Persistent, JSON of `Nodes`. The gem's clients follow it. Absent while the primary moves. */
  readonly nodes: string;
  /** Holds one ephemeral child for each manager: JSON of `Report`. */
  readonly reports: string;
  /** The gem's clients write it: `host:port`, or `ANY_SLAVE`. */
  readonly manualFailover: string;
  /** Ours. Persistent, JSON of `PrimaryRecord`. */
  readonly primary: string;
  /** Ours. Persistent, JSON of `PositionRecord`. It changes often, and no client reads it. */
  readonly position: string;
  /** Ours. Holds one ephemeral sequential child for each request: JSON of `FailoverRequest`. */
  readonly requests: string;
  /** The name of the managers' election, below `root`. */
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

/** The roles of the nodes, as the gem's clients read them. */
export interface Nodes {
  readonly master: NodeAddress | null;
  readonly slaves: readonly NodeAddress[];
  readonly unavailable: readonly NodeAddress[];
}

/** The two znodes that name the primary. The zxids tell which of them was written last. */
export interface Named {
  readonly record: { readonly value: PrimaryRecord; readonly modifiedZxid: bigint };
  readonly nodes: { readonly value: Nodes; readonly createdZxid: bigint };
}

/**
 * Whether a manager of the gem has moved the primary since our managers last wrote, even if it
 * chose the same node again. At each move the gem deletes `nodes` and creates it anew. Our managers
 * write `primary` in the same transaction in which they create `nodes`.
 */
export function isMovedByGem({ record, nodes }: Named): boolean {
  const { master } = nodes.value;
  if (master === null) return false;
  return master !== record.value.primary || nodes.createdZxid > record.modifiedZxid;
}

/** The nodes as one manager sees them. */
export interface Report {
  /** Latency in seconds. */
  readonly available: Readonly<Record<NodeAddress, number>>;
  readonly unavailable: readonly NodeAddress[];
}

/**
 * The primary and its term. Never deleted. A client relies on it for `viewMs` from the moment it
 * sent the request that confirmed it. So a manager that moves the primary away from a silent node
 * first writes `primary: null`, and then waits until those views are over.
 */
export interface PrimaryRecord {
  /** The number of the primary: one more at each move. It never falls. */
  readonly term: number;
  /** null while the primary moves: no client may write then. */
  readonly primary: NodeAddress | null;
  /**
   * The last primary. It tells the next manager where a move began that its predecessor did not
   * finish.
   */
  readonly former: NodeAddress | null;
  /**
   * The replication ID of the primary's data (`master_replid`); null when not known. A primary that
   * comes back with another ID has lost data. A node with another ID has other data.
   */
  readonly replicationId: string | null;
  /**
   * The streams of writes that the primary's data include, each with the offset up to which they
   * do. The oldest stream comes first, the primary's own last. Absent in a record that version
   * 0.1.0 wrote.
   */
  readonly lineage?: Readonly<Record<string, number>>;
  /**
   * While the primary moves: the lineage of a node that was promoted and is not published yet.
   * Until then `lineage` and `replicationId` stay those of the last term, because they tell which
   * nodes have data of that term. Absent: no node was promoted.
   */
  readonly promoting?: Readonly<Record<string, number>> | undefined;
  /**
   * Nodes, each with its process (`run_id`), that an operator lets copy this term's primary and so
   * lose the data that only they have. Absent: none.
   */
  readonly discarded?: Readonly<Record<NodeAddress, string>> | undefined;
  /** The primary's process (`run_id`). Only another process can have lost data. */
  readonly runId: string | null;
  /**
   * True for a while after managers of the gem led: their clients may still go by what they
   * published.
   */
  readonly gemViews: boolean;
  readonly viewMs: number;
  /** The manager that wrote this, and the fencing token of its election term. */
  readonly manager: string;
  readonly token: string;
  /**
   * The zxid (decimal) of the last write of `manual_failover` that was handled. It keeps a request
   * that came while no manager led from being lost, and from being carried out twice.
   */
  readonly manualSeen: string;
}

/** The position of the primary in its stream of writes when the elected manager last looked. */
export interface PositionRecord {
  /** `master_replid` */
  readonly stream: string;
  readonly offset: number;
}

/**
 * `node`: the node to promote; null for the best replica. The znode is ephemeral, so the request of
 * a client that died is not carried out an hour later.
 */
export interface FailoverRequest {
  readonly node: NodeAddress | null;
  /**
   * Absent: a failover. Otherwise an operator's decision about a node that is set aside: `keep` its
   * data, or `discard` them. Managers of version 0.1.0 cannot read such a request, and skip it.
   */
  readonly action?: 'keep' | 'discard' | undefined;
  readonly requestedBy: string;
  /**
   * The requester waits this long for a node that still copies, and reads `progress`. Absent in
   * requests of version 0.1.0: a manager writes nothing into those before their outcome.
   */
  readonly waitMs?: number | undefined;
  /** The reason why the manager still waits, in words. */
  readonly progress?: string | undefined;
  /** Absent until a manager has handled the request. */
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

/** @throws LayoutError, with `path`, if the text is no such JSON */
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

/** A znode holds something else than this layout says. Nothing was changed. */
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
