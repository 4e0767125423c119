import type { Judge } from '@incumbent/cli/trial';

/** Of one look. */
const mostShown = 5;

/** The findings of a judge, of one log or of several. */
export type Judged = Pick<Judge, 'violations' | 'overlaps' | 'effects' | 'terms'>;

/** Everything that must not be, from the judge of the log and from whoever else looks; each once. */
export class Verdict {
  readonly #judge: Judged;
  readonly #known = new Set<string>();
  readonly #others: string[] = [];
  readonly #say: (line: string) => void;

  constructor(judge: Judged, say: (line: string) => void) {
    this.#judge = judge;
    this.#say = say;
  }

  /** Found by somebody else than the judge. */
  blame(...problems: readonly string[]): void {
    this.#others.push(...problems);
  }

  /** Says what was found since it was asked last. @returns whether there was anything */
  tell(): boolean {
    const fresh = this.#judge.violations().filter(({ key }) => !this.#known.has(key));
    for (const { key } of fresh) this.#known.add(key);
    const problems = [
      ...fresh.map(({ guarantee, message }) => `${guarantee}: ${message}`),
      ...this.#others.splice(0),
    ];
    for (const problem of problems.slice(0, mostShown)) this.#say(`  FAILED ${problem}`);
    const more = problems.length - mostShown;
    if (more > 0) this.#say(`  FAILED and ${more} more like these`);
    return problems.length > 0;
  }

  /** One line for all that was in the log. */
  summary(): string {
    const { effects, terms } = this.#judge;
    return (
      `${effects} effects of ${terms.length} terms: ${this.#judge.overlaps().length} overlaps, ` +
      `${this.#judge.violations().length} violations found in the log`
    );
  }
}
