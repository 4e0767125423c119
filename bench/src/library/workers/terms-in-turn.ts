/** Leads one term after the other on the file store, with metrics or without. Needs `--expose-gc`. */
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { collectMetrics } from 'incumbent/metrics';
import { Registry } from 'prom-client';
import { readArgument, tell } from './parent.ts';

export type Mode = 'with' | 'without';

export interface TermsInTurnArgument {
  readonly directory: string;
  /** In each mode. */
  readonly terms: number;
  /** Both: they take turns, so that whatever disturbs the machine disturbs both. */
  readonly modes: readonly Mode[];
}

export interface FromTermsInTurn {
  readonly say: 'measured';
  readonly cpuMs: Readonly<Record<Mode, number>>;
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** Terms that the metrics have counted. 0 without them. */
  readonly counted: number;
}

/** Terms between two scrapes, and of one turn. */
const termsPerTurn = 50;
/** Turns before the measurement, so that all code is compiled. */
const warmUp = 4;

const { directory, terms, modes } = readArgument<TermsInTurnArgument>();
const election = createElection({ name: 'turns', backend: file(directory) });
const cpuMs = { with: 0, without: 0 };
let counted = 0;

async function turn(mode: Mode, isMeasured: boolean): Promise<void> {
  const before = process.cpuUsage();
  const registry = new Registry();
  const handle = mode === 'with' ? collectMetrics(registry) : undefined;
  for (let n = 0; n < termsPerTurn; n += 1) await election.lead(() => {});
  const text = await registry.metrics();
  handle?.close();
  const { user, system } = process.cpuUsage(before);
  if (!isMeasured) return;
  cpuMs[mode] += (user + system) / 1_000;
  counted += Number(/^incumbent_term_starts_total\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0);
}

for (let n = -warmUp; n < terms / termsPerTurn; n += 1) {
  // The second one of a pair may find something warm, so they swap.
  const order = n % 2 === 0 ? modes : modes.toReversed();
  for (const mode of order) await turn(mode, n >= 0);
}
collect();
const { heapUsed, rss } = process.memoryUsage();
const message: FromTermsInTurn = {
  say: 'measured',
  cpuMs,
  heapBytes: heapUsed,
  rssBytes: rss,
  counted,
};
tell(message);
await election.close();

/** Twice, for what the first one finds to be finalized. */
function collect(): void {
  globalThis.gc?.();
  globalThis.gc?.();
}
