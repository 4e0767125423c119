/**
 * Metrics and spans of elections, for prom-client and OpenTelemetry, from the diagnostics channels.
 *
 * @module
 */
export type { Clock, Timer } from '../base/clock.ts';
export type { Attributes, ElectionInstrument } from './instruments.ts';
export { electionInstruments } from './instruments.ts';
export type {
  OtelCallback,
  OtelHistogram,
  OtelInstrumentOptions,
  OtelMeter,
  OtelObservable,
} from './open-telemetry.ts';
export { meterElections } from './open-telemetry.ts';
export type { MetricsOptions } from './options.ts';
export { otherElections } from './options.ts';
export type { MetricsHandle, PromRegistry } from './prom-client.ts';
export { collectMetrics } from './prom-client.ts';
export type { OtelSpan, OtelSpanContext, OtelTracer } from './spans.ts';
export { traceElections } from './spans.ts';
