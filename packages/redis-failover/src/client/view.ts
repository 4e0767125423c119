/**
 * A client's view of the primary: what it may rely on, and for how long. This file reads no clock
 * and sends nothing. The caller passes in what it has read, with the time.
 *
 * The rule for the reply to a write. A manager that moves the primary away from a node first
 * revokes the record. It promotes no other node before every view that was confirmed before the
 * revocation is over. (Or the old primary was paused, and all that it had replied to is copied.)
 * 1. The view of the write's own term holds when the reply arrives: acknowledged. No other node can
 *    have been promoted yet. A revocation that was noticed meanwhile changes nothing, because the
 *    manager waits for us.
 * 2. The view is over: the reply is held until a confirmation that was *sent after it arrived* says
 *    that the term is still the same. A term's primary is revoked once, and never restored under
 *    the same number. So it was the primary when the reply arrived.
 * 3. The view is over, and the record shows another term or no primary: it is unknown whether the
 *    write survives.
 */
import type { Instant } from '@incumbent/zookeeper';
import type { Nodes, PrimaryRecord } from '../layout.ts';
import { isMovedByGem } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import { Belief } from './belief.ts';

/** A znode as it was read. */
export interface Seen<Value> {
  readonly value: Value;
  readonly version: number;
  /** Tells a znode from an earlier one at the same path. */
  readonly createdZxid: bigint;
  readonly modifiedZxid: bigint;
}

/**
 * A term: the time in which one node is the primary. Commands and connections belong to one term
 * and never outlive it.
 */
export interface Reign {
  /**
   * The number of the term. It grows with every move. undefined under managers of the Ruby gem,
   * which have no terms.
   */
  readonly term: number | undefined;
  /** The node as `host:port`. */
  readonly primary: NodeAddress;
}

export type Verdict = 'acknowledged' | 'held' | 'changed';

/** The versions that one transaction has to check in order to confirm a term. */
export interface Proposal {
  readonly reign: Reign;
  readonly viewMs: number;
  /** undefined: there is no record, so there is nothing to check. */
  readonly recordVersion: number | undefined;
  readonly nodesVersion: number;
}

/** The roles of the nodes, as ZooKeeper says. Nodes are `host:port`. */
export interface Picture {
  /** undefined while the primary moves, and before the first one. */
  readonly primary: NodeAddress | undefined;
  /** The replicas that can be read from. While the primary moves: those that were last known. */
  readonly replicas: readonly NodeAddress[];
  /** Nodes of the set that are down, or cannot be read from. */
  readonly unavailable: readonly NodeAddress[];
  /**
   * The term of the primary; while it moves, that of the last one. undefined under managers of the
   * Ruby gem.
   */
  readonly term: number | undefined;
}

/**
 * Rules that a test takes away, to prove what they are good for. `no-reply-rule`: every reply
 * counts. `no-view`: writes go to the last known primary and count, whatever is known.
 */
export type BrokenRule = 'no-reply-rule' | 'no-view';

/**
 * How long a refusal may take after a planned failover. The former primary has held its writes
 * back, and refuses them a moment before or after clients know the next one.
 */
const lateRefusalMs = 300;

class KnownReign implements Reign {
  readonly term: number | undefined;
  readonly primary: NodeAddress;
  readonly key: string;
  readonly belief: Belief = new Belief();
  runId: string | undefined;
  /** The znodes have shown that this term is over. */
  over = false;
  /**
   * The two znodes name different primaries. Only a confirmation proves that both were read at the
   * same time.
   */
  isDoubtful = false;

  constructor(key: string, term: number | undefined, primary: NodeAddress) {
    this.key = key;
    this.term = term;
    this.primary = primary;
  }
}

export interface ViewOptions {
  /** How long a view holds under managers of the Ruby gem, which record no time. */
  readonly rubyViewMs: number;
  /** false: the client uses a view beyond its time, as long as it knows of no other. */
  readonly safeMode: boolean;
  readonly broken?: readonly BrokenRule[] | undefined;
}

