import { Worker } from 'node:worker_threads';
import type { Deadline } from '../base/deadline.ts';

/** Ends this process when belief is over and the work of the term has not settled. */
export interface Watchdog {
  /** The new end of belief. Undefined: the work has settled. */
  update(deadline: Deadline | undefined): void;
  close(): void;
}

/** The worker looks at both clocks at least this often: either may step or stand still. */
const lookEveryMs = 100;

/**
 * The two-clock law of deadline.ts, which has its proof. Without imports, as the worker needs it.
 */
export const countdownSource = `
const roundingMs = 5;
const longestMs = 3_600_000;
class Countdown {
  #isSet = false;
  #endMs = 0;
  #wallEndMs = Infinity;
  #lookedMs = -Infinity;
  #losses = [];

  set({ monotonicMs, wallMs, sentAt, lostMs }) {
    const sentMs = sentAt.monotonicMs;
    let gapMs = sentAt.wallMs - sentMs;
    let seenMs = 0;
    this.#losses = this.#losses.filter(({ atMs }) => atMs >= sentMs);
    for (const { beforeMs, fromMs, toMs } of this.#losses) {
      if (beforeMs > sentMs) gapMs = Math.min(gapMs, fromMs);
      seenMs += Math.max(0, toMs - gapMs);
      gapMs = toMs;
    }
    const narrowestMs = this.#wallEndMs - this.#endMs;
    const keepsGap = this.#losses.length > 0 || narrowestMs < wallMs - monotonicMs;
    const moreMs = Math.max(0, seenMs - lostMs);
    this.#isSet = true;
    this.#endMs = monotonicMs - moreMs;
    this.#wallEndMs =
      this.#lookedMs >= sentMs && keepsGap ? this.#endMs + narrowestMs : wallMs - moreMs;
  }

  clear() {
    this.#isSet = false;
  }

  look({ monotonicMs: nowMs, wallMs }) {
    const leftMs = this.#endMs - nowMs;
    const wallLeftMs = this.#wallEndMs - wallMs;
    const widerMs = leftMs - wallLeftMs;
    if (widerMs < 0) {
      this.#wallEndMs = wallMs + leftMs;
    } else if (widerMs > roundingMs) {
      const toMs = wallMs - nowMs;
      this.#losses = this.#losses.filter(({ atMs }) => atMs > nowMs - longestMs);
      this.#losses.push({ beforeMs: this.#lookedMs, atMs: nowMs, fromMs: toMs - widerMs, toMs });
      this.#endMs = nowMs + wallLeftMs;
    }
    this.#lookedMs = nowMs;
    return this.#isSet ? Math.min(leftMs, wallLeftMs) : -Infinity;
  }
}
`;

/**
 * Runs in a worker thread, so a stuck event loop does not stop it. It must never renew: a leader
 * whose main thread hangs has to lose. It is a string, so that it is the same from sources and from
 * a bundle. It runs as a script and as a module, because the worker inherits `--input-type`.
 *
 * Shared memory: the five numbers of a deadline in µs as int64, and an int32 that counts updates.
 * The first number is 0 when there is no term. The count is odd while a deadline is being written,
 * and nothing is read then.
 */
const source = `
const { buffer, lookEveryMs } = process.getBuiltinModule('node:worker_threads').workerData;
${countdownSource}
const numbers = new BigInt64Array(buffer, 0, 5);
const updates = new Int32Array(buffer, 40, 1);
const countdown = new Countdown();
let isSet = false;
let known = 0;
for (;;) {
  const seen = Atomics.load(updates, 0);
  if (seen !== known && (seen & 1) === 0) {
    const [monotonicMs, wallMs, sentMs, sentWallMs, lostMs] = Array.from(
      numbers,
      (_, index) => Number(Atomics.load(numbers, index)) / 1000,
    );
    if (Atomics.load(updates, 0) !== seen) continue;
    known = seen;
    isSet = monotonicMs !== 0;
    const sentAt = { monotonicMs: sentMs, wallMs: sentWallMs };
    if (isSet) countdown.set({ monotonicMs, wallMs, sentAt, lostMs });
  }
  let waitMs = known === seen ? Infinity : 1;
  if (isSet) {
    const monotonicMs = Number(process.hrtime.bigint() / 1000n) / 1000;
    const leftMs = countdown.look({ monotonicMs, wallMs: Date.now() });
    if (leftMs <= 0 && Atomics.load(updates, 0) === seen) process.kill(process.pid, 'SIGKILL');
    waitMs = Math.min(waitMs, Math.max(1, leftMs), lookEveryMs);
  }
  Atomics.wait(updates, 0, seen, waitMs);
}
`;

export function startWatchdog(onTrouble: (error: unknown) => void): Watchdog {
  const buffer = new SharedArrayBuffer(48);
  const numbers = new BigInt64Array(buffer, 0, 5);
  const updates = new Int32Array(buffer, 40, 1);
  const worker = new Worker(source, { eval: true, workerData: { buffer, lookEveryMs }, env: {} });
  worker.unref();
  worker.on('error', onTrouble);
  const update = (deadline: Deadline | undefined) => {
    const { monotonicMs = 0, wallMs = 0, sentAt, lostMs = 0 } = deadline ?? {};
    const shown = [monotonicMs, wallMs, sentAt?.monotonicMs ?? 0, sentAt?.wallMs ?? 0, lostMs];
    const rounded = shown.map((ms) => BigInt(Math.floor(ms * 1000)));
    Atomics.add(updates, 0, 1);
    for (const [index, number] of rounded.entries()) Atomics.store(numbers, index, number);
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
