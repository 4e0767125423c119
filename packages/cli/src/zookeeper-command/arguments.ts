import { UsageError } from './failure.ts';
import type { OptionSpec } from './table.ts';

/** The options and operands of a command line, checked for their form. */
export class Arguments {
  readonly operands: readonly string[];
  readonly #specs: readonly OptionSpec[];
  /** A flag has the value ''. */
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(
    operands: readonly string[],
    specs: readonly OptionSpec[],
    values: ReadonlyMap<string, readonly string[]>,
  ) {
    this.operands = operands;
    this.#specs = specs;
    this.#values = values;
  }

  has(name: string): boolean {
    return this.all(name).length > 0;
  }

  /** The last one given. */
  value(name: string): string | undefined {
    return this.all(name).at(-1);
  }

  all(name: string): readonly string[] {
    if (!this.#specs.some((spec) => spec.name === name)) throw new Error(`no option --${name}`);
    return this.#values.get(name) ?? [];
  }

  wholeNumber(name: string, least: number, most: number): number | undefined {
    const text = this.value(name);
    if (text === undefined) return undefined;
    const number = Number(text);
    if (!/^-?\d+$/.test(text) || number < least || number > most) {
      throw new UsageError(`--${name} is a whole number from ${least} to ${most}, not "${text}"`);
    }
    return number;
  }

  /** The version that a node must have; -1 for any, which is the default. */
  nodeVersion(): number {
    return this.wholeNumber('version', -(2 ** 31), 2 ** 31 - 1) ?? -1;
  }

  durationMs(name: string): number | undefined {
    const text = this.value(name);
    if (text === undefined) return undefined;
    const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
    const ms = Math.round(Number(match?.[1]) * (unitMs[match?.[2] ?? ''] ?? Number.NaN));
    if (!(ms >= 1)) {
      const why = /^\d+(\.\d+)?$/.test(text) ? 'has no unit' : 'is no duration';
      throw new UsageError(`--${name} "${text}" ${why}: write 500ms, 10s, 2m or 1h`);
    }
    return ms;
  }
}

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
