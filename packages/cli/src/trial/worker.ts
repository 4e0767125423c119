/**
 * The program that candidates of a trial run. It does nothing but leave effects in the log, a line
 * every few milliseconds, and starts a helper that does the same: a grandchild of the guard.
 *
 *     node worker.js LOG [--stubborn]
 *
 * It ends when its stdin does, so that workers whose trial was killed do not go on for ever.
 */
import { spawn } from 'node:child_process';
import { openSync, writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Effect } from './effect.ts';
import { formatEffect } from './effect.ts';

const beatEveryMs = 5;
/** A helper that everybody forgot ends by itself. */
const helperLifeMs = 600_000;

const [path = '', ...flags] = process.argv.slice(2);
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

function end(): void {
  leave('stop');
  process.exit(0);
}

if (helperOf === undefined) {
  leave('start');
  process.on('SIGTERM', () => {
    if (!stubborn) end();
  });
  process.stdin.on('error', end).on('end', end).resume();
  const self = fileURLToPath(import.meta.url);
  spawn(process.execPath, [self, path, ...flags, `--helper-of=${group}`], { stdio: 'ignore' });
} else {
  if (stubborn) process.on('SIGTERM', () => {});
  setTimeout(() => process.exit(3), helperLifeMs);
}
setInterval(() => leave('beat'), beatEveryMs);