export class View {
  readonly #options: ViewOptions;
  /** null: not read yet, or not understood. */
  #record: Seen<PrimaryRecord> | undefined | null = null;
  #nodes: Seen<Nodes> | undefined | null = null;
  /**
   * Kept while the primary moves and there is no `nodes`, because clients go on reading from
   * replicas.
   */
  #lastNodes: Nodes | undefined;
  /** The latest term that was seen; it may be over. */
  #reign: KnownReign | undefined;
  #proposal: Proposal | undefined;
  /** Terms whose view may still hold. Replies of these may count, even if a later term is known. */
  readonly #believed: Set<KnownReign> = new Set();

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  /** Whether both znodes have been read at least once. */
  get complete(): boolean {
    return this.#record !== null && this.#nodes !== null;
  }

  /** The versions to confirm; undefined while the znodes name no primary, or different ones. */
  get proposal(): Proposal | undefined {
    return this.#proposal;
  }

  /** The term that the znodes show; undefined while they show none, or contradict each other. */
  get named(): Reign | undefined {
    const reign = this.#proposal?.reign as KnownReign | undefined;
    return reign?.isDoubtful === true ? undefined : reign;
  }

  get record(): PrimaryRecord | undefined {
    return this.#record?.value;
  }

  /** The process of a term's primary, as the record last said; undefined if it names none. */
  runIdOf(reign: Reign): string | undefined {
    return (reign as KnownReign).runId;
  }

  get nodes(): Nodes | undefined {
    return this.#nodes?.value;
  }

  get picture(): Picture {
    const { slaves = [], unavailable = [] } = this.#lastNodes ?? {};
    // While the primary moves: the last term.
    const term = this.named === undefined ? this.record?.term : this.named.term;
    return { primary: this.named?.primary, replicas: slaves, unavailable, term };
  }

  /**
   * @param seen undefined if there is no such znode; null if it cannot be understood, which says
   *   nothing
   */
  seeRecord(seen: Seen<PrimaryRecord> | undefined | null): void {
    this.#record = seen;
    this.#understand();
  }

  seeNodes(seen: Seen<Nodes> | undefined | null): void {
    this.#nodes = seen;
    this.#lastNodes = seen?.value ?? this.#lastNodes;
    this.#understand();
  }

  /** Takes note of a confirmation by a transaction that was sent at `sentAt`. */
  confirmed({ reign, viewMs }: Proposal, sentAt: Instant): void {
    (reign as KnownReign).isDoubtful = false;
    (reign as KnownReign).belief.extend(sentAt, viewMs);
    this.#believed.add(reign as KnownReign);
  }

  /**
   * Judges by both clocks which views still hold, even of terms that are over. To be called often:
   * a suspended process and a clock that is set back must not both happen between two calls.
   * @returns whether any view holds
   */
  look(now: Instant): boolean {
    for (const reign of this.#believed) {
      if (reign.belief.remainingMs(now) <= 0) this.#believed.delete(reign);
    }
    return this.#believed.size > 0;
  }

  /** Whether the view of the present term holds. */
  believes(now: Instant): boolean {
    this.look(now);
    const { reign } = this.#proposal ?? {};
    return reign !== undefined && (reign as KnownReign).belief.remainingMs(now) > 0;
  }

