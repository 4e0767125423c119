import { expect } from 'vitest';
import type { State, StateChange, ZooKeeper } from '../../src/index.ts';
import { ZooKeeperError } from '../../src/index.ts';

/** A limit for what must come at some time. It only turns a hang into a failure. */
const hangMs = 150_000;

/** The clock of `sentAt` and of `StateChange.atMs`. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** Rejects if `promise` is still pending after the limit. */
export async function soon<T>(promise: Promise<T>, what: string, boundMs = hangMs): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`never: ${what}`)), boundMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Asks until the answer is true. */
export async function until(what: string, ask: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + hangMs;
  while (!(await ask())) {
    if (performance.now() > deadlineMs) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Lets so much time pass. For faults that last, not for something to settle. */
export async function lasting(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** The next change into a state. To be called before its cause. */
export function nextState(client: ZooKeeper, state: State): Promise<StateChange> {
  let stop: (() => void) | undefined;
  const change = new Promise<StateChange>((resolve) => {
    stop = client.onState((next) => {
      if (next.state === state) resolve(next);
    });
  });
  return soon(change, `the state ${state}`).finally(() => stop?.());
}

/** All states that a client enters from now on. */
export function recordStates(client: ZooKeeper): State[] {
  const states: State[] = [];
  client.onState(({ state }) => states.push(state));
  return states;
}

/** The error of `promise`. */
export async function refusal(promise: Promise<unknown>): Promise<ZooKeeperError> {
  const error = await soon(
    promise.then(
      (value) => expect.fail(`this should have been refused; it gave ${String(value)}`),
      (reason: unknown) => reason,
    ),
    'the call settles',
  );
  expect(error).toBeInstanceOf(ZooKeeperError);
  return error as ZooKeeperError;
}

/** How a call ended, and when. For calls that are looked at only after something else has come. */
export interface Settled<T> {
  readonly value?: T;
  readonly error?: ZooKeeperError;
  readonly atMs: number;
}

export function settling<T>(promise: Promise<T>): Promise<Settled<T>> {
  return soon(
    promise.then(
      (value) => ({ value, atMs: monotonicMs() }),
      (error: ZooKeeperError) => ({ error, atMs: monotonicMs() }),
    ),
    'the call settles',
  );
}
