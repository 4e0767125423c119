/**
 * What a client believes of who is primary. No clock is read here and nothing is sent: what was read
 * comes in, with its time.
 *
 * The rule for the reply to a write, and why it holds. Whoever moves the primary away from a node
 * revokes the record first, and promotes nobody before every view that was confirmed before the
 * revocation is over (or the old primary has stood still by command, with all that it had replied to
 * copied).
 * 1. The belief in the write's own term holds when the reply arrives: nobody can have been promoted.
 *    That a revocation has been noticed meanwhile changes nothing: the mover waits for us.
 * 2. It has lapsed: the reply is held until a confirmation that was *sent after it arrived* says
 *    that the term is still the same. A term's primary is revoked once and never restored under the
 *    same number, so at the arrival it was primary too.
 * 3. The record shows another term, or the term's primary revoked, and the belief has lapsed: nobody
 *    knows whether the write survives.
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
  /** Tells a node from one of the same path before it. */
  readonly createdZxid: bigint;
  readonly modifiedZxid: bigint;
}

/** One node's time as primary. Commands and connections belong to one and never outlive it. */
export interface Reign {
  /** undefined where Ruby managers lead: they do not count. */
  readonly term: number | undefined;
  readonly primary: NodeAddress;
}

export type Verdict = 'acknowledged' | 'held' | 'changed';

/** What has to be checked in one transaction to confirm a reign. */
export interface Proposal {
  readonly reign: Reign;
  readonly viewMs: number;
  /** undefined: there is none, so there is nothing to check. */
  readonly recordVersion: number | undefined;
  readonly nodesVersion: number;
}

export interface Picture {
  /** undefined while it moves. */
  readonly primary: NodeAddress | undefined;
  /** While the primary moves: those that were known last. */
  readonly replicas: readonly NodeAddress[];
  readonly unavailable: readonly NodeAddress[];
  /** undefined under Ruby managers. */
  readonly term: number | undefined;
}

/**
 * Rules that a test takes away, to see what they are good for. `no-reply-rule`: every reply counts.
 * `no-view`: the primary that was known last is written to, and counts, whatever is known.
 */
export type BrokenRule = 'no-reply-rule' | 'no-view';

/** A primary that is demoted as planned refuses what it has held back, a moment before or after the next is known. */
const lateRefusalMs = 300;

class KnownReign implements Reign {
  readonly term: number | undefined;
  readonly primary: NodeAddress;
  readonly key: string;
  readonly belief: Belief = new Belief();
  runId: string | undefined;
  /** The znodes have shown that it is over. */
  over = false;
  /** The znodes name two primaries: only a confirmation shows that both were read at one time. */
  isDoubtful = false;

  constructor(key: string, term: number | undefined, primary: NodeAddress) {
    this.key = key;
    this.term = term;
    this.primary = primary;
  }
}

export interface ViewOptions {
  /** How long a view holds where no record says it: under Ruby managers. */
  readonly rubyViewMs: number;
  /** false: a view that has lapsed is used as long as nothing else is known. */
  readonly safeMode: boolean;
  readonly broken?: readonly BrokenRule[] | undefined;
}

export class View {
  readonly #options: ViewOptions;
  /** null: not read yet, or what it holds cannot be understood. */
  #record: Seen<PrimaryRecord> | undefined | null = null;
  #nodes: Seen<Nodes> | undefined | null = null;
  /** While the primary moves there are none: replicas go on being read from. */
  #lastNodes: Nodes | undefined;
  /** The latest that was seen; it may be over. */
  #reign: KnownReign | undefined;
  #proposal: Proposal | undefined;
  /** Replies to what was sent in these may count by time, also where another reign is known by now. */
  readonly #believed: Set<KnownReign> = new Set();

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  /** Both znodes have been read at least once. */
  get complete(): boolean {
    return this.#record !== null && this.#nodes !== null;
  }

  /** What to confirm; undefined while the znodes name no primary, or not the same. */
  get proposal(): Proposal | undefined {
    return this.#proposal;
  }

