// Metrics and spans, from what elections publish. Real prom-client and the SDKs of OpenTelemetry
// read them.
import { setImmediate } from 'node:timers/promises';
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { AggregatorRegistry, Gauge, Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { InvalidOptionError, MisuseError } from '../src/base/errors.ts';
import { endReasons } from '../src/base/reasons.ts';
import { publish } from '../src/core/diagnostics.ts';
import { createElection } from '../src/core/election.ts';
import type { Term } from '../src/core/term.ts';
import type { MetricsOptions } from '../src/metrics/index.ts';
import {
  collectMetrics,
  electionInstruments,
  meterElections,
  traceElections,
} from '../src/metrics/index.ts';
import { SimulatedClock } from '../src/testing/index.ts';

/** Values by name and attributes, such as `incumbent_leading{election="jobs"}`. */
type Values = Readonly<Record<string, number>>;

function inProm(options: MetricsOptions = {}) {
  const registry = new Registry();
  const handle = collectMetrics(registry, options);
  onTestFinished(() => handle.close());
  const read = async (): Promise<Values> => {
    const lines = (await registry.metrics()).split('\n').filter((line) => /^[a-z]/.test(line));
    return Object.fromEntries(
      lines.map((line) => {
        const at = line.lastIndexOf(' ');
        return [line.slice(0, at), Number(line.slice(at + 1))];
      }),
    );
  };
  return { registry, handle, read };
}

function inOtel(options: MetricsOptions = {}) {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
  const provider = new MeterProvider({ readers: [reader] });
  const handle = meterElections(provider.getMeter('test'), options);
  onTestFinished(async () => {
    handle.close();
    await provider.shutdown();
  });
  const metrics = async () => {
    exporter.reset();
    await reader.forceFlush();
    return exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)[0]?.metrics ?? [];
  };
  return { handle, metrics };
}

/** The export of OpenTelemetry, in the form of Prometheus. */
async function asProm(metrics: ReturnType<typeof inOtel>['metrics']): Promise<Values> {
  const values: [string, number][] = [];
  for (const metric of await metrics()) {
    const { name, unit, description } = metric.descriptor;
    const row = electionInstruments.find((one) => one.name === name)!;
    expect([unit, description]).toEqual([row.unit, row.help]);
    for (const { attributes, value } of metric.dataPoints) {
      const labels = (more: object = {}) => {
        const all = Object.entries({ ...attributes, ...more }).map(([k, v]) => `${k}="${v}"`);
        return all.length === 0 ? '' : `{${all.join(',')}}`;
      };
      if (metric.dataPointType !== DataPointType.HISTOGRAM) {
        values.push([`${row.promName}${labels()}`, value as number]);
        continue;
      }
      const {
        buckets,
        sum = 0,
        count,
      } = value as {
        buckets: { boundaries: number[]; counts: number[] };
        sum?: number;
        count: number;
      };
      let below = 0;
      for (const [i, le] of [...buckets.boundaries, '+Inf'].entries()) {
        below += buckets.counts[i]!;
        values.push([`${row.promName}_bucket${labels({ le })}`, below]);
      }
      values.push([`${row.promName}_sum${labels()}`, sum]);
      values.push([`${row.promName}_count${labels()}`, count]);
    }
  }
  return Object.fromEntries(values);
}

function setUp() {
  const clock = new SimulatedClock();
  const backend = memory();
  const candidate = (id: string, name = 'jobs') =>
    createElection({ name, backend, clock, candidate: { id } });
  const soon = async <T>(promise: Promise<T>): Promise<T> => {
    promise.catch(() => {});
    await clock.advance(2_000);
    return promise;
  };
  return { clock, candidate, soon };
}

/** Timers of this clock stop when it is told so: a process that is killed. */
function mortal(clock: SimulatedClock) {
  let isDead = false;
  return {
    kill: () => {
      isDead = true;
    },
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs(),
    setTimer: (callback: () => void, delayMs: number) =>
      clock.setTimer(() => {
        if (!isDead) callback();
      }, delayMs),
  };
}

const jobs = '{election="jobs"}';
const ended = (reason: string) => `incumbent_term_ends_total{election="jobs",reason="${reason}"}`;
const takeovers = (how: string) =>
  `incumbent_takeover_duration_seconds_count{election="jobs",predecessor="${how}"}`;

