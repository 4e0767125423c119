import { makeLogDirectory } from '../harness/log-directory.ts';
import type { Program } from '../harness/program.ts';
import { program } from '../harness/program.ts';
import { tellSums } from '../harness/sums.ts';
import { takeoverBoundMs } from './bound.ts';
import { seconds } from './judge.ts';
import { faults } from './plan.ts';
import { tables, wayRows } from './report.ts';
import type { Outcome } from './run.ts';
import { runChaos } from './run.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';

/** Of one kind, at the end. */
const mostShown = 5;

async function main(settings: Settings): Promise<number> {
  const { changes, json, seed, transports } = settings;
  const startMs = performance.now();
  const say = (line: string): void => {
    if (!json)
      console.log(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  };
  say(`${changes} changes of the leader, ${transports.join(' and ')}, seed ${seed}`);
  const logs = makeLogDirectory('following', seed, say);
  const outcome = await runChaos(settings, logs.path, say);
  const failed = blame(outcome);
  const passed = changes + 1 - failed;
  if (json) console.log(JSON.stringify(summary(settings, outcome)));
  else {
    const shown = new Map<string, number>();
    for (const { what } of outcome.findings) {
      const kind = what.split(':', 1)[0] ?? '';
      const count = (shown.get(kind) ?? 0) + 1;
      shown.set(kind, count);
      if (count <= mostShown) console.log(`FAILED ${what}`);
    }
    for (const [kind, count] of shown) {
      if (count > mostShown) console.log(`FAILED and ${count - mostShown} more: ${kind}`);
    }
    console.log(`\n${tables(outcome)}\n\n${conclusion(outcome)}`);
  }
  if (failed === 0) logs.remove();
  else logs.keep();
  return tellSums({ passed, failed });
}

/** @returns how many of the changes, and of the end of the run, something was found in */
function blame({ findings, played, changes }: Outcome): number {
  const places = findings.map(({ atMs }) => {
    const index = played.findLastIndex((each) => each.atMs <= atMs);
    return index === played.length - 1 ? 'the end' : String(index);
  });
  const missing = changes.length - played.length;
  return Math.min(changes.length + 1, new Set(places).size + missing);
}

function conclusion({ calls, failures, terms, byChance, followMs, timing }: Outcome): string {
  const bounds = faults.map((fault) => `${fault} ${seconds(takeoverBoundMs(fault, timing))}`);
  return (
    `${calls} calls served in ${terms.length} terms, ${failures.length} failed; ` +
    `${byChance} changes that nobody brought about\n` +
    `bounds: another one leads after ${bounds.join(', ')}; calls may fail for ${seconds(followMs)} more`
  );
}

function summary({ seed, transports }: Settings, outcome: Outcome): object {
  const { calls, failures, findings, played, followMs, timing, byChance } = outcome;
  return {
    ...{ seed, transports, calls, failed: failures.length, byChance, followMs },
    takeoverMs: Object.fromEntries(faults.map((fault) => [fault, takeoverBoundMs(fault, timing)])),
    played: played.map(({ struck, next, ...rest }) => {
      return { ...rest, struck: String(struck), next: String(next) };
    }),
    ways: wayRows(outcome),
    failures,
    findings,
  };
}

export const run: Program = program(readSettings, usage, main);
