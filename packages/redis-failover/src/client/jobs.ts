import type { Connection } from './connection.ts';
import type { Driver } from './driver.ts';
import { NotRoutableError, NotSentError } from './errors.ts';
import type { ErrorKind } from './outcome.ts';
import { isAllRefused, kindOf } from './outcome.ts';
import type { RoutedCall } from './routed-client.ts';
import { routedClient } from './routed-client.ts';
import type { Job } from './router.ts';
import type { Reign } from './view.ts';

/** One call of the routed client. */
export function callJob<Client extends object>(call: RoutedCall<Client>): Job<Client, unknown> {
  const { command, isPipeline } = call;
  return {
    label: command.label,
    isRead: command.goesTo === 'any',
    use: (connection) => connection.run((client) => call.send(client)),
    kindOf: (error) => kindOf(error, { isPipeline, isScript: command.isScript }),
    isRefused: (value) => isPipeline && isAllRefused(value),
  };
}

/** Several commands on the connection of one term, judged together. */
export function writeJob<Client extends object, Value>(
  driver: Driver<Client>,
  work: (redis: Client, at: Reign) => Value | Promise<Value>,
): Job<Client, Value> {
  const errors = new WeakSet<object>();
  /** What was sent and may have changed something. */
  let maybeApplied = 0;
  let ended = false;
  const perform = async (
    connection: Connection<Client>,
    call: RoutedCall<Client>,
    over: AbortSignal,
  ) => {
    // The call has been answered already, with an unknown outcome: nothing is to be added to it.
    over.throwIfAborted();
    if (ended) {
      throw new NotRoutableError('the client that write() gives is not to be used after its work');
    }
    const { command, isPipeline } = call;
    const changes = command.goesTo === 'any' ? 0 : 1;
    maybeApplied += changes;
    try {
      return await connection.run((client) => call.send(client));
    } catch (error) {
      errors.add(error as object);
      const kind = kindOf(error, { isPipeline, isScript: command.isScript });
      if (kind === 'refused' || kind === 'misused') maybeApplied -= changes;
      throw error;
    }
  };
  return {
    label: 'a write',
    isRead: false,
    async use(connection, reign, over) {
      maybeApplied = 0;
      ended = false;
      const redis = routedClient({
        driver,
        pinned: true,
        perform: (call) => perform(connection, call, over),
        isReady: () => connection.isOpen,
      });
      try {
        return await work(redis, reign as Reign);
      } finally {
        ended = true;
      }
    },
    kindOf(error): ErrorKind {
      // What the caller throws is the caller's.
      if (typeof error !== 'object' || error === null || !errors.has(error)) return 'misused';
      const kind = kindOf(error, { isPipeline: false, isScript: false });
      if (maybeApplied === 0) return kind === 'unknown' ? 'refused' : kind;
      if (kind !== 'refused') return kind;
      // A part of it was applied: on another connection it would be repeated.
      return error instanceof NotSentError ? 'unknown' : 'answered';
    },
    isRefused: () => false,
  };
}
