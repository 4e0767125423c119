/** The guarantees that hold under all faults of the servers and of the network between. */
export const guarantees = {
  settles: 'every call settles within its bound',
  order: 'replies come in the order of the calls',
  kept: 'no acknowledged write is lost',
  refused: 'what was refused did not happen',
  whole: 'transactions are applied whole or not at all',
  once: 'a protected create makes one node',
  owner: 'a session owns what was made in it, and nothing else',
  forward: 'lastZxid never goes back',
  expired: 'expired is told within the timeout after the last acknowledged sending',
  watched: 'one-shot watches tell of every change',
  followed: 'followed nodes are seen in order, and the last value of them',
  mirrored: 'recursive watches tell of every change, or of a gap',
  confirmed: 'a confirmation is as old as it says',
  back: 'everybody is connected again when the faults are over',
  counters: 'counters add up',
  memory: 'memory is flat',
  handles: 'no handle or timer is left behind',
  quiet: 'nothing is thrown, rejected or warned of in the background',
  errors: 'calls fail with errors that say what happened',
} as const;

export type Guarantee = keyof typeof guarantees;
const names = Object.keys(guarantees) as readonly Guarantee[];

/** Of one guarantee. */
const mostShown = 4;

/** Counts how often each guarantee was put to the test, and reports what broke it. */
export class Findings {
  readonly #checks = new Map<Guarantee, number>();
  readonly #violations = new Map<Guarantee, number>();
  readonly #say: (line: string) => void;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** @param problems what broke it; empty when it held */
  judge(guarantee: Guarantee, problems: string | readonly string[] | undefined): void {
    this.#checks.set(guarantee, this.checks(guarantee) + 1);
    for (const problem of typeof problems === 'string' ? [problems] : (problems ?? [])) {
      const count = this.violations(guarantee) + 1;
      this.#violations.set(guarantee, count);
      if (count <= mostShown) this.#say(`  FAILED ${guarantees[guarantee]}: ${problem}`);
      else if (count === mostShown + 1) this.#say(`  FAILED and more like these`);
    }
  }

  checks(guarantee: Guarantee): number {
    return this.#checks.get(guarantee) ?? 0;
  }

  violations(guarantee: Guarantee): number {
    return this.#violations.get(guarantee) ?? 0;
  }

  /** Broken, or never put to the test: that proves nothing either. */
  get failed(): readonly Guarantee[] {
    return names.filter((name) => this.violations(name) > 0 || this.checks(name) === 0);
  }

  get passed(): number {
    return names.length - this.failed.length;
  }

  table(): string {
    const rows = names.map((name) => {
      const [checks, violations] = [this.checks(name), this.violations(name)];
      const verdict =
        violations > 0 ? `BROKEN ${violations} times` : checks === 0 ? 'NEVER TESTED' : 'held';
      return `${String(checks).padStart(9)}  ${verdict.padEnd(16)} ${guarantees[name]}`;
    });
    return ['   checks', ...rows].join('\n');
  }
}
