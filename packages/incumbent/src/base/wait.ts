import { setMaxListeners } from 'node:events';
import type { Clock, Timer } from './clock.ts';
import { maxTimerMs, systemClock } from './clock.ts';
import { OperationTimeoutError } from './errors.ts';

/**
 * Resolves `ms` from now. Rejects with `signal.reason` as soon as `signal` aborts.
 * @param background true: this wait alone does not keep the process alive
 */
export function sleep(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  background = false,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    let timer: Timer;
    const onAbort = () => {
      timer.cancel();
      reject(signal.reason);
    };
    const until = clock.monotonicMs() + ms;
    const arm = () => {
      const left = until - clock.monotonicMs();
      timer = clock.setTimer(
        () => {
          if (until - clock.monotonicMs() > 0) return arm();
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
        Math.min(Math.max(0, left), maxTimerMs),
        background,
      );
    };
    arm();
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Runs one store operation with a bound that holds even if the operation ignores its signal. In the
 * first two cases below, the outcome of the operation is unknown.
 * @throws OperationTimeoutError after `timeoutMs`
 * @throws `signal.reason` when aborted
 * @throws the operation's own error otherwise
 */
export function bounded<T>(
  clock: Clock,
  what: string,
  timeoutMs: number,
  signal: AbortSignal,
  operation: (signal: AbortSignal) => Promise<T>,
  onAnswer?: (isAnswered: boolean) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const controller = new AbortController();
    const giveUp = (reason: unknown) => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
      reject(reason);
      controller.abort(reason);
    };
    const onAbort = () => giveUp(signal.reason);
    const timer = setGiveUpTimer(clock, timeoutMs, () =>
      giveUp(new OperationTimeoutError(what, timeoutMs)),
    );
    signal.addEventListener('abort', onAbort);
    const settle = (finish: () => void) => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
      finish();
    };
    Promise.resolve()
      .then(() => {
        controller.signal.throwIfAborted();
        return operation(controller.signal);
      })
      .then(
        (value) =>
          settle(() => {
            onAnswer?.(true);
            resolve(value);
          }),
        (error) => settle(() => reject(error)),
      );
  });
}

/**
 * After a process stood still, its timers are due before it has read its sockets. So the answers
 * that have arrived are read first. Otherwise a busy process gives up operations that were answered
 * in time, asks again, and is busier still.
 */
function setGiveUpTimer(clock: Clock, ms: number, giveUp: () => void): Timer {
  if (clock !== systemClock) return clock.setTimer(giveUp, ms);
  let immediate: NodeJS.Immediate | undefined;
  const timer = clock.setTimer(() => {
    immediate = setImmediate(giveUp);
  }, ms);
  return {
    cancel() {
      timer.cancel();
      clearImmediate(immediate);
    },
  };
}

/** Settles as `promise` does, or rejects with the reason of `signal`. The operation itself goes on. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** A flag that one loop waits for and any code may raise. A raise is kept until the loop waits. */
export class Wakeup {
  #raised = false;
  #waiter: (() => void) | undefined;

  raise(): void {
    this.#raised = true;
    this.#waiter?.();
  }

  /** Forgets a raise that the loop has not waited for yet. */
  clear(): void {
    this.#raised = false;
  }

  /**
   * Resolves when raised (and lowers the flag) or after `ms`, whichever comes first.
   * @returns true when it was raised
   * @throws `signal.reason` when aborted
   */
  wait(clock: Clock, ms: number, signal?: AbortSignal, background = false): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (this.#raised) {
        this.#raised = false;
        return resolve(true);
      }
      const finish = (settle: () => void) => {
        timer.cancel();
        signal?.removeEventListener('abort', onAbort);
        this.#waiter = undefined;
        settle();
      };
      const onAbort = () => finish(() => reject(signal?.reason));
      const timer = clock.setTimer(
        () => finish(() => resolve(false)),
        Math.min(Math.max(0, ms), maxTimerMs),
        background,
      );
      signal?.addEventListener('abort', onAbort);
      this.#waiter = () => {
        this.#raised = false;
        finish(() => resolve(true));
      };
    });
  }
}

/**
 * A promise that other code resolves. Resolving it twice does nothing. The promise is made when it
 * is first asked for: most are never waited for.
 */
export class Deferred<T> {
  #promise: Promise<T> | undefined;
  #fulfil: ((value: T) => void) | undefined;
  #result: { readonly value: T } | undefined;

  get promise(): Promise<T> {
    this.#promise ??=
      this.#result === undefined
        ? new Promise((resolve) => {
            this.#fulfil = resolve;
          })
        : Promise.resolve(this.#result.value);
    return this.#promise;
  }

  resolve(value: T): void {
    if (this.#result !== undefined) return;
    this.#result = { value };
    this.#fulfil?.(value);
  }
}

/**
 * Calls `listener` when `signal` aborts, at once if it has.
 * @returns a function that takes the listener away again
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    listener();
    return () => {};
  }
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

/**
 * A signal that aborts with the first of two, and a function that ends the connection.
 * `AbortSignal.any` would not do: on Node 20 it keeps its signal for as long as the sources live.
 */
export function anyOf(
  first: AbortSignal | undefined,
  second: AbortSignal,
): readonly [AbortSignal, () => void] {
  if (first === undefined) return [second, () => {}];
  // A process may share one signal among all its elections. Node would warn at the eleventh.
  setMaxListeners(0, first);
  const either = new AbortController();
  const removers = [first, second].map((signal) =>
    onAbort(signal, () => either.abort(signal.reason)),
  );
  return [
    either.signal,
    () => {
      for (const remove of removers) remove();
    },
  ];
}
