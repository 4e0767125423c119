/** A candidate of the library: campaigns, and looks at `term.isLeading()` all the time. */
import process from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Term, TimingOptions } from 'incumbent';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';
import { monotonicMs } from '../harness/time.ts';
import { clientClass } from './broken.ts';
import type { CandidateMessage, CandidatePlan, Spell } from './messages.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

const sampleEveryMs = 1;
const tickMs = 2_000;

const stop = new AbortController();
const plan = JSON.parse(process.argv[2] ?? '') as CandidatePlan;
const spells: Mutable<Spell>[] = [];
let longestGapMs = 0;

function tell(message: CandidateMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

async function lead(term: Term<{ readonly path: string }>): Promise<void> {
  let lastMs = monotonicMs();
  let remainingMs = 0;
  const spell = { fromMs: lastMs, lastMs, untilMs: undefined, token: String(term.token) };
  const kept: Mutable<Spell> = spell;
  spells.push(kept);
  tell({ type: 'leading', atMs: lastMs, place: term.guard.path });
  for (;;) {
    const atMs = monotonicMs();
    // A process that stood still asked nothing, so a gap in its samples counts all the same.
    longestGapMs = Math.max(longestGapMs, atMs - lastMs);
    if (!term.isLeading()) {
      kept.untilMs = Math.min(monotonicMs(), lastMs + Math.max(remainingMs, sampleEveryMs));
      break;
    }
    lastMs = atMs;
    kept.lastMs = atMs;
    remainingMs = term.remaining();
    // Nobody else may lead before this work has settled.
    if (stop.signal.aborted) {
      kept.untilMs = atMs;
      break;
    }
    await sleep(sampleEveryMs);
  }
  tell({ type: 'over', atMs: kept.untilMs });
}

/**
 * A timing that looks safe as long as nobody considers that the leader server's last sign of life
 * came well before the check.
 */
function reckoned(timeoutMs: number): TimingOptions {
  const renewEvery = timeoutMs / 10;
  return { renewEvery, belief: timeoutMs - (renewEvery + tickMs) };
}

async function main(): Promise<void> {
  const url = `zk://${plan.hosts}`;
  const Client = clientClass(plan.broken, (check) => tell({ type: 'check', ...check }));
  const client = new Client(url, { sessionTimeoutMs: plan.timeoutMs });
  await client.connected();
  client.onState(({ state }) => tell({ type: 'state', atMs: monotonicMs(), state }));
  tell({ type: 'connected', timeoutMs: client.session?.timeoutMs ?? 0 });
  createInterface({ input: process.stdin })
    .on('line', (line) => {
      if (line === 'report') tell({ type: 'report', spells, longestGapMs });
      if (line === 'stop') stop.abort();
    })
    .on('close', () => process.exit());
  const waits = plan.broken !== 'no-wait' && plan.broken !== 'arithmetic';
  const election = createElection({
    name: plan.election,
    backend: zookeeper(client, {
      predecessorWait: waits ? 'belief' : 'off',
      ...(plan.layout && { layout: plan.layout }),
    }),
    candidate: { id: plan.id },
    ...(plan.broken === 'arithmetic' && reckoned(plan.timeoutMs)),
  });
  await election.lead(lead, { signal: stop.signal }).catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
}

try {
  await main();
} catch (error) {
  tell({ type: 'failed', message: String((error as Error).stack ?? error) });
}
