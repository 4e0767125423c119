/** Leads one term after the other on the file store, with metrics or without. Needs `--expose-gc`. */
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { collectMetrics } from 'incumbent/metrics';
import { Registry } from 'prom-client';
import { readArgument, tell } from './parent.ts';

export interface TermsInTurnArgument {
  readonly directory: string;
  readonly terms: number;
  readonly withMetrics: boolean;
}

export interface FromTermsInTurn {
  readonly say: 'measured';
  readonly cpuMs: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** Terms that the metrics have counted. 0 without them. */
  readonly counted: number;
}

/** Terms before the measurement, so that all code is compiled. */
const warmUp = 200;
const termsPerScrape = 100;

const { directory, terms, withMetrics } = readArgument<TermsInTurnArgument>();
const registry = new Registry();
if (withMetrics) collectMetrics(registry);
const election = createElection({ name: 'turns', backend: file(directory) });

async function lead(count: number): Promise<string> {
  let text = '';
  for (let n = 1; n <= count; n += 1) {
    await election.lead(() => {});
    if (n % termsPerScrape === 0) text = await registry.metrics();
  }
  return text;
}

await lead(warmUp);
collect();
const before = process.cpuUsage();
const text = await lead(terms);
const { user, system } = process.cpuUsage(before);
collect();
const { heapUsed, rss } = process.memoryUsage();
const counted = Number(/^incumbent_term_starts_total\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0);
const message: FromTermsInTurn = {
  say: 'measured',
  cpuMs: (user + system) / 1_000,
  heapBytes: heapUsed,
  rssBytes: rss,
  counted: Math.max(0, counted - warmUp),
};
tell(message);
await election.close();

/** Twice, for what the first one finds to be finalized. */
function collect(): void {
  globalThis.gc?.();
  globalThis.gc?.();
}
