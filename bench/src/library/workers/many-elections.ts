/** Leads many elections on the memory store. Needs `--expose-gc`. */
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { sleep } from '../../clock.ts';
import { cpuShareDuring } from '../../cpu.ts';
import { readArgument, tell } from './parent.ts';

export interface ManyElectionsArgument {
  readonly elections: number;
  /** Two renewals: whatever a term keeps from one to the next is there. */
  readonly settleMs: number;
  readonly windowMs: number;
}

export interface FromManyElections {
  readonly say: 'measured';
  readonly cpuShare: number;
  /** Of all elections together. */
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** How many terms still led at the end. */
  readonly leading: number;
}

const { elections: count, settleMs, windowMs } = readArgument<ManyElectionsArgument>();
const backend = memory();

collect();
const before = process.memoryUsage();
const elections = Array.from({ length: count }, (_, index) =>
  createElection({ name: `election-${index}`, backend }),
);
const terms = await Promise.all(elections.map((election) => election.campaign()));
await sleep(settleMs);
collect();
const after = process.memoryUsage();
const cpuShare = await cpuShareDuring(windowMs);
const message: FromManyElections = {
  say: 'measured',
  cpuShare,
  heapBytes: after.heapUsed - before.heapUsed,
  rssBytes: after.rss - before.rss,
  leading: terms.filter((term) => term.isLeading()).length,
};
tell(message);

/** Twice, for what the first one finds to be finalized. */
function collect(): void {
  globalThis.gc?.();
  globalThis.gc?.();
}
