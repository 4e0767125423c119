/** The metrics, in the order of the tables. */

export type Unit = 'per s' | 'µs' | 'ms' | 'bytes' | 'MiB' | '% of a core' | '';

export interface Metric {
  /** The benchmark it belongs to. */
  readonly benchmark: string;
  readonly name: string;
  readonly unit: Unit;
}

export const metrics = {
  get1P50: { benchmark: 'get', name: 'get, window 1: p50', unit: 'µs' },
  get1Cpu: { benchmark: 'get', name: 'get, window 1: client CPU per call', unit: 'µs' },
  get100Cpu: { benchmark: 'get', name: 'get, window 100: client CPU per call', unit: 'µs' },
  get100Rate: { benchmark: 'get', name: 'get, window 100: throughput', unit: 'per s' },
  get1000Cpu: { benchmark: 'get', name: 'get, window 1000: client CPU per call', unit: 'µs' },
  get1000Rate: { benchmark: 'get', name: 'get, window 1000: throughput', unit: 'per s' },
  canned100Cpu: { benchmark: 'canned', name: 'canned, window 100: client CPU per get', unit: 'µs' },
  canned100Rate: { benchmark: 'canned', name: 'canned, window 100: throughput', unit: 'per s' },
  canned100Responder: {
    benchmark: 'canned',
    name: 'canned, window 100: the responder meanwhile',
    unit: '% of a core',
  },
  canned1000Cpu: {
    benchmark: 'canned',
    name: 'canned, window 1000: client CPU per get',
    unit: 'µs',
  },
  canned1000Rate: { benchmark: 'canned', name: 'canned, window 1000: throughput', unit: 'per s' },
  canned1000Responder: {
    benchmark: 'canned',
    name: 'canned, window 1000: the responder meanwhile',
    unit: '% of a core',
  },
  createCpu: { benchmark: 'create', name: 'create, window 100: client CPU per call', unit: 'µs' },
  createRate: { benchmark: 'create', name: 'create, window 100: throughput', unit: 'per s' },
  watchP50: { benchmark: 'watch', name: 'delivery of a watch: p50', unit: 'µs' },
  connectP50: { benchmark: 'connect', name: 'from nothing to a first get: p50', unit: 'µs' },
  handshakeP50: {
    benchmark: 'reconnect',
    name: 'from the new connection to a get, with auth and 100 watches',
    unit: 'µs',
  },
  reconnectP50: {
    benchmark: 'reconnect',
    name: 'from the cut to a get, with auth and 100 watches',
    unit: 'ms',
  },
  outageP50: { benchmark: 'outage', name: 'back after an outage of 1 s', unit: 'ms' },
  refusedAttempts: { benchmark: 'refusal', name: '10 s of resets: attempts', unit: '' },
  refusedCpu: {
    benchmark: 'refusal',
    name: '10 s of resets, 1000 watches: client CPU',
    unit: 'ms',
  },
  watchBytes: { benchmark: 'memory', name: 'RSS per outstanding watch', unit: 'bytes' },
  idleRss: { benchmark: 'startup', name: 'RSS, connected and idle', unit: 'MiB' },
  idleRssAboveEmpty: {
    benchmark: 'startup',
    name: 'RSS, connected and idle, above an empty process',
    unit: 'MiB',
  },
  importTime: { benchmark: 'startup', name: 'import', unit: 'ms' },
  startTime: { benchmark: 'startup', name: 'start of the process and import', unit: 'ms' },
} as const;

export type MetricId = keyof typeof metrics;
