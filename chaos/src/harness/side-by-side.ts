import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { createInterface } from 'node:readline';

interface Sums {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Runs this program once for each store, all at once, and adds up. @returns the exit code */
export async function runSideBySide(stores: readonly string[], seed: number): Promise<number> {
  const all = await Promise.all(stores.map((store) => runOne(store, seed)));
  const sum = (pick: (sums: Sums) => number) => all.reduce((total, each) => total + pick(each), 0);
  const [passed, failed] = [sum((each) => each.passed), sum((each) => each.failed)];
  const skipped = sum((each) => each.skipped);
  console.log(`${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`);
  return failed === 0 ? 0 : 1;
}

async function runOne(store: string, seed: number): Promise<Sums> {
  const [program = '', ...words] = process.argv.slice(1);
  const child = spawn(
    process.execPath,
    [...process.execArgv, program, ...words, '--store', store, '--seed', `${seed}`],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const forward = (name: NodeJS.Signals) => child.kill(name);
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, forward);
  process.once('exit', () => child.kill('SIGKILL'));
  let last = '';
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    last = line;
    // Why something was skipped is read by whoever runs us.
    console.log(line.startsWith('skipped: ') ? line : `${store.padEnd(8)} | ${line}`);
  });
  const [[code]] = (await Promise.all([once(child, 'exit'), once(lines, 'close')])) as [
    [number | null],
    unknown,
  ];
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(name, forward);
  const [, passed, failed, skipped] =
    /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/.exec(last) ?? [];
  if (passed === undefined) {
    console.log(`${store.padEnd(8)} | FAILED: it ended with ${code} after "${last}"`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
  return { passed: Number(passed), failed: Number(failed), skipped: Number(skipped ?? 0) };
}