test('every instrument is named by the conventions of both, once', () => {
  const names = electionInstruments.flatMap(({ name, promName }) => [name, promName]);
  expect(new Set(names).size).toBe(names.length);
  for (const { name, promName, kind, unit, help, buckets } of electionInstruments) {
    expect(name).toMatch(/^incumbent(\.[a-z]+)+$/);
    expect(promName).toMatch(/^incumbent(_[a-z]+)+$/);
    expect(promName.endsWith('_total')).toBe(kind === 'counter');
    expect(promName.includes('_seconds')).toBe(unit === 's');
    expect(unit).toMatch(/^(s|\{[a-z]+\})$/);
    expect(help).toMatch(/^[A-Z].*[^.]$/);
    expect(buckets !== undefined).toBe(kind === 'histogram');
    expect(buckets).toEqual(buckets && [...buckets].sort((a, b) => a - b));
  }
});

test('a candidate waits, leads, becomes ready, hands over, and is gone', async () => {
  const { clock, candidate, soon } = setUp();
  const { read } = inProm({ clock });
  const [a, b] = [candidate('a'), candidate('b')];
  const term = await soon(a.campaign({ ready: 'manual' }));
  expect(await read()).toMatchObject({
    [`incumbent_leading${jobs}`]: 1,
    [`incumbent_ready${jobs}`]: 0,
    [`incumbent_token${jobs}`]: 1,
    [`incumbent_belief_limit_seconds${jobs}`]: 12,
    [`incumbent_candidates_waiting${jobs}`]: 0,
    [`incumbent_term_starts_total${jobs}`]: 1,
    [takeovers('none')]: 1,
    [ended('handed-over')]: 0,
  });
  await soon(term.ready());
  const follower = b.campaign();
  await clock.advance(1_000);
  const before = await read();
  expect(before).toMatchObject({
    [`incumbent_ready${jobs}`]: 1,
    [`incumbent_candidates_waiting${jobs}`]: 1,
  });
  const left = before[`incumbent_belief_remaining_seconds${jobs}`]!;
  expect(left).toBeGreaterThan(8);
  expect(left).toBeCloseTo(term.remaining() / 1_000, 2);
  term.signal.addEventListener('abort', () => {
    clock.setTimer(() => void term[Symbol.asyncDispose](), 700);
  });
  await b.transfer('b');
  const next = await soon(follower);
  await clock.advance(5_000);
  expect(await read()).toMatchObject({
    [`incumbent_leading${jobs}`]: 1,
    [`incumbent_token${jobs}`]: 2,
    [`incumbent_term_starts_total${jobs}`]: 2,
    [ended('handed-over')]: 1,
    [takeovers('clean')]: 1,
    [`incumbent_term_abandoned_total${jobs}`]: 0,
    [`incumbent_handover_duration_seconds_count${jobs}`]: 1,
    [`incumbent_handover_duration_seconds_sum${jobs}`]: expect.closeTo(0.7, 1),
    [`incumbent_handover_duration_seconds_bucket{election="jobs",le="0.5"}`]: 0,
    [`incumbent_handover_duration_seconds_bucket{election="jobs",le="1"}`]: 1,
    [`incumbent_handover_duration_seconds_bucket{election="jobs",le="+Inf"}`]: 1,
  });
  await soon(next[Symbol.asyncDispose]());
  const after = await read();
  expect(after[`incumbent_term_starts_total${jobs}`]).toBe(2);
  for (const { promName, kind } of electionInstruments) {
    if (kind === 'gauge') expect(after).toHaveProperty(`${promName}${jobs}`, 0);
  }
  await soon(Promise.all([a.close(), b.close()]));
});

