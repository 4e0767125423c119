import type { Clock, Timer } from '@incumbent/zookeeper';
import { formatDuration } from 'incumbent';
import { systemClock } from '../clock.ts';
import type { NodeAddress } from '../node-address.ts';
import { NodeRefusedError } from '../redis/errors.ts';
import type { Bound } from './bound.ts';
import { Bounds, TimeUp } from './bound.ts';
import type { Connection } from './connection.ts';
import type { Connections } from './connections.ts';
import { ClosedError, NoPrimaryError, OutcomeUnknownError } from './errors.ts';
import type { ErrorKind } from './outcome.ts';
import type { Reign } from './view.ts';
import type { ViewFollower } from './view-follower.ts';

/**
 * The pause after a node could not be reached, or refused a command. It doubles with each failure.
 */
const pauses = { shortestMs: 10, longestMs: 250 };

export interface RouterOptions {
  readonly maxWaitMs: number;
  readonly reads: 'replicas' | 'primary';
  readonly retryAmbiguous: boolean;
  /** Default: the machine's. */
  readonly timers?: Clock;
}

/** A job: the commands to send, and how to read their reply. */
export interface Job<Client extends object, Value> {
  /** The name for messages. */
  readonly label: string;
  /** Whether it changes nothing, and so may go to a replica. */
  readonly isRead: boolean;
  /**
   * @param reign the term of the primary; undefined on a replica
   * @param mayGoOn false once no caller waits for it any more, or the view is over
   */
  use(
    connection: Connection<Client>,
    reign: Reign | undefined,
    mayGoOn: () => boolean,
  ): Promise<Value>;
  kindOf(error: unknown): ErrorKind;
  /** Whether all of it was refused, although `use` resolved. */
  isRefused(value: Value): boolean;
}

/** A connection for one caller alone; see `connectAlone`. */
export interface Alone<Client extends object> {
  readonly connection: Connection<Client>;
  /** The term of the primary; undefined for a replica. */
  readonly reign: Reign | undefined;
}

/**
 * The result of one attempt. If it has to be repeated: why, and the term in which it may have been
 * applied.
 */
type Attempt<Value> =
  | { readonly done: true; readonly value: Value }
  | { readonly done: false; readonly why: unknown; readonly maybeApplied?: Reign };

/**
 * Takes commands to the nodes that they belong to, until they are answered or their time is over.
 */
export class Router<Client extends object> {
  readonly #view: ViewFollower;
  readonly #connections: Connections<Client>;
  readonly #options: RouterOptions;
  readonly #timers: Clock;
  readonly #bounds: Bounds;

  constructor(view: ViewFollower, connections: Connections<Client>, options: RouterOptions) {
    this.#view = view;
    this.#connections = connections;
    this.#options = options;
    this.#timers = options.timers ?? systemClock;
    this.#bounds = new Bounds(this.#timers);
  }

  bound(signal?: AbortSignal, ms: number = this.#options.maxWaitMs): Bound {
    return this.#bounds.begin(ms, signal);
  }

  /** Ends all calls, including those that begin later. */
  close(reason: Error): void {
    this.#bounds.close(reason);
  }

  /**
   * @returns the driver's result. Rejects with NoPrimaryError, OutcomeUnknownError, ClosedError,
   *   NodeRefusedError, the error that Redis answers, and with the reason of `signal` if nothing
   *   was sent
   */
  async perform<Value>(job: Job<Client, Value>, signal?: AbortSignal): Promise<Value> {
    using bound = this.bound(signal);
    const attempt =
      job.isRead && this.#options.reads === 'replicas'
        ? () => this.#read(job, bound)
        : () => this.#onPrimary(job, bound);
    let why: unknown;
    let maybeApplied: Reign | undefined;
    for (let failures = 0; ; failures += 1) {
      try {
        const result = await attempt();
        if (result.done) return result.value;
        why = result.why;
        maybeApplied = result.maybeApplied ?? maybeApplied;
        await this.#pause(pauseMs(failures), bound);
      } catch (error) {
        if (error instanceof OutcomeUnknownError || maybeApplied === undefined) {
          throw this.#over(job.label, error, why);
        }
        throw this.#unknown(job, maybeApplied, why);
      }
    }
  }

  /**
   * Makes a connection for one caller alone, to the primary or to a replica.
   * @returns rejects like `perform`
   */
  async connectAlone(
    role: 'primary' | 'replica',
    signal: AbortSignal | undefined,
  ): Promise<Alone<Client>> {
    using bound = this.bound(signal);
    let why: unknown;
    for (let failures = 0; ; failures += 1) {
      try {
        const reign = role === 'primary' ? await this.#view.waitUntilUsable(bound) : undefined;
        const address = reign?.primary ?? (await this.#anyReplica(bound));
        const opening = this.#connections.own(address, reign);
        try {
          return { connection: await bound.race(opening), reign };
        } catch (error) {
          opening.then(
            (late) => late.close(),
            () => {},
          ); // The caller no longer waits for it.
          why = unlessFinal(error, bound).why;
        }
        await this.#pause(pauseMs(failures), bound);
      } catch (error) {
        throw this.#over('a connection of its own', error, why);
      }
    }
  }

  #anyReplica(bound: Bound): Promise<NodeAddress> {
    return this.#view.until(() => shuffled(this.#view.picture.replicas)[0], bound);
  }

