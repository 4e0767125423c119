/**
 * The one table of instruments. Both adapters, the alert file, the dashboard and the reference are
 * made from it.
 */
import { endReasons } from '../base/reasons.ts';

/** Attributes of a data point, by name. */
export type Attributes = Readonly<Record<string, string>>;

/** One instrument of `incumbent/metrics`. */
export interface ElectionInstrument {
  /** As OpenTelemetry spells it, such as `incumbent.belief.remaining`. */
  readonly name: string;
  /** As Prometheus spells it, such as `incumbent_belief_remaining_seconds`. */
  readonly promName: string;
  readonly kind: 'gauge' | 'counter' | 'histogram';
  /** In UCUM: `s`, or what is counted, in braces. */
  readonly unit: string;
  /** Its meaning, in one sentence without a full stop. */
  readonly help: string;
  /** The attributes of its data points. */
  readonly attributes: readonly string[];
  /** The attribute besides `election`, with all its values. */
  readonly by?: { readonly name: string; readonly values: readonly string[] };
  /** An election with several seats has a data point for each, told apart by the attribute `seat`. */
  readonly perSeat?: true;
  /** The bounds of a histogram, in its unit. */
  readonly buckets?: readonly number[];
  /** How a gauge puts several leaders with the same attributes together. */
  readonly over?: 'sum' | 'min' | 'max';
}

export type GaugeName =
  | 'incumbent.leading'
  | 'incumbent.ready'
  | 'incumbent.token'
  | 'incumbent.belief.remaining'
  | 'incumbent.belief.limit'
  | 'incumbent.candidates.waiting'
  | 'incumbent.candidates.unhealthy';
export type CounterName =
  | 'incumbent.term.starts'
  | 'incumbent.term.ends'
  | 'incumbent.term.abandoned'
  | 'incumbent.overruns'
  | 'incumbent.confirmation.failures'
  | 'incumbent.takeover.failures'
  | 'incumbent.troubles';
export type HistogramName =
  | 'incumbent.confirmation.duration'
  | 'incumbent.takeover.duration'
  | 'incumbent.handover.duration';
export type InstrumentName = GaugeName | CounterName | HistogramName;

type Row = Pick<ElectionInstrument, 'help' | 'unit' | 'by' | 'perSeat' | 'buckets' | 'over'>;

const reason: ElectionInstrument['by'] = { name: 'reason', values: endReasons };
/** How the leader before has ended. `none`: there was none. */
const predecessor: ElectionInstrument['by'] = {
  name: 'predecessor',
  values: ['none', 'clean', 'unclean'],
};

const gauges: Readonly<Record<GaugeName, Row>> = {
  'incumbent.leading': {
    unit: '{candidate}',
    help: 'Candidates of this process that lead',
    over: 'sum',
    perSeat: true,
  },
  'incumbent.ready': {
    unit: '{candidate}',
    help: 'Candidates of this process that lead and take requests',
    over: 'sum',
    perSeat: true,
  },
  'incumbent.token': {
    unit: '{token}',
    help: 'Token of the term that this process leads, 0 while it leads none',
    over: 'max',
    perSeat: true,
  },
  'incumbent.belief.remaining': {
    unit: 's',
    help: 'Belief that the leader in this process has left, 0 while none leads',
    over: 'min',
    perSeat: true,
  },
  'incumbent.belief.limit': {
    unit: 's',
    help: 'Belief of the leader in this process right after a confirmation, 0 while none leads',
    over: 'max',
    perSeat: true,
  },
  'incumbent.candidates.waiting': {
    unit: '{candidate}',
    help: 'Candidates of this process that campaign and do not lead',
    over: 'sum',
  },
  'incumbent.candidates.unhealthy': {
    unit: '{candidate}',
    help: 'Candidates of this process whose health check fails',
    over: 'sum',
  },
};

const counters: Readonly<Record<CounterName, Row>> = {
  'incumbent.term.starts': {
    unit: '{term}',
    help: 'Terms that began in this process',
    perSeat: true,
  },
  'incumbent.term.ends': {
    unit: '{term}',
    help: 'Terms that ended in this process, by reason, also those that never began',
    by: reason,
  },
  'incumbent.term.abandoned': {
    unit: '{term}',
    help: 'Terms whose seat was not given back: it had been lost, or is left to run out',
  },
  'incumbent.overruns': {
    unit: '{term}',
    help: 'Terms whose work went on after the belief was over',
  },
  'incumbent.confirmation.failures': {
    unit: '{confirmation}',
    help: 'Confirmations of a term that failed or stayed without an answer',
  },
  'incumbent.takeover.failures': {
    unit: '{takeover}',
    help: 'Takeovers that failed before the term began',
  },
  'incumbent.troubles': {
    unit: '{trouble}',
    help: 'Failures in the background that no call was waiting for',
  },
};

const histograms: Readonly<Record<HistogramName, Row>> = {
  'incumbent.confirmation.duration': {
    unit: 's',
    help: 'How long a confirmation took, from its sending to the answer',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  'incumbent.takeover.duration': {
    unit: 's',
    help: 'How long a takeover took, from winning the seat to the beginning of the term',
    by: predecessor,
    buckets: [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  },
  'incumbent.handover.duration': {
    unit: 's',
    help: 'How long a leader took to leave, from being told to stop to its seat given back',
    buckets: [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  },
};

/** All instruments, in the order in which the reference lists them. */
export const electionInstruments: readonly (ElectionInstrument & {
  readonly name: InstrumentName;
})[] = [
  ...rowsOf('gauge', gauges),
  ...rowsOf('counter', counters),
  ...rowsOf('histogram', histograms),
];

function rowsOf<Name extends string>(
  kind: ElectionInstrument['kind'],
  rows: Readonly<Record<Name, Row>>,
): (ElectionInstrument & { readonly name: Name })[] {
  return Object.entries<Row>(rows).map(([name, row]) => ({
    name: name as Name,
    promName: promName(name, kind, row.unit),
    kind,
    ...row,
    attributes: [
      'election',
      ...(row.by === undefined ? [] : [row.by.name]),
      ...(row.perSeat === undefined ? [] : ['seat']),
    ],
  }));
}

/** As an exporter of OpenTelemetry would name it for Prometheus. */
function promName(name: string, kind: ElectionInstrument['kind'], unit: string): string {
  const words = name.replaceAll('.', '_');
  return `${words}${unit === 's' ? '_seconds' : ''}${kind === 'counter' ? '_total' : ''}`;
}