test('a campaign that gives up waits no more', async () => {
  const { clock, candidate, soon } = setUp();
  const { read } = inProm({ clock });
  const term = await soon(candidate('a').campaign());
  const stop = new AbortController();
  const waiting = candidate('b').campaign({ signal: stop.signal });
  const bounded = candidate('c').campaign({ wait: 5_000 });
  const refused = [waiting, bounded].map((one) => expect(one).rejects.toThrow());
  await clock.advance(1_000);
  expect((await read())[`incumbent_candidates_waiting${jobs}`]).toBe(2);
  stop.abort(new Error('enough'));
  await clock.advance(1_000);
  expect((await read())[`incumbent_candidates_waiting${jobs}`]).toBe(1);
  await clock.advance(5_000);
  await Promise.all(refused);
  expect((await read())[`incumbent_candidates_waiting${jobs}`]).toBe(0);
  await soon(term[Symbol.asyncDispose]());
});

test('two candidates of one process with one id are two', async () => {
  const { clock, candidate, soon } = setUp();
  const { read } = inProm({ clock });
  const term = await soon(candidate('a').campaign());
  const second = candidate('a').campaign();
  await clock.advance(1_000);
  expect(await read()).toMatchObject({
    [`incumbent_leading${jobs}`]: 1,
    [`incumbent_candidates_waiting${jobs}`]: 1,
  });
  await soon(term[Symbol.asyncDispose]());
  await soon((await soon(second))[Symbol.asyncDispose]());
});

test('the same numbers come out of prom-client and of OpenTelemetry', async () => {
  const clock = new SimulatedClock();
  const backend = memory();
  const { read } = inProm({ clock });
  const { metrics } = inOtel({ clock });
  const dying = mortal(clock);
  const dead = createElection({ name: 'jobs', backend, clock: dying, candidate: { id: 'a' } });
  const lost = dead.campaign();
  await clock.advance(4_000);
  await lost;
  dying.kill();
  let isHealthy = true;
  const b = createElection({ name: 'jobs', backend, clock, candidate: { id: 'b' } });
  const other = createElection({ name: 'mail', backend, clock, candidate: { id: 'b' } });
  let hooks = 0;
  const won: Term[] = [];
  const leading = b.lead(
    async (term) => {
      won.push(term);
      await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
    },
    {
      health: { check: () => isHealthy },
      onUnclean: () => {
        hooks += 1;
        if (hooks === 1) throw new Error('no answer of the switch');
      },
      again: () => false,
    },
  );
  const end = expect(leading).rejects.toThrow();
  await clock.advance(60_000);
  expect([won.length, hooks]).toEqual([1, 2]);
  const mail = other.campaign();
  await clock.advance(7_000);
  const [prom, otel] = [await read(), await asProm(metrics)];
  expect(prom).toMatchObject({
    [`incumbent_takeover_failures_total${jobs}`]: 1,
    [ended('takeover-failed')]: 1,
    [takeovers('unclean')]: 1,
    'incumbent_leading{election="mail"}': 1,
  });
  expect(Object.keys(otel).length).toBeGreaterThan(80);
  expect(prom).toMatchObject(closeTo(otel));
  // OpenTelemetry tells of no histogram without a value.
  for (const [key, value] of Object.entries(prom)) {
    if (!(key in otel)) expect([key, value]).toEqual([expect.stringMatching(/_duration_/), 0]);
  }
  isHealthy = false;
  await clock.advance(10_000);
  await end;
  const term = await mail;
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(5_000);
  await disposed;
  const after = await read();
  expect(after[ended('unhealthy')]).toBe(1);
  expect(after['incumbent_leading{election="mail"}']).toBe(0);
  expect(after).toMatchObject(closeTo(await asProm(metrics)));
});

/** Sums are added in another order. */
function closeTo(values: Values) {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, expect.closeTo(value, 9)]),
  );
}

// --- one event each, as the library publishes it ---

const source = { election: 'jobs', candidate: 'a', incarnation: 'a1' };

function lead(token: bigint, of = source): void {
  publish('incumbent:waiting', of, {});
  publish('incumbent:won', of, { token, unfenced: [], predecessor: undefined });
  publish('incumbent:leading', of, { token, remainingMs: 9_000, beliefMs: 12_000 });
  publish('incumbent:ready', of, { token });
}

