/**
 * Leads once, and tells OpenTelemetry about it. The exporters write to the console.
 *
 *     ELECTIONS=/tmp/elections node examples/dist/monitoring/open-telemetry.js
 */
import { metrics, trace } from '@opentelemetry/api';
import {
  ConsoleMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  ConsoleSpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { meterElections, traceElections } from 'incumbent/metrics';

const reader = new PeriodicExportingMetricReader({ exporter: new ConsoleMetricExporter() });
const meters = new MeterProvider({ readers: [reader] });
const tracers = new BasicTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(new ConsoleSpanExporter())],
});
metrics.setGlobalMeterProvider(meters);
trace.setGlobalTracerProvider(tracers);

const metered = meterElections(metrics.getMeter('orders')); // before the first campaign
const traced = traceElections(trace.getTracer('orders'));

const { ELECTIONS = '.' } = process.env;
const election = createElection({ name: 'orders', backend: file(ELECTIONS) });
await election.lead((term) => console.log(`leading with token ${term.token}`));
await election.close();

await Promise.all([meters.shutdown(), tracers.shutdown()]); // exports what is left
traced.close();
metered.close();
