/// <reference lib="esnext.disposable" preserve="true" />
import { InvalidOptionError, MisuseError } from '../base/errors.ts';
import type { Attributes, CounterName, GaugeName } from './instruments.ts';
import { electionInstruments } from './instruments.ts';
import type { MetricsOptions } from './options.ts';
import { resolveMetricsOptions } from './options.ts';
import type { MetricsHandle } from './prom-client.ts';
import { Tally } from './tally.ts';

/** The part of a `Meter` of `@opentelemetry/api` that is used. */
export interface OtelMeter {
  createObservableGauge(name: string, options: OtelInstrumentOptions): OtelObservable;
  createObservableCounter(name: string, options: OtelInstrumentOptions): OtelObservable;
  createHistogram(name: string, options: OtelInstrumentOptions): OtelHistogram;
}

export interface OtelInstrumentOptions {
  description?: string;
  unit?: string;
  advice?: { explicitBucketBoundaries?: number[] };
}

export interface OtelHistogram {
  record(value: number, attributes: Attributes): void;
}

export interface OtelObservable {
  addCallback(callback: OtelCallback): void;
  removeCallback(callback: OtelCallback): void;
}

export type OtelCallback = (result: {
  observe(value: number, attributes: Attributes): void;
}) => void;

/** A histogram with two calls for one meter would count each value twice. */
const metersInUse = new WeakSet<OtelMeter>();

/**
 * Adds the metrics of all elections of this process to a meter of OpenTelemetry. Call it before the
 * first campaign begins: a term that leads already is not counted.
 *
 * OpenTelemetry cannot remove an instrument. After `close()` its SDK goes on exporting the last
 * values, so close the handle when you shut the provider down.
 *
 * @throws InvalidOptionError, MisuseError when this meter has the metrics already. Nothing was added then
 */
export function meterElections(meter: OtelMeter, options: MetricsOptions = {}): MetricsHandle {
  const what = 'meterElections';
  const needed = ['createObservableGauge', 'createObservableCounter', 'createHistogram'] as const;
  if (needed.some((name) => typeof (meter as OtelMeter | null)?.[name] !== 'function')) {
    throw new InvalidOptionError(
      `${what} takes a Meter of @opentelemetry/api, such as \`metrics.getMeter('my-service')\``,
    );
  }
  const { clock, attribute } = resolveMetricsOptions(what, options);
  if (metersInUse.has(meter)) {
    throw new MisuseError(
      `${what}: this meter has the metrics of elections already: close the handle of the first call, ` +
        'or take another meter',
    );
  }
  metersInUse.add(meter);
  const histograms = new Map<string, OtelHistogram>();
  const tally = new Tally(clock, attribute, (name, seconds, attributes) =>
    histograms.get(name)?.record(seconds, attributes),
  );
  const removers: (() => void)[] = [];
  for (const { name, kind, unit, help, buckets = [] } of electionInstruments) {
    const described = { description: help, unit };
    if (kind === 'histogram') {
      const advice = { explicitBucketBoundaries: [...buckets] };
      histograms.set(name, meter.createHistogram(name, { ...described, advice }));
      continue;
    }
    const isGauge = kind === 'gauge';
    const observable = isGauge
      ? meter.createObservableGauge(name, described)
      : meter.createObservableCounter(name, described);
    const callback: OtelCallback = (result) => {
      const points = isGauge
        ? tally.gauges(name as GaugeName)
        : tally.counters(name as CounterName);
      for (const { value, attributes } of points) result.observe(value, attributes);
    };
    observable.addCallback(callback);
    removers.push(() => observable.removeCallback(callback));
  }
  let isClosed = false;
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    tally.close();
    metersInUse.delete(meter);
    for (const remove of removers.splice(0)) remove();
  };
  return { close, [Symbol.dispose]: close };
}