  /** The term in which a write may be sent now. */
  usable(now: Instant): Reign | undefined {
    if (this.#isBroken('no-view')) return this.#reign;
    return this.believes(now) || !this.#options.safeMode ? this.named : undefined;
  }

  /**
   * Judges a reply at the moment when it arrives.
   * @param connectedMs when the reply's connection was ready, on the monotonic clock. A node that
   *   was demoted may be started anew as a primary before a view of it is over. So the view counts
   *   only if it was confirmed after the connection was made
   */
  judgeArrival(asked: Reign, arrivedAt: Instant, connectedMs: number): Verdict {
    if (this.#isBroken('no-view') || this.#isBroken('no-reply-rule')) return 'acknowledged';
    const { belief, term, over } = asked as KnownReign;
    // Managers of the gem do not wait for views, and our managers that take over from them do not
    // know of such a view.
    const counts = belief.sentMs > connectedMs && !(over && term === undefined);
    if (counts && belief.remainingMs(arrivedAt) > 0) return 'acknowledged';
    return this.judgeHeld(asked, arrivedAt);
  }

  /**
   * Whether no reply to a command of that term can count any more. That is so if the view of
   * another primary holds, and the view of this term has been over for a while. A refusal by the
   * old primary would have arrived by then.
   */
  isHopeless(asked: Reign, now: Instant): boolean {
    const { belief, over, term } = asked as KnownReign;
    if (!over || !this.believes(now)) return false;
    return term === undefined || belief.remainingMs(now) <= -lateRefusalMs;
  }

  /** Judges a reply that is held. To be called again after every change. */
  judgeHeld(asked: Reign, arrivedAt: Instant): Verdict {
    const { belief, over } = asked as KnownReign;
    if (belief.sentMs > arrivedAt.monotonicMs) return 'acknowledged';
    if (over) return 'changed';
    return this.#options.safeMode ? 'held' : 'acknowledged';
  }

  #isBroken(rule: BrokenRule): boolean {
    return this.#options.broken?.includes(rule) === true;
  }

  #understand(): void {
    if (this.#record === null || this.#nodes === null) {
      this.#proposal = undefined;
      return;
    }
    const seen = this.#record === undefined ? this.#rubyReign() : this.#recordedReign(this.#record);
    const last = this.#reign;
    if (seen === undefined) {
      this.#proposal = undefined;
      if (last !== undefined && this.#isOver(last)) last.over = true;
      return;
    }
    const { key, term, primary, viewMs, recordVersion, nodesVersion } = seen;
    if (last?.key !== key || last.over) {
      if (last !== undefined) last.over = true;
      this.#reign = new KnownReign(key, term, primary);
      this.#reign.isDoubtful = term === undefined && recordVersion !== undefined;
    }
    const reign = this.#reign as KnownReign;
    reign.runId = seen.runId;
    this.#proposal = { reign, viewMs, recordVersion, nodesVersion };
  }

  #recordedReign(record: Seen<PrimaryRecord>) {
    const nodes = this.#nodes;
    const { value, version } = record;
    const { term, primary, viewMs } = value;
    const runId = value.runId ?? undefined;
    const master = nodes?.value.master ?? null;
    if (nodes === undefined || nodes === null || master === null) return undefined;
    // Managers of the gem lead after ours. Or the news of the record is still on its way, and then
    // these versions cannot be confirmed.
    if (primary === null || isMovedByGem({ record, nodes })) {
      const ruby = this.#rubyReign();
      return ruby && { ...ruby, key: `${ruby.key} after ${term}`, recordVersion: version };
    }
    const key = `${term} ${primary}`;
    return {
      key,
      term,
      primary,
      runId,
      viewMs,
      recordVersion: version,
      nodesVersion: nodes.version,
    };
  }

  #rubyReign() {
    const nodes = this.#nodes;
    const primary = nodes?.value.master ?? null;
    if (nodes === undefined || nodes === null || primary === null) return undefined;
    const { rubyViewMs: viewMs } = this.#options;
    const key = `created ${nodes.createdZxid} ${primary}`;
    const recordVersion: number | undefined = undefined;
    const runId: string | undefined = undefined;
    const term: number | undefined = undefined;
    return { key, term, primary, runId, viewMs, recordVersion, nodesVersion: nodes.version };
  }

  /**
   * Whether a term is over. If only `nodes` is gone, that may be one half of a change, so the
   * record decides if there is one.
   */
  #isOver({ term, primary }: KnownReign): boolean {
    const record = this.#record?.value;
    if (record === undefined || term === undefined) return true;
    return record.term !== term || record.primary !== primary;
  }
}
