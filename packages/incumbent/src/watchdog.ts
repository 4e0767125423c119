import { Worker } from 'node:worker_threads';
import type { Instant } from './clock.ts';

/** Ends this process when belief is over and the work of the term has not settled. */
export interface Watchdog {
  /** The new end of belief; undefined: the work has settled. */
  update(deadline: Instant | undefined): void;
  close(): void;
}

/** At least this often the worker looks at both clocks: one of them may step or stand still. */
const lookEveryMs = 100;

/**
 * Runs in a worker thread, so a stuck event loop does not stop it. It must never renew: a leader
 * whose main thread hangs has to lose. Plain CommonJS in a string, so that it is the same from
 * sources and from a bundle.
 *
 * Shared: two int64, the monotonic and the wall deadline in µs, the first one 0 when there is no
 * term, and an int32 that counts updates. The wall deadline is stored first: the worker may read
 * between the two, and must never meet a new monotonic deadline beside a missing wall one.
 *
 * As in Belief, the wall deadline is brought forward at every look to what the monotonic clock
 * leaves: a clock that was set back would else let a suspension after it pass unseen.
 */
const source = `
const { workerData: { buffer, lookEveryMs } } = require('node:worker_threads');
const deadlines = new BigInt64Array(buffer, 0, 2);
const updates = new Int32Array(buffer, 16, 1);
let wallMs = Infinity;
let clamped = 0n;
for (;;) {
  const seen = Atomics.load(updates, 0);
  const monotonic = Atomics.load(deadlines, 0);
  let waitMs = Infinity;
  if (monotonic !== 0n) {
    if (monotonic !== clamped) wallMs = Infinity;
    clamped = monotonic;
    const monotonicLeftMs = Number(monotonic - process.hrtime.bigint() / 1000n) / 1000;
    wallMs = Math.min(
      wallMs,
      Number(Atomics.load(deadlines, 1)) / 1000,
      Date.now() + monotonicLeftMs,
    );
    const leftMs = Math.min(monotonicLeftMs, wallMs - Date.now());
    if (leftMs <= 0 && Atomics.load(deadlines, 0) === monotonic) {
      process.kill(process.pid, 'SIGKILL');
    }
    waitMs = Math.min(Math.max(1, leftMs), lookEveryMs);
  }
  Atomics.wait(updates, 0, seen, waitMs);
}
`;

export function startWatchdog(onTrouble: (error: unknown) => void): Watchdog {
  const buffer = new SharedArrayBuffer(24);
  const deadlines = new BigInt64Array(buffer, 0, 2);
  const updates = new Int32Array(buffer, 16, 1);
  const worker = new Worker(source, { eval: true, workerData: { buffer, lookEveryMs }, env: {} });
  worker.unref();
  worker.on('error', onTrouble);
  const update = (deadline: Instant | undefined) => {
    if (deadline === undefined) {
      Atomics.store(deadlines, 0, 0n);
    } else {
      Atomics.store(deadlines, 1, BigInt(Math.floor(deadline.wallMs * 1000)));
      Atomics.store(deadlines, 0, BigInt(Math.floor(deadline.monotonicMs * 1000)));
    }
    Atomics.add(updates, 0, 1);
    Atomics.notify(updates, 0);
  };
  return {
    update,
    close() {
      update(undefined);
      void worker.terminate();
    },
  };
}
