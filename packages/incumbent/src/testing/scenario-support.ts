import type { Clock, Timer } from '../base/clock.ts';
import type { Backend } from '../core/contest.ts';
import type { Election } from '../core/election.ts';
import { createElection } from '../core/election.ts';
import type { ElectionOptions } from '../core/options.ts';
import type { Term } from '../core/term.ts';
import type { View } from '../record/record.ts';
import type { ConformanceContext } from './conformance.ts';

export type Context = ConformanceContext<Backend>;

export async function candidate(
  context: Context,
  id: string,
  options: Partial<ElectionOptions<unknown>> = {},
): Promise<Election> {
  const election = createElection({
    name: context.election,
    backend: await context.open(),
    clock: context.clock,
    lease: context.leaseMs,
    candidate: { id },
    ...options,
  });
  context.onCleanUp(() => within(context, 4, election.close()));
  return election;
}

/**
 * A store that is late once makes a view `unknown`, and then the same as before. That is no change.
 */
export function withoutTrouble(views: readonly View[]): View['state'][] {
  const states: View['state'][] = [];
  for (const [index, { state }] of views.entries()) {
    const isAsBefore = views[index - 1]?.state === 'unknown' && states.at(-1) === state;
    if (state !== 'unknown' && !isAsBefore) states.push(state);
  }
  return states;
}

/**
 * Awaited later, or never if the scenario fails before. Then its rejection must not
 * end the process.
 */
export function background<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Wins a term soon, because no other candidate holds the seat. */
export function campaign(context: Context, election: Election): Promise<Term> {
  return within(context, 4, election.campaign());
}

export async function end(context: Context, term: Term): Promise<Awaited<Term['ended']>> {
  await within(context, 4, term[Symbol.asyncDispose]());
  return term.ended;
}

/** Lets time pass until `promise` has settled, but no longer than so many leases. */
export async function within<T>(context: Context, leases: number, promise: Promise<T>): Promise<T> {
  let settled = false;
  const note = () => {
    settled = true;
  };
  promise.then(note, note);
  // Real time passes in the promise as well, so a bound in real time would be too short.
  const startMs = context.clock.monotonicMs();
  while (!settled) {
    if (context.clock.monotonicMs() - startMs > leases * context.leaseMs) {
      throw new Error(`not done within ${leases} leases of ${context.leaseMs} ms`);
    }
    await context.wait(context.leaseMs / 50, promise);
  }
  return promise;
}

export function eventually(
  context: Context,
  leases: number,
  what: string,
  holds: () => boolean,
): Promise<void> {
  const check = async () => {
    while (!holds()) await context.wait(context.leaseMs / 50);
  };
  return within(context, leases, check()).catch((error: unknown) => {
    throw new Error(`${what}: ${String(error)}`);
  });
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

export function compareTokens(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Time goes on, but no timer fires: code that lives by this clock stands still. */
export class StoppableClock implements Clock {
  readonly #clock: Clock;
  #stopped = false;
  #late: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  setTimer(callback: () => void, delayMs: number, background?: boolean): Timer {
    let cancelled = false;
    const fire = () => {
      if (cancelled) return;
      if (this.#stopped) this.#late.push(fire);
      else callback();
    };
    const timer = this.#clock.setTimer(fire, delayMs, background);
    return {
      cancel() {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  stop(): void {
    this.#stopped = true;
  }

  goOn(): void {
    this.#stopped = false;
    for (const fire of this.#late.splice(0)) fire();
  }
}
