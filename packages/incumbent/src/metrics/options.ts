import { describeValue } from '../base/candidate.ts';
import { checkNames } from '../base/check-names.ts';
import type { Clock } from '../base/clock.ts';
import { systemClock } from '../base/clock.ts';
import { InvalidOptionError } from '../base/errors.ts';

/** Options of `collectMetrics` and `meterElections`. */
export interface MetricsOptions {
  /**
   * How many values the attribute `election` may have, from 1 to 10 000. Default 100. The elections
   * after that are counted together, as `(other)`.
   */
  readonly maxElections?: number;
  /**
   * The value of the attribute `election` for the election `name`, so that elections with one value
   * are counted together. `false` leaves the attribute out. Default: the name. With this option
   * there is no `incumbent.token`, because the tokens of two elections say nothing together. And there
   * is no attribute `seat`.
   */
  readonly election?: ((name: string) => string) | false;
  /** The clock of the elections, in tests with `SimulatedClock`. Default: the machine's. */
  readonly clock?: Clock;
}

/** The value of the attribute `election` for all elections after `maxElections`. */
export const otherElections = '(other)';

const names: Readonly<Record<keyof MetricsOptions, true>> = {
  maxElections: true,
  election: true,
  clock: true,
};
const defaultMaxElections = 100;
/** Each election has about 130 series. */
const mostElections = 10_000;

/** @throws InvalidOptionError */
export function resolveMetricsOptions(
  what: string,
  options: MetricsOptions,
): { readonly clock: Clock; readonly attribute: ElectionAttribute } {
  checkNames(what, options, names);
  const { maxElections = defaultMaxElections, election, clock = systemClock } = options;
  if (!(Number.isInteger(maxElections) && maxElections >= 1 && maxElections <= mostElections)) {
    throw new InvalidOptionError(
      `${what}: maxElections must be a whole number from 1 to ${mostElections}, not ` +
        `${describeValue(maxElections)}. With \`election\` several elections share one attribute`,
    );
  }
  if (!(election === undefined || election === false || typeof election === 'function')) {
    throw new InvalidOptionError(
      `${what}: election must be a function of the election's name, or false, not ` +
        describeValue(election),
    );
  }
  if (election === false && options.maxElections !== undefined) {
    throw new InvalidOptionError(
      `${what}: maxElections ${maxElections} bounds the attribute that \`election: false\` leaves ` +
        'out. Give one of the two',
    );
  }
  return { clock, attribute: new ElectionAttribute(what, maxElections, election) };
}

/** The attribute `election`, of which there are only so many values. */
export class ElectionAttribute {
  /** Its values say which election it is. */
  readonly isName: boolean;
  readonly #what: string;
  readonly #most: number;
  readonly #map: MetricsOptions['election'];
  readonly #values = new Set<string>();
  #hasWarned = false;

  constructor(what: string, most: number, map: MetricsOptions['election']) {
    this.#what = what;
    this.#most = most;
    this.#map = map;
    this.isName = map === undefined;
  }

  /** Undefined: there is no such attribute. Never throws: an event of an election asks. */
  valueFor(election: string): string | undefined {
    if (this.#map === false) return undefined;
    const value = this.#map === undefined ? election : this.#mapped(this.#map, election);
    if (this.#values.has(value)) return value;
    if (value === otherElections || this.#values.size >= this.#most) return otherElections;
    this.#values.add(value);
    return value;
  }

  #mapped(map: (name: string) => string, election: string): string {
    let error: unknown;
    try {
      const value = map(election);
      if (typeof value === 'string') return value;
      error = new TypeError(`it returned ${describeValue(value)} instead of a text`);
    } catch (thrown) {
      error = thrown;
    }
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      process.emitWarning(
        `${this.#what}: \`election\` failed for "${election}", which is counted as ` +
          `${otherElections}: ${error instanceof Error ? error.message : String(error)}. This ` +
          'warning is not repeated.',
        { type: 'IncumbentWarning', code: 'INCUMBENT_METRICS_ELECTION' },
      );
    }
    return otherElections;
  }
}
