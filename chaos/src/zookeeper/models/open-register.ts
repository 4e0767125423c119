import type { Fate } from '../outcome.ts';
import type { Problem } from './verdict.ts';

interface Doubt {
  readonly n: number;
  readonly connection: number;
}

/**
 * A node that one client writes with numbers that rise, many at a time and demanding no version.
 * ZooKeeper applies the writes of a connection in their order. But a write in doubt, of a
 * connection that is gone, may land when others have been acknowledged on the next.
 */
export class OpenRegister {
  #attempts = 0;
  /** The state at the last look. */
  #base = { n: 0, version: 0 };
  #last = { n: 0, version: 0, connection: 0 };
  #done = 0;
  #doubts: Doubt[] = [];
  /** Of the time before the last look: they had every chance, and may only have been late. */
  #oldDoubts: Doubt[] = [];

  next(): number {
    this.#attempts += 1;
    return this.#attempts;
  }

  /** @param connection the number of connections so far */
  settled(n: number, fate: Fate, connection: number, version = 0): Problem[] {
    if (fate === 'in doubt') this.#doubts.push({ n, connection });
    if (fate !== 'done') return [];
    this.#done += 1;
    const { n: before, version: behind } = this.#last;
    this.#last = { n, version, connection };
    if (version > behind && n > before) return [];
    return [
      {
        guarantee: 'order',
        what: `write ${n} gave version ${version} after write ${before} gave ${behind}`,
      },
    ];
  }

  observed(n: number, version: number): Problem[] {
    const problems: Problem[] = [];
    const doubts = [...this.#oldDoubts, ...this.#doubts];
    const applied = version - this.#base.version;
    const latest = this.#done === 0 ? this.#base.n : this.#last.n;
    if (applied < this.#done) {
      const what = `${this.#done} writes were acknowledged, ${applied} are applied`;
      problems.push({ guarantee: 'kept', what });
    }
    if (applied > this.#done + doubts.length) {
      const what = `${applied} writes are applied; ${this.#done} were acknowledged and ${doubts.length} are in doubt`;
      problems.push({ guarantee: 'refused', what });
    }
    const mayBe =
      n === latest || doubts.some((doubt) => doubt.n === n && (n > latest || this.#isOlder(doubt)));
    if (!mayBe) {
      const what = `write ${n} is there, ${latest} was acknowledged, and ${n} is not in doubt`;
      problems.push({ guarantee: n > latest ? 'refused' : 'kept', what });
    }
    this.#base = { n, version };
    this.#last = { ...this.#last, n: Math.max(n, latest), version };
    this.#done = 0;
    this.#oldDoubts = this.#doubts;
    this.#doubts = [];
    return problems;
  }

  #isOlder({ connection }: Doubt): boolean {
    return this.#oldDoubts.length > 0 || connection < this.#last.connection;
  }
}
