import type { Connection } from './connection.ts';
import type { Driver } from './driver.ts';
import { IterationBrokenError, NotRoutableError, NotSentError } from './errors.ts';
import type { ErrorKind } from './outcome.ts';
import { isAllRefused, kindOf } from './outcome.ts';
import type { RoutedCall, Tour } from './routed-client.ts';
import { routedClient } from './routed-client.ts';
import type { Job } from './router.ts';
import type { Reign } from './view.ts';

/** The job of one call of the routed client. */
export function callJob<Client extends object>(
  call: RoutedCall<Client>,
  tour?: Tour,
): Job<Client, unknown> {
  const { command, isPipeline } = call;
  return {
    label: command.label,
    isRead: command.goesTo === 'any',
    async use(connection, reign) {
      if (tour !== undefined) {
        tour.reign ??= reign;
        if (tour.reign !== reign) {
          throw new IterationBrokenError(
            `the primary was moved in the middle of the iteration (${command.label}): begin it anew`,
          );
        }
      }
      return connection.run((client) => call.send(client));
    },
    kindOf: (error) =>
      error instanceof IterationBrokenError
        ? 'misused'
        : kindOf(error, { isPipeline, isScript: command.isScript }),
    isRefused: (value) => isPipeline && isAllRefused(value),
  };
}

/** The job of several commands on the connection of one term, which are judged together. */
export function writeJob<Client extends object, Value>(
  driver: Driver<Client>,
  work: (redis: Client, at: Reign) => Value | Promise<Value>,
): Job<Client, Value> {
  let run = new Run<Client>();
  return {
    label: 'a write',
    isRead: false,
    async use(connection, reign, mayGoOn) {
      const own = new Run<Client>();
      run = own;
      const redis = routedClient({
        driver,
        pinned: true,
        perform: (call) => own.perform(connection, call, mayGoOn),
        isReady: () => connection.isOpen,
      });
      try {
        const { term, primary } = reign as Reign;
        return await work(redis, { term, primary });
      } finally {
        await own.end();
      }
    },
    kindOf: (error) => run.kindOf(error),
    isRefused: () => false,
  };
}

/**
 * One run of the caller's work. Nothing is sent after its end, because the next run may have begun.
 */
class Run<Client extends object> {
  readonly #errors = new WeakSet<object>();
  readonly #inFlight = new Set<Promise<unknown>>();
  /** Commands that were sent and may have changed data. */
  #maybeApplied = 0;
  #ended = false;

  async perform(
    connection: Connection<Client>,
    call: RoutedCall<Client>,
    mayGoOn: () => boolean,
  ): Promise<unknown> {
    if (this.#ended) {
      throw new NotRoutableError('the client that write() gives is not to be used after its work');
    }
    const { command, isPipeline } = call;
    const changes = command.goesTo === 'any' ? 0 : 1;
    this.#maybeApplied += changes;
    try {
      if (!mayGoOn()) throw new NotSentError('the view of the primary has lapsed meanwhile');
      const sent = connection.run((client) => call.send(client));
      this.#inFlight.add(sent);
      return await sent.finally(() => this.#inFlight.delete(sent));
    } catch (error) {
      if (typeof error === 'object' && error !== null) this.#errors.add(error);
      const kind = kindOf(error, { isPipeline, isScript: command.isScript });
      if (kind === 'refused') this.#maybeApplied -= changes;
      throw error;
    }
  }

  /** Waits also for commands that the work did not wait for. */
  async end(): Promise<void> {
    this.#ended = true;
    await Promise.allSettled([...this.#inFlight]);
  }

  kindOf(error: unknown): ErrorKind {
    // An error that the work itself throws goes to the caller unchanged.
    if (typeof error !== 'object' || error === null || !this.#errors.has(error)) return 'misused';
    const kind = kindOf(error, { isPipeline: false, isScript: false });
    if (this.#maybeApplied === 0) return kind === 'unknown' ? 'refused' : kind;
    if (kind !== 'refused') return kind;
    // A part of the work was applied. A second run on another connection would repeat it.
    return error instanceof NotSentError ? 'unknown' : 'answered';
  }
}
