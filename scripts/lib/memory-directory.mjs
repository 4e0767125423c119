import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, realpathSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';

const leastBytes = 4 * 2 ** 30;

/**
 * A directory in memory for what tests start, or undefined where the machine has none to spare.
 * Servers flush each write to their disk. One disk for a dozen of them makes an etcd wait for
 * seconds, and its leaders lose their leases, as they should.
 */
export function makeMemoryDirectory() {
  let directory;
  try {
    if (freemem() < 2 * leastBytes) return undefined;
    directory = realpathSync(mkdtempSync('/dev/shm/incumbent-test-'));
    // As /tmp: a PostgreSQL that root starts, and tests of other users, have to get in.
    chmodSync(directory, 0o1777);
    const { bavail, bsize } = statfsSync(directory);
    const script = join(directory, 'runs');
    writeFileSync(script, '#!/bin/sh\n');
    chmodSync(script, 0o755);
    // It may be mounted so that nothing there can be run.
    execFileSync(script);
    if (bavail * bsize >= leastBytes) return directory;
  } catch {
    // Not on this machine.
  }
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  return undefined;
}