  /**
   * One attempt on the primary, whose reply is judged by the view. A read whose reply may be stale
   * is repeated, like a refused write.
   */
  async #onPrimary<Value>(job: Job<Client, Value>, bound: Bound): Promise<Attempt<Value>> {
    const reign = await this.#view.waitUntilUsable(bound);
    let connection: Connection<Client>;
    try {
      connection = await bound.race(this.#connections.primary(reign));
    } catch (error) {
      return unlessFinal(error, bound);
    }
    this.#view.expectConfirmation(connection.establishedMs);
    // While the connection was opened the view may have ended, or the primary moved.
    const mayGoOn = () => !bound.isOver && this.#view.usable() === reign;
    if (!mayGoOn()) return { done: false, why: undefined };
    let answer: { readonly value: Value } | { readonly error: unknown };
    try {
      answer = { value: await bound.race(job.use(connection, reign, mayGoOn)) };
    } catch (error) {
      if (bound.isOver && error === bound.reason) throw this.#unknown(job, reign, error);
      const kind = job.kindOf(error);
      if (kind === 'misused') throw error;
      if (kind === 'refused') return { done: false, why: error };
      if (kind === 'unknown') return this.#maybeAgain(job, reign, error);
      answer = { error };
    }
    // Nothing may be awaited between the arrival of the reply and this.
    let stands: boolean;
    try {
      stands = await this.#view.settle(reign, connection.establishedMs, bound);
    } catch (error) {
      throw this.#unknown(job, reign, error);
    }
    if (!stands) return this.#maybeAgain(job, reign, new Error('the primary was moved meanwhile'));
    if ('error' in answer) throw answer.error;
    if (job.isRefused(answer.value)) return { done: false, why: undefined };
    return { done: true, value: answer.value };
  }

  /** One attempt of a read: on a random replica, then on the others, then on the primary. */
  async #read<Value>(job: Job<Client, Value>, bound: Bound): Promise<Attempt<Value>> {
    let why: unknown;
    const isReplica = (address: NodeAddress) => this.#view.picture.replicas.includes(address);
    for (const address of shuffled(this.#view.picture.replicas)) {
      // The managers may have judged it unavailable while other replicas were tried.
      if (!isReplica(address)) continue;
      try {
        const connection = await bound.race(this.#connections.replica(address));
        if (!isReplica(address)) {
          connection.retire();
          continue;
        }
        const value = await bound.race(job.use(connection, undefined, () => !bound.isOver));
        return { done: true, value };
      } catch (error) {
        if (bound.isOver && error === bound.reason) throw error;
        const kind = job.kindOf(error);
        if ((kind === 'answered' && !lacksScript(error)) || kind === 'misused') throw error;
        why = error;
      }
    }
    if (this.#view.usable() !== undefined) return this.#onPrimary(job, bound);
    return { done: false, why };
  }

  #maybeAgain<Value>(job: Job<Client, Value>, reign: Reign, cause: unknown): Attempt<Value> {
    if (job.isRead) return { done: false, why: cause };
    if (this.#options.retryAmbiguous) return { done: false, why: cause, maybeApplied: reign };
    throw this.#unknown(job, reign, cause);
  }

  #unknown<Value>(job: Job<Client, Value>, reign: Reign, cause: unknown): Error {
    if (job.isRead) return cause as Error;
    const why =
      cause instanceof TimeUp
        ? `no reply that could be believed came within ${formatDuration(this.#options.maxWaitMs)}, and ${this.#view.explain()}`
        : cause instanceof Error
          ? cause.message
          : `it was given up (${String(cause)})`;
    const { term, primary } = reign;
    const of = term === undefined ? '' : ` of term ${term}`;
    return new OutcomeUnknownError(
      `whether ${job.label} was applied is not known: it was sent to ${primary}${of}; ${why}`,
      reign,
      { cause },
    );
  }

  /** Waits for `ms`, or until there is another term, or until the call's time is over. */
  async #pause(ms: number, bound: Bound): Promise<void> {
    const before = this.#view.usable();
    let timer: Timer | undefined;
    let forget = () => {};
    const over = new Promise<void>((resolve) => {
      timer = this.#timers.setTimer(resolve, ms);
      forget = this.#view.onChange(() => {
        const now = this.#view.usable();
        if (now !== undefined && now !== before) resolve();
      });
    });
    try {
      await bound.race(over);
    } finally {
      timer?.cancel();
      forget();
    }
  }

  /** The error of a call that was not answered. */
  #over(label: string, error: unknown, why: unknown): unknown {
    if (error instanceof ClosedError) {
      return new ClosedError(`${label}: ${error.message}`, { cause: error });
    }
    if (!(error instanceof TimeUp)) return error;
    const waited = formatDuration(this.#options.maxWaitMs);
    const last = why instanceof Error ? `; the last attempt: ${why.message}` : '';
    const usable = this.#view.usable();
    const reason =
      usable === undefined ? this.#view.explain() : `${usable.primary} could not be used`;
    return new NoPrimaryError(`${label} was not done within ${waited}: ${reason}${last}`, {
      cause: why,
    });
  }
}

/**
 * Scripts are loaded on the primary. Replicas get only their effects, so they may lack a script.
 */
function lacksScript(error: unknown): boolean {
  return (error as Error).message.startsWith('NOSCRIPT');
}

function pauseMs(failures: number): number {
  return Math.min(pauses.shortestMs * 2 ** failures, pauses.longestMs);
}

/** A node that refuses our credentials will refuse them again, so the call is not repeated. */
function unlessFinal(
  error: unknown,
  bound: Bound,
): { readonly done: false; readonly why: unknown } {
  const isOver = bound.isOver && error === bound.reason;
  if (isOver || error instanceof NodeRefusedError) throw error;
  return { done: false, why: error };
}

function shuffled<Value>(values: readonly Value[]): Value[] {
  const rest = [...values];
  for (let last = rest.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1));
    [rest[last], rest[other]] = [rest[other] as Value, rest[last] as Value];
  }
  return rest;
}
