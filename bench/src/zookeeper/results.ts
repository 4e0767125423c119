import type { Spread } from '../figure.ts';
import { spreadOf } from '../figure.ts';
import type { CandidateName } from './messages.ts';
import type { MetricId } from './metrics.ts';

/** `empty`: a Node process that loads no client. */
export type Column = CandidateName | 'empty';

/** All samples of a run. */
export class Results {
  readonly #samples = new Map<string, Map<number, number>>();

  /** @param moment samples of one moment are comparable: a round, or a part of one */
  add(metric: MetricId, column: Column, moment: number, value: number): void {
    const key = `${metric} ${column}`;
    const samples = this.#samples.get(key) ?? new Map<number, number>();
    samples.set(moment, value);
    this.#samples.set(key, samples);
  }

  /** By their moments. */
  samples(metric: MetricId, column: Column): ReadonlyMap<number, number> {
    return this.#samples.get(`${metric} ${column}`) ?? new Map();
  }

  spread(metric: MetricId, column: Column): Spread | undefined {
    const samples = this.samples(metric, column);
    return samples.size === 0 ? undefined : spreadOf([...samples.values()]);
  }
}