test('a process that stood still does not lead, although no event has said so', async () => {
  const clock = new SimulatedClock();
  const { read } = inProm({ clock });
  lead(7n);
  clock.stall(8_999);
  expect(await read()).toMatchObject({
    [`incumbent_leading${jobs}`]: 1,
    [`incumbent_token${jobs}`]: 7,
    [`incumbent_belief_remaining_seconds${jobs}`]: expect.closeTo(0.001, 6),
  });
  clock.stall(1);
  const after = await read();
  for (const name of ['leading', 'ready', 'token', 'belief_remaining_seconds']) {
    expect(after).toHaveProperty(`incumbent_${name}${jobs}`, 0);
  }
});

test('neither does one whose host was suspended', async () => {
  const clock = new SimulatedClock();
  const { read } = inProm({ clock });
  lead(7n);
  clock.suspend(9_000);
  expect((await read())[`incumbent_leading${jobs}`]).toBe(0);
});

test('confirmations prolong the belief, and the end of a term ends it', async () => {
  const clock = new SimulatedClock();
  const { read } = inProm({ clock });
  lead(7n);
  clock.stall(8_000);
  publish('incumbent:confirmed', source, { token: 7n, elapsedMs: 40, remainingMs: 11_960 });
  clock.stall(8_000);
  expect((await read())[`incumbent_belief_remaining_seconds${jobs}`]).toBeCloseTo(3.96, 6);
  publish('incumbent:unconfirmed', source, { token: 7n, remainingMs: 3_960 });
  publish('incumbent:state', source, { token: 7n, state: 'stopping' });
  const stopping = await read();
  expect(stopping).toMatchObject({
    // It may still act, and takes no more requests.
    [`incumbent_leading${jobs}`]: 1,
    [`incumbent_ready${jobs}`]: 0,
    [`incumbent_confirmation_failures_total${jobs}`]: 1,
    [`incumbent_confirmation_duration_seconds_sum${jobs}`]: 0.04,
    [`incumbent_confirmation_duration_seconds_bucket{election="jobs",le="0.025"}`]: 0,
    [`incumbent_confirmation_duration_seconds_bucket{election="jobs",le="0.05"}`]: 1,
  });
  publish('incumbent:state', source, { token: 7n, state: 'ended' });
  publish('incumbent:overrun', source, { token: 7n, reason: 'renewal-failed' });
  expect(await read()).toMatchObject({
    [`incumbent_leading${jobs}`]: 0,
    [`incumbent_overruns_total${jobs}`]: 1,
  });
  publish('incumbent:ended', source, {
    ...{ token: 7n, reason: 'renewal-failed', released: false, settled: false },
  });
  expect(await read()).toMatchObject({
    [`incumbent_term_abandoned_total${jobs}`]: 1,
    // Only a seat that was given back was handed over.
    [`incumbent_handover_duration_seconds_count${jobs}`]: 0,
  });
});

test('a late event of the term before changes nothing of this one', async () => {
  const clock = new SimulatedClock();
  const { read } = inProm({ clock });
  lead(7n);
  publish('incumbent:state', source, { token: 6n, state: 'ended' });
  publish('incumbent:confirmed', source, { token: 6n, elapsedMs: 1, remainingMs: 99_000 });
  expect(await read()).toMatchObject({
    [`incumbent_leading${jobs}`]: 1,
    [`incumbent_belief_remaining_seconds${jobs}`]: 9,
    [`incumbent_confirmation_duration_seconds_count${jobs}`]: 0,
  });
});

test('health and trouble are counted, trouble also where there is no campaign', async () => {
  const { read } = inProm({ clock: new SimulatedClock() });
  publish('incumbent:health', source, { healthy: false });
  const observer = { election: 'mail', candidate: 'a' };
  publish('incumbent:trouble', observer, { what: 'observing', error: new Error('away') });
  expect(await read()).toMatchObject({
    [`incumbent_candidates_unhealthy${jobs}`]: 1,
    [`incumbent_candidates_waiting${jobs}`]: 1,
    'incumbent_troubles_total{election="mail"}': 1,
  });
  publish('incumbent:health', source, { healthy: true });
  expect((await read())[`incumbent_candidates_unhealthy${jobs}`]).toBe(0);
});

