/// <reference lib="esnext.disposable" preserve="true" />
import { InvalidOptionError, MisuseError } from '../base/errors.ts';
import type {
  Attributes,
  CounterName,
  ElectionInstrument,
  GaugeName,
  HistogramName,
  InstrumentName,
} from './instruments.ts';
import { electionInstruments } from './instruments.ts';
import type { MetricsOptions } from './options.ts';
import { resolveMetricsOptions } from './options.ts';
import type { Distribution } from './tally.ts';
import { Tally } from './tally.ts';

/** The part of a `Registry` of prom-client that is used. */
export interface PromRegistry {
  registerMetric(metric: never): void;
  removeSingleMetric(name: string): void;
  getSingleMetric(name: string): unknown;
}

/** Returned by `collectMetrics`, `meterElections` and `traceElections`. */
export interface MetricsHandle extends Disposable {
  /** Listens no more, and removes what was registered. A second call does nothing. */
  close(): void;
}

/**
 * Adds the metrics of all elections of this process to a registry of prom-client 15. Call it before
 * the first campaign begins: a term that leads already is not counted.
 *
 * @throws InvalidOptionError, MisuseError when the registry has a metric of one of these names.
 * Nothing was registered then
 */
export function collectMetrics(
  registry: PromRegistry,
  options: MetricsOptions = {},
): MetricsHandle {
  const what = 'collectMetrics';
  const needed = ['registerMetric', 'removeSingleMetric', 'getSingleMetric'] as const;
  if (needed.some((name) => typeof (registry as PromRegistry | null)?.[name] !== 'function')) {
    throw new InvalidOptionError(
      `${what} takes a Registry of prom-client, such as \`register\` or \`new Registry()\``,
    );
  }
  const { clock, attribute } = resolveMetricsOptions(what, options);
  const taken = electionInstruments.find(({ promName }) => registry.getSingleMetric(promName));
  if (taken !== undefined) {
    throw new MisuseError(
      `${what}: this registry has a metric "${taken.promName}" already: close the handle of the ` +
        'first call, or take another registry',
    );
  }
  const tally = new Tally(clock, attribute);
  const metrics = electionInstruments.map((instrument) => ({
    key: instrument.promName,
    metric: new PromMetric(instrument, tally),
  }));
  for (const { metric } of metrics) registry.registerMetric(metric as never);
  const close = () => {
    tally.close();
    for (const { key, metric } of metrics) {
      if (registry.getSingleMetric(key) === metric) registry.removeSingleMetric(key);
    }
  };
  return { close, [Symbol.dispose]: close };
}

interface PromValue {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly metricName?: string;
}

/** A metric, as a registry asks for it. The classes of prom-client would have to be imported. */
class PromMetric {
  /** A registry of the type OpenMetrics takes the `_total` of a counter off. */
  name: string;
  readonly help: string;
  readonly type: ElectionInstrument['kind'];
  readonly labelNames: readonly string[];
  /** How prom-client puts the metrics of a cluster together. */
  readonly aggregator: 'sum' | 'max';
  readonly #instrument: ElectionInstrument & { readonly name: InstrumentName };
  readonly #tally: Tally;

  constructor(instrument: ElectionInstrument & { readonly name: InstrumentName }, tally: Tally) {
    this.name = instrument.promName;
    this.help = instrument.help;
    this.type = instrument.kind;
    this.labelNames = instrument.attributes;
    // A worker of a cluster that leads nothing has 0, which is no belief of the leader.
    this.aggregator = (instrument.over ?? 'sum') === 'sum' ? 'sum' : 'max';
    this.#instrument = instrument;
    this.#tally = tally;
  }

  get(): Promise<unknown> {
    const { name, help, type, aggregator } = this;
    return Promise.resolve({ name, help, type, aggregator, values: this.#values() });
  }

  reset(): void {
    this.#tally.reset(this.#instrument.name);
  }

  #values(): PromValue[] {
    const { name, kind, buckets = [] } = this.#instrument;
    const asValue = ({ attributes, value }: { attributes: Attributes; value: number }) => ({
      labels: attributes,
      value,
    });
    switch (kind) {
      case 'gauge':
        return Array.from(this.#tally.gauges(name as GaugeName), asValue);
      case 'counter':
        return Array.from(this.#tally.counters(name as CounterName), asValue);
      case 'histogram':
        return [...this.#tally.histograms(name as HistogramName)].flatMap((distribution) =>
          promHistogram(this.name, buckets, distribution),
        );
    }
  }
}

/** Prometheus counts in a bucket all that is smaller, too. */
function promHistogram(
  name: string,
  buckets: readonly number[],
  { attributes, counts, sum, count }: Distribution,
): PromValue[] {
  let below = 0;
  const values = [...buckets, '+Inf'].map((le, i) => {
    below += counts[i] ?? 0;
    return { labels: { ...attributes, le }, value: below, metricName: `${name}_bucket` };
  });
  return [
    ...values,
    { labels: attributes, value: sum, metricName: `${name}_sum` },
    { labels: attributes, value: count, metricName: `${name}_count` },
  ];
}
