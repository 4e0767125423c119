/**
 * The program that candidates of a trial run. It only leaves effects in the log, a line every few
 * milliseconds. It starts a helper that does the same: a grandchild of the guard.
 *
 *     node worker.js LOG TRIAL [--stubborn]
 *
 * TRIAL is the process that conducts the trial. When it is killed, workers end by themselves. They
 * do so for no other reason: the trial tests whether they end with their supervisor or guard.
 */
import { spawn } from 'node:child_process';
import { openSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Effect } from './effect.ts';
import { formatEffect } from './effect.ts';

const beatEveryMs = 5;
const lookEveryMs = 500;

const [path = '', trial = '', ...flags] = process.argv.slice(2);
const helperOf = flags.find((flag) => flag.startsWith('--helper-of='))?.split('=')[1];
const stubborn = flags.includes('--stubborn');
const log = openSync(path, 'a');
// We lead our process group: the guard starts us so.
const group = Number(helperOf ?? process.pid);

function leave(kind: Effect['kind']): void {
  writeSync(
    log,
    formatEffect({
      token: BigInt(process.env['INCUMBENT_TOKEN'] ?? 0),
      candidate: process.env['INCUMBENT_CANDIDATE'] ?? '?',
      group,
      pid: process.pid,
      atNs: process.hrtime.bigint(),
      kind,
    }),
  );
}

function endWithTrial(): void {
  try {
    process.kill(Number(trial), 0);
  } catch {
    process.exit(3);
  }
}

if (helperOf === undefined) leave('start');
process.on('SIGTERM', () => {
  if (stubborn) return;
  if (helperOf === undefined) leave('stop');
  process.exit(0);
});
if (helperOf === undefined) {
  const self = fileURLToPath(import.meta.url);
  const args = [self, path, trial, ...flags, `--helper-of=${group}`];
  spawn(process.execPath, args, { stdio: 'ignore' });
}
setInterval(() => leave('beat'), beatEveryMs);
setInterval(endWithTrial, lookEveryMs);