test('elections after the bound are counted together, without a token', async () => {
  const { registry, read } = inProm({ clock: new SimulatedClock(), maxElections: 2 });
  for (let n = 0; n < 1_000; n += 1) {
    lead(7n, { election: `e${n}`, candidate: 'a', incarnation: `a${n}` });
  }
  expect(await read()).toMatchObject({
    'incumbent_leading{election="e0"}': 1,
    'incumbent_leading{election="e1"}': 1,
    'incumbent_leading{election="(other)"}': 998,
    'incumbent_belief_remaining_seconds{election="(other)"}': 9,
    'incumbent_token{election="e1"}': 7,
  });
  expect(await read()).not.toHaveProperty('incumbent_token{election="(other)"}');
  const lines = (await registry.metrics()).split('\n').filter((line) => /^[a-z]/.test(line));
  expect(lines.length).toBeLessThan(3 * 140);
});

test('elections share the value that `election` gives them, or have no attribute', async () => {
  const clock = new SimulatedClock();
  const mapped = inProm({ clock, election: (name) => name.replace(/\d+$/, '') });
  const without = inProm({ clock, election: false });
  lead(7n, { election: 'shard1', candidate: 'a', incarnation: 'a1' });
  lead(9n, { election: 'shard2', candidate: 'a', incarnation: 'a2' });
  expect(await mapped.read()).toMatchObject({ 'incumbent_leading{election="shard"}': 2 });
  expect(await without.read()).toMatchObject({
    incumbent_leading: 2,
    'incumbent_term_ends_total{reason="resigned"}': 0,
  });
  for (const { registry } of [mapped, without]) {
    expect(await registry.metrics()).not.toMatch(/^incumbent_token/m);
  }
});

test.each([
  ['throws', 'no such shard'],
  ['returns no text', 'it returned 7 instead of a text'],
])('an `election` that %s warns once, and ends no process', async (how, message) => {
  const warnings: (Error & { code?: string })[] = [];
  const hear = (warning: Error) => warnings.push(warning);
  process.on('warning', hear);
  onTestFinished(() => void process.off('warning', hear));
  const election = () => {
    if (how === 'throws') throw new Error('no such shard');
    return 7 as never;
  };
  const { read } = inProm({ clock: new SimulatedClock(), election });
  lead(7n);
  lead(8n, { ...source, election: 'mail', incarnation: 'a2' });
  expect(await read()).toMatchObject({ 'incumbent_leading{election="(other)"}': 2 });
  await setImmediate();
  expect(warnings.map(({ code }) => code)).toEqual(['INCUMBENT_METRICS_ELECTION']);
  expect(warnings[0]!.message).toContain(message);
});

test('close() takes away what was registered, and nothing else', async () => {
  const { registry, handle, read } = inProm({ clock: new SimulatedClock() });
  const own = new Gauge({ name: 'mine', help: 'mine', registers: [registry] });
  lead(7n);
  expect(await read()).toHaveProperty(`incumbent_leading${jobs}`);
  handle.close();
  handle.close();
  expect(registry.getMetricsAsArray()).toEqual([own]);
  using again = collectMetrics(registry);
  expect(registry.getMetricsAsArray()).toHaveLength(1 + electionInstruments.length);
  handle.close();
  // Those of the second call are not its own.
  expect(registry.getMetricsAsArray()).toHaveLength(1 + electionInstruments.length);
  again.close();
});

test('close() of OpenTelemetry tells it nothing more', async () => {
  const { handle, metrics } = inOtel({ clock: new SimulatedClock() });
  lead(7n);
  const before = await asProm(metrics);
  expect(before).toHaveProperty(`incumbent_leading${jobs}`, 1);
  handle.close();
  lead(8n, { ...source, incarnation: 'a2' });
  publish('incumbent:confirmed', source, { token: 7n, elapsedMs: 40, remainingMs: 11_960 });
  expect(await asProm(metrics)).toEqual(before);
});

test('a registry of the type OpenMetrics and one of a cluster take them, too', async () => {
  const registry = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
  using _ = collectMetrics(registry, { clock: new SimulatedClock() });
  lead(7n);
  const text = await registry.metrics();
  expect(text).toContain('# TYPE incumbent_term_starts counter\n');
  expect(text).toContain('\nincumbent_term_starts_total{election="jobs"} 1\n');
  const json = await registry.getMetricsAsJSON();
  const cluster = AggregatorRegistry.aggregate([json, json] as never);
  const all = await cluster.getMetricsAsJSON();
  const told = (name: string) =>
    (all.find((metric) => metric.name === name) as unknown as { values: { value: number }[] })
      .values[0]!.value;
  expect(told('incumbent_leading')).toBe(2);
  expect(told('incumbent_belief_remaining_seconds')).toBe(9);
  registry.resetMetrics();
  expect(await registry.metrics()).toContain('incumbent_term_starts_total{election="jobs"} 0\n');
  expect(await registry.metrics()).toContain('incumbent_leading{election="jobs"} 1\n');
});