  /** What the znodes name; undefined while they name nobody, or it is in doubt. */
  get named(): Reign | undefined {
    const reign = this.#proposal?.reign as KnownReign | undefined;
    return reign?.isDoubtful === true ? undefined : reign;
  }

  get record(): PrimaryRecord | undefined {
    return this.#record?.value;
  }

  /** The process that the primary of a reign ran in, as the record said last; undefined: it names none. */
  runIdOf(reign: Reign): string | undefined {
    return (reign as KnownReign).runId;
  }

  get nodes(): Nodes | undefined {
    return this.#nodes?.value;
  }

  get picture(): Picture {
    const { slaves = [], unavailable = [] } = this.#lastNodes ?? {};
    // While it moves it is that of before.
    const term = this.named === undefined ? this.record?.term : this.named.term;
    return { primary: this.named?.primary, replicas: slaves, unavailable, term };
  }

  /** @param seen undefined: there is no such znode; null: it cannot be read, which says nothing */
  seeRecord(seen: Seen<PrimaryRecord> | undefined | null): void {
    this.#record = seen;
    this.#understand();
  }

  seeNodes(seen: Seen<Nodes> | undefined | null): void {
    this.#nodes = seen;
    this.#lastNodes = seen?.value ?? this.#lastNodes;
    this.#understand();
  }

  /** What was proposed has been confirmed by a transaction that was sent at `sentAt`. */
  confirmed({ reign, viewMs }: Proposal, sentAt: Instant): void {
    (reign as KnownReign).isDoubtful = false;
    (reign as KnownReign).belief.extend(sentAt, viewMs);
    this.#believed.add(reign as KnownReign);
  }

  /**
   * Judges by both clocks what is believed, also of reigns that are known to be over. To be called often: a
   * suspension and a clock that is set back must not both come between two looks.
   * @returns whether something is believed
   */
  look(now: Instant): boolean {
    for (const reign of this.#believed) {
      if (reign.belief.remainingMs(now) <= 0) this.#believed.delete(reign);
    }
    return this.#believed.size > 0;
  }

  /** What the znodes say now has been confirmed, not too long ago. */
  believes(now: Instant): boolean {
    this.look(now);
    const { reign } = this.#proposal ?? {};
    return reign !== undefined && (reign as KnownReign).belief.remainingMs(now) > 0;
  }

  /** The reign that a write may be sent in now. */
  usable(now: Instant): Reign | undefined {
    if (this.#isBroken('no-view')) return this.#reign;
    return this.believes(now) || !this.#options.safeMode ? this.named : undefined;
  }

  /**
   * To be asked in the moment in which a reply arrives.
   * @param connectedMs when its connection had been made, on the monotonic clock. A node that is
   *   demoted may be started anew as a primary before a view of it is over; who connects to it then has
   *   to have asked after that.
   */
  judgeArrival(asked: Reign, arrivedAt: Instant, connectedMs: number): Verdict {
    if (this.#isBroken('no-view') || this.#isBroken('no-reply-rule')) return 'acknowledged';
    const { belief, term, over } = asked as KnownReign;
    // Ruby managers wait for nobody, and ours who take over from them know nothing of such a view.
    const counts = belief.sentMs > connectedMs && !(over && term === undefined);
    if (counts && belief.remainingMs(arrivedAt) > 0) return 'acknowledged';
    return this.judgeHeld(asked, arrivedAt);
  }

  /**
   * Whether no reply to what was sent in a reign can count any more: another primary is believed in, and
   * the belief in the reign has been over for so long that a refusal by the old one would be here.
   */
  isHopeless(asked: Reign, now: Instant): boolean {
    const { belief, over, term } = asked as KnownReign;
    if (!over || !this.believes(now)) return false;
    return term === undefined || belief.remainingMs(now) <= -lateRefusalMs;
  }

  /** Of a reply that was held: to be asked again after every change. */
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
    // After ours had gone; or the news of the record is still on its way, and nobody confirms these versions.
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

  /** That `nodes` alone is gone may be half of what is going on: the record decides, where there is one. */
  #isOver({ term, primary }: KnownReign): boolean {
    const record = this.#record?.value;
    if (record === undefined || term === undefined) return true;
    return record.term !== term || record.primary !== primary;
  }
}
