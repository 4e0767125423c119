/**
 * The judges of a set of one primary and its replicas. They know nothing of how a failover is done.
 * They see which writes were acknowledged to clients, which Redis executed them and when, the
 * record, and each change of a Redis's role.
 */
import type { Acknowledged, WriteLine } from './messages.ts';

/** The acknowledged writes of a term. */
export interface TermWrites {
  readonly term: number;
  readonly port: number;
  readonly firstUs: number;
  readonly lastUs: number;
  readonly writes: number;
}

/** The primary that the record of a term named; undefined where nobody saw it. */
export type PrimaryOf = (term: number) => string | undefined;

/** Never two primaries that clients reach. */
export class TermJudge {
  readonly #terms = new Map<number, TermWrites>();
  readonly #found = new Findings();
  /** Their terms may not have been seen yet. */
  #waiting: { readonly what: string; readonly outcome: Acknowledged }[] = [];

  get terms(): readonly TermWrites[] {
    return [...this.#terms.values()].sort((a, b) => a.term - b.term);
  }

  add({ client, number, outcome }: WriteLine): void {
    if (outcome.kind !== 'acknowledged') return;
    const what = `write ${number} of ${client}, executed by ${outcome.port}`;
    if (outcome.again) this.#found.add(`${client} ${number}`, `done once: ${what}, was done twice`);
    this.#waiting.push({ what, outcome });
  }

  /** @returns what was found since */
  findings(primaryOf: PrimaryOf): readonly string[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { what, outcome } of waiting) this.#place(what, outcome, primaryOf);
    this.#compare();
    return this.#found.take();
  }

  /**
   * A write that was under way while the primary moved may belong to the term before or to the term
   * after. It belongs to the one whose primary executed it.
   */
  #place(what: string, { port, atUs, fromTerm, toTerm }: Acknowledged, primaryOf: PrimaryOf): void {
    const possible = Array.from({ length: toTerm - fromTerm + 1 }, (_none, i) => toTerm - i);
    const term = possible.find((each) => primaryOf(each)?.endsWith(`:${port}`));
    if (term === undefined) {
      const named = possible.map((each) => `${each} (${primaryOf(each) ?? 'not seen'})`);
      this.#found.add(
        `${port} ${fromTerm} ${toTerm}`,
        `clients go by the record: ${what}, is of no such term: ${named.join(', ') || toTerm}`,
      );
      return;
    }
    const known = this.#terms.get(term);
    this.#terms.set(term, {
      ...{ term, port, writes: (known?.writes ?? 0) + 1 },
      firstUs: Math.min(atUs, known?.firstUs ?? atUs),
      lastUs: Math.max(atUs, known?.lastUs ?? atUs),
    });
  }

  #compare(): void {
    let newest: TermWrites | undefined;
    for (const next of this.terms) {
      if (newest !== undefined && next.firstUs <= newest.lastUs) {
        const overlapMs = (newest.lastUs - next.firstUs) / 1e3;
        this.#found.add(
          `overlap ${newest.term} ${next.term}`,
          `never two primaries: ${newest.port} executed acknowledged writes of term ` +
            `${newest.term} up to ${overlapMs.toFixed(3)} ms after ${next.port} had begun with ` +
            `term ${next.term}`,
        );
      }
      if (newest === undefined || next.lastUs > newest.lastUs) newest = next;
    }
  }
}

/** The parts of the record that are looked at. */
export interface SeenRecord {
  readonly term: number;
  readonly primary: string | null;
  readonly viewMs: number;
  /** Of the manager's term. */
  readonly token: string;
}

/** The record's terms never fall, and each has one primary. */
export class RecordJudge {
  readonly #primaries = new Map<number, string>();
  readonly #found = new Findings();
  #last: SeenRecord | undefined;
  #lastPrimary: string | undefined;

  get last(): SeenRecord | undefined {
    return this.#last;
  }

  /** The primaries that terms from this one on named. */
  namedSince(term: number): readonly string[] {
    return [...this.#primaries].flatMap(([each, primary]) => (each >= term ? [primary] : []));
  }

  /** Also while it moves. */
  get lastPrimary(): string | undefined {
    return this.#lastPrimary;
  }

  primaryOf(term: number): string | undefined {
    return this.#primaries.get(term);
  }

  add(record: SeenRecord | undefined): void {
    const last = this.#last;
    if (record === undefined) {
      if (last !== undefined) this.#found.add('gone', 'the record stays: it is gone');
      return;
    }
    this.#last = record;
    const { term, primary, viewMs } = record;
    if (last !== undefined && term < last.term) {
      this.#found.add(`fell ${term}`, `terms never fall: ${term} came after ${last.term}`);
    }
    if (last !== undefined && viewMs < last.viewMs) {
      this.#found.add('view', `the view is never lowered: ${viewMs} ms after ${last.viewMs} ms`);
    }
    if (last !== undefined && BigInt(record.token) < BigInt(last.token)) {
      this.#found.add(
        `token ${record.token} ${last.token}`,
        `one manager: the record was written with token ${record.token} after ${last.token}`,
      );
    }
    if (primary === null) return;
    this.#lastPrimary = primary;
    const known = this.#primaries.get(term);
    this.#primaries.set(term, known ?? primary);
    if (known !== undefined && known !== primary) {
      this.#found.add(
        `two ${term}`,
        `one primary a term: the record of term ${term} named ${known}, then ${primary}`,
      );
    }
  }

  findings(): readonly string[] {
    return this.#found.take();
  }
}

/** Over a connection that says whose it is, a manager told a Redis to follow, or to be a primary. */
export interface RoleChange {
  readonly port: number;
  readonly token: bigint;
  readonly manager: string;
  readonly command: string;
}

/** On each Redis, what a manager of an older term was about to do does not happen behind a newer one. */
export class RoleJudge {
  readonly #newest = new Map<number, RoleChange>();
  readonly #found = new Findings();

  /** In the order in which that Redis executed them. */
  add(change: RoleChange): void {
    const newest = this.#newest.get(change.port);
    if (newest === undefined || change.token >= newest.token) {
      this.#newest.set(change.port, change);
      return;
    }
    this.#found.add(
      `${change.port} ${change.token}`,
      `one manager: on ${change.port} "${change.command}" of ${change.manager} (token ` +
        `${change.token}) was executed behind "${newest.command}" of ${newest.manager} (token ` +
        `${newest.token})`,
    );
  }

  findings(): readonly string[] {
    return this.#found.take();
  }
}

/** Each once. */
class Findings {
  readonly #known = new Set<string>();
  #fresh: string[] = [];

  add(key: string, what: string): void {
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.#fresh.push(what);
  }

  take(): readonly string[] {
    const fresh = this.#fresh;
    this.#fresh = [];
    return fresh;
  }
}