test('a registry with a metric of the same name is left as it was', () => {
  const registry = new Registry();
  const last = electionInstruments.at(-1)!.promName;
  const own = new Gauge({ name: last, help: 'mine', registers: [registry] });
  expect(() => collectMetrics(registry)).toThrow(MisuseError);
  expect(() => collectMetrics(registry)).toThrow(`has a metric "${last}" already`);
  expect(registry.getMetricsAsArray()).toEqual([own]);
});

test('a meter that has the metrics already is refused, until the first handle is closed', async () => {
  const provider = new MeterProvider();
  onTestFinished(() => provider.shutdown());
  const meter = provider.getMeter('test');
  const first = meterElections(meter);
  expect(() => meterElections(meter)).toThrow(MisuseError);
  expect(() => meterElections(meter)).toThrow('this meter has the metrics of elections already');
  first.close();
  using _ = meterElections(meter);
  // A second close of the first handle does not free the meter for a third.
  first.close();
  expect(() => meterElections(meter)).toThrow(MisuseError);
});

test.each([
  [() => collectMetrics(undefined as never), 'collectMetrics takes a Registry of prom-client'],
  [() => collectMetrics({} as never), 'collectMetrics takes a Registry of prom-client'],
  [() => meterElections({} as never), 'meterElections takes a Meter'],
  [() => traceElections(null as never), 'traceElections takes a Tracer'],
])('what is no registry, meter or tracer is refused: %s', (call, message) => {
  expect(call).toThrow(InvalidOptionError);
  expect(call).toThrow(message);
});

test.each<[object, string]>([
  [{ maxElection: 5 }, 'has no option "maxElection"; it knows maxElections, election, clock'],
  [{ maxElections: 0 }, 'maxElections must be a whole number from 1 to 10000, not 0'],
  [{ maxElections: 1.5 }, 'not 1.5'],
  [{ maxElections: 10_001 }, 'not 10001'],
  [{ election: true }, "election must be a function of the election's name, or false, not true"],
  [{ election: false, maxElections: 5 }, 'Give one of the two'],
])('options that cannot be are refused, and nothing is registered: %o', (options, message) => {
  const registry = new Registry();
  expect(() => collectMetrics(registry, options)).toThrow(InvalidOptionError);
  expect(() => collectMetrics(registry, options)).toThrow(message);
  expect(registry.getMetricsAsArray()).toEqual([]);
});

test('every reason of an end has a counter from the beginning', async () => {
  const { read } = inProm({ clock: new SimulatedClock() });
  publish('incumbent:waiting', source, {});
  const values = await read();
  for (const reason of endReasons) expect(values[ended(reason)]).toBe(0);
});

// --- spans ---

function inSpans() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const handle = traceElections(provider.getTracer('test'));
  onTestFinished(() => handle.close());
  return { exporter, handle };
}

test('a campaign, its takeover and its hand-over are spans, each linked to the one before', async () => {
  const { clock, candidate, soon } = setUp();
  const { exporter } = inSpans();
  const first = await soon(candidate('a').campaign());
  const follower = candidate('b').campaign();
  await clock.advance(1_000);
  await soon(first[Symbol.asyncDispose]());
  const term = await soon(follower);
  await soon(term[Symbol.asyncDispose]());
  const spans = exporter
    .getFinishedSpans()
    .filter(({ attributes }) => attributes['incumbent.candidate'] === 'b');
  expect(spans.map(({ name, attributes }) => [name, attributes['incumbent.token']])).toEqual([
    ['incumbent.campaign', undefined],
    ['incumbent.takeover', '2'],
    ['incumbent.handover', '2'],
  ]);
  expect(spans[0]!.events.map(({ name }) => name)).toEqual(['waiting for: led']);
  expect(spans[0]!.events[0]!.attributes).toEqual({ 'incumbent.why': '"a" leads with token 1' });
  expect(spans[1]!.attributes).toMatchObject({ 'incumbent.predecessor': 'clean' });
  expect(spans[2]!.attributes).toMatchObject({
    'incumbent.election': 'jobs',
    'incumbent.reason': 'resigned',
    'incumbent.released': true,
  });
  expect(spans.map(({ status }) => status.code)).toEqual([0, 0, 0]);
  for (const n of [1, 2]) {
    expect(spans[n]!.links.map(({ context }) => context.spanId)).toEqual([
      spans[n - 1]!.spanContext().spanId,
    ]);
  }
});

