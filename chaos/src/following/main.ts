/**
 * Chaos of following: three processes that serve over gRPC and HTTP while they lead, and clients that
 * follow the leader. It is killed, asked to go and frozen, again and again. See ../../README.md.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { command } from '../command.ts';
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
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'incumbent-following-')));
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => {
      console.log(`stopped by ${name}; the logs are kept in ${directory}`);
      process.exit(1);
    });
  }
  const startMs = performance.now();
  const say = (line: string): void => {
    if (!json)
      console.log(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  };
  say(`${changes} changes of the leader, ${transports.join(' and ')}, seed ${seed}`);
  const outcome = await runChaos(settings, directory, say);
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
  if (failed === 0) rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  else say(`seed ${seed}; the logs are kept in ${directory}`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
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

await command(readSettings, usage, main);