test('a takeover that fails and a seat that was lost are spans with an error', () => {
  const { exporter } = inSpans();
  publish('incumbent:waiting', source, {});
  publish('incumbent:won', source, { token: 7n, unfenced: ['z'], predecessor: undefined });
  const error = new Error('no answer of the switch');
  publish('incumbent:takeover-failed', source, { token: 7n, error });
  publish('incumbent:state', source, { token: 7n, state: 'stopping' });
  publish('incumbent:ended', source, {
    ...{ token: 7n, reason: 'takeover-failed', released: true, settled: true, error },
  });
  lead(8n);
  publish('incumbent:state', source, { token: 8n, state: 'stopping' });
  publish('incumbent:ended', source, {
    ...{ token: 8n, reason: 'superseded', released: false, settled: true },
  });
  const failed = exporter.getFinishedSpans().filter(({ status }) => status.code === 2);
  expect(failed.map(({ name, status }) => [name, status.message])).toEqual([
    ['incumbent.takeover', 'no answer of the switch'],
    ['incumbent.handover', 'another candidate holds the seat'],
  ]);
  expect(failed[0]!.events.map(({ name }) => name)).toEqual(['exception']);
});

test('close() ends the spans that are open', () => {
  const { exporter, handle } = inSpans();
  publish('incumbent:waiting', source, {});
  expect(exporter.getFinishedSpans()).toEqual([]);
  handle.close();
  publish('incumbent:waiting', { ...source, incarnation: 'a2' }, {});
  handle.close();
  expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(['incumbent.campaign']);
});

test('an election with several seats has a series for each, and its other series are one', async () => {
  const { clock, soon } = setUp();
  const backend = memory();
  const prom = inProm({ clock });
  const otel = inOtel({ clock });
  const bySet = inProm({ clock, election: () => 'all' });
  const campaign = (id: string) =>
    soon(createElection({ name: 'jobs', backend, clock, seats: 3, candidate: { id } }).campaign());
  const terms = [await campaign('a'), await campaign('b')];
  expect(terms.map(({ seat }) => seat)).toEqual([1, 2]);
  const seat = (number: number) => `{election="jobs",seat="${number}"}`;
  for (const values of [await prom.read(), await asProm(otel.metrics)]) {
    const of = (name: string) => [1, 2, 3].map((number) => values[name + seat(number)]);
    expect(of('incumbent_leading')).toEqual([1, 1, 0]);
    expect(of('incumbent_ready')).toEqual([1, 1, 0]);
    expect(of('incumbent_token')).toEqual([...terms.map(({ token }) => Number(token)), 0]);
    expect(of('incumbent_term_starts_total')).toEqual([1, 1, 0]);
    expect(of('incumbent_belief_remaining_seconds').map((left) => Number(left) > 0)).toEqual([
      true,
      true,
      false,
    ]);
    expect(values[`incumbent_leading${jobs}`]).toBeUndefined();
    expect(values[`incumbent_term_starts_total${jobs}`]).toBeUndefined();
    expect(values[`incumbent_candidates_waiting${jobs}`]).toBe(0);
  }
  // Seats of several elections say nothing together.
  const values = await bySet.read();
  expect(values['incumbent_leading{election="all"}']).toBe(2);
  expect(Object.keys(values).filter((name) => name.includes('seat='))).toEqual([]);
  for (const term of terms) await soon(term[Symbol.asyncDispose]());
  expect((await prom.read())[`incumbent_leading${seat(2)}`]).toBe(0);
});
