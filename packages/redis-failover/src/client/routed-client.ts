/**
 * A proxy that looks like a client of the driver, and takes each call to where it belongs. No
 * method of the model is called: the model only tells which names are methods.
 */
import type { Command } from './commands.ts';
import { classify, textOf } from './commands.ts';
import type { Driver } from './driver.ts';
import { NotRoutableError } from './errors.ts';
import type { Reign } from './view.ts';

export interface RoutedCall<Client extends object> {
  readonly command: Command;
  /** Whether it is several commands without a transaction. */
  readonly isPipeline: boolean;
  send(client: Client): unknown;
}

/** An iteration by cursors. It stays with the primary that gave the first reply. */
export interface Tour {
  reign: Reign | undefined;
}

export interface RoutedOptions<Client extends object> {
  readonly driver: Driver<Client>;
  /** Whether all calls go over one connection of one term. */
  readonly pinned: boolean;
  /**
   * @param signal of `withAbortSignal`, or of the options of a command
   * @param tour the iteration that the call belongs to
   */
  perform(
    call: RoutedCall<Client>,
    signal: AbortSignal | undefined,
    tour: Tour | undefined,
  ): Promise<unknown>;
  isReady(): boolean;
}

type Method = (...args: unknown[]) => unknown;
type Methods = Record<string, Method | undefined>;

/** Methods of node-redis that give another client for the same connection. */
const derivations = words('withCommandOptions withTypeMapping withAbortSignal asap');
/** These only call other methods of `this`. */
const iterators =
  /^(scan|hScan|hScanValues|hScanNoValues|sScan|zScan)Iterator$|^[hsz]?scan(Buffer)?Stream$|^createScanStream$/;
const raw = words('sendCommand send_command call callBuffer');
const chains = words('multi MULTI pipeline');
const transactions = words('multi MULTI');
const executions = words('exec EXEC execTyped execBuffer execAsPipeline execAsPipelineTyped');
const pipelines = words('execAsPipeline execAsPipelineTyped');
/** Methods of an event emitter, and those that make, change or end a connection. */
const ownConnection = words(`
  on once off addListener removeListener removeAllListeners prependListener prependOnceListener emit
  listeners listenerCount eventNames setMaxListeners getMaxListeners connect close destroy disconnect
  duplicate ref unref reset resetIfDirty legacy createPool monitor MONITOR executeIsolated end
  defineCommand createBuiltinCommand addBuiltinCommand setStatus flushQueue recoverFromFatalError
  handleReconnection silentEmit reAuthenticate extendPubSubListeners extendPubSubChannelListeners
  getPubSubListeners setDirtyWatch
`);

export function routedClient<Client extends object>(options: RoutedOptions<Client>): Client {
  return routed(options, (client) => client);
}

function routed<Client extends object>(
  options: RoutedOptions<Client>,
  derive: (client: Client) => Client,
  signal?: AbortSignal,
  tour?: Tour,
): Client {
  const { driver, pinned, perform, isReady } = options;
  const model = driver.model as Client & Methods;

  const call = (
    path: readonly string[],
    label: string,
    words: readonly unknown[],
    args: unknown[],
  ) => {
    const command = classify(label, words, pinned, driver.own);
    const send = (client: Client) => apply(derive(client), path, args);
    return refusedOr(command, () => perform({ command, isPipeline: false, send }, signal, tour));
  };

  const method = (path: readonly string[]): Method => {
    const [name = ''] = path;
    if (path.length === 1 && raw.has(name)) {
      return (...args) =>
        withCallback(args, (rest) => {
          const [first, ...others] = rest.flat(1) as unknown[];
          // A Command of ioredis can be sent only once, and a routed call may be sent again.
          if (typeof first !== 'string' && !(first instanceof Uint8Array)) {
            throw new NotRoutableError(
              `${name} takes the words of a command here: redis.call('GET', 'key')`,
            );
          }
          return call(path, textOf(first) as string, others, rest);
        });
    }
    return (...args) => withCallback(args, (rest) => call(path, path.join('.'), rest, rest));
  };

  const look = (path: readonly string[], target: object): object =>
    // A proxy of an empty object: printing it must not print the model, which holds the password.
    new Proxy({} as object, {
      get(_, key) {
        if (typeof key !== 'string' || key === 'then') return undefined;
        const value = (target as Record<string, unknown>)[key];
        if (path.length > 0) {
          return typeof value === 'function' ? method([...path, key]) : value;
        }
        if (key === 'isOpen' || key === 'isReady') return isReady();
        if (ownConnection.has(key) && typeof value === 'function')
          return () => refuseConnection(key);
        if (chains.has(key)) {
          return (...args: unknown[]) => chain(options, derive, key, args, signal);
        }
        if (derivations.has(key) && typeof value === 'function') {
          return (...args: unknown[]) =>
            routed(
              options,
              (client) => apply(derive(client), [key], args) as Client,
              signalIn(key, args) ?? signal,
            );
        }
        if (iterators.test(key) && typeof value === 'function') {
          return (...args: unknown[]) =>
            value.apply(routed(options, derive, signal, tour ?? { reign: undefined }), args);
        }
        if (typeof value === 'function') return method([key]);
        // A module of node-redis, such as `json`.
        const isNamespace = typeof value === 'object' && value !== null && '_self' in value;
        return isNamespace ? look([key], value) : value;
      },
      has: (_, key) => key in target,
      set() {
        return false;
      },
    });
  const proxy = look([], model) as Client;
  return proxy;
}

/** Records commands until they are executed together. Only then a connection is chosen. */
function chain<Client extends object>(
  { driver, perform, pinned }: RoutedOptions<Client>,
  derive: (client: Client) => Client,
  kind: string,
  begin: unknown[],
  signal: AbortSignal | undefined,
): object {
  const [first, second] = begin;
  const settings = (Array.isArray(first) ? second : first) as
    | { readonly pipeline?: unknown }
    | undefined;
  if (settings?.pipeline === false) {
    throw new NotRoutableError(
      `${kind}({ pipeline: false }) keeps a transaction open on one connection, and a routed client ` +
        `has none: leave it out, and call exec() of what ${kind}() gives`,
    );
  }
  const calls: [name: string, args: unknown[]][] = [];
  // `multi([['set', 'k', 'v']])` of ioredis.
  if (Array.isArray(first)) {
    calls.push(['addBatch', [first]]);
    begin = begin.slice(1);
  }
  const isTransaction = transactions.has(kind);
  const execute = (name: string, args: unknown[]) =>
    withCallback(args, (rest) => {
      const isPipeline = !isTransaction || pipelines.has(name) || rest[0] === true;
      const label = isPipeline ? 'a pipeline' : 'a transaction';
      const refused = calls
        .flatMap(([command, words]) => classifyChained(command, words, pinned, driver.own))
        .find((command) => command.refused !== undefined);
      if (refused !== undefined) return refusedOr(refused, () => undefined as never);
      const command: Command = { label, goesTo: 'primary', refused: undefined, isScript: false };
      const send = (client: Client) => {
        let at = apply(derive(client), [kind], begin) as object;
        for (const [each, words] of calls) at = apply(at, [each], words) as object;
        return apply(at, [name], rest);
      };
      return perform({ command, isPipeline, send }, signal, undefined);
    });
  const recorder: object = new Proxy(
    {},
    {
      get(_, key) {
        if (typeof key !== 'string' || key === 'then') return undefined;
        if (key === 'length') return calls.length;
        return (...args: unknown[]) => {
          if (executions.has(key)) return execute(key, args);
          calls.push([key, args]);
          return recorder;
        };
      },
    },
  );
  return recorder;
}

/**
 * The commands of one recorded call. A command that is refused alone is refused in a transaction,
 * too. A batch of ioredis is several commands.
 */
function classifyChained(
  name: string,
  args: readonly unknown[],
  pinned: boolean,
  own: ReadonlySet<string>,
): Command[] {
  if (name === 'addBatch') {
    const [batch] = args;
    if (!Array.isArray(batch)) return [];
    return batch.flatMap((each: readonly unknown[]) =>
      classifyChained(String(each[0]), each.slice(1), pinned, own),
    );
  }
  if (name !== 'addCommand' && !raw.has(name)) return [classify(name, args, pinned, own)];
  const [first, ...rest] = args.flat(1);
  return [classify(textOf(first) ?? String(first), rest, pinned)];
}

/** The signal of a call of node-redis that gives a client with one. */
function signalIn(name: string, [first]: readonly unknown[]): AbortSignal | undefined {
  const signal =
    name === 'withAbortSignal'
      ? first
      : (first as { readonly abortSignal?: unknown } | undefined)?.abortSignal;
  return signal instanceof AbortSignal ? signal : undefined;
}

function refusedOr(command: Command, go: () => Promise<unknown>): Promise<unknown> {
  if (command.refused === undefined) return go();
  return Promise.reject(
    new NotRoutableError(`${command.label} cannot be routed: ${command.refused}`),
  );
}

function refuseConnection(name: string): never {
  throw new NotRoutableError(
    `${name} belongs to one connection, and a routed client has none: failover.onChange() tells of ` +
      'changes, failover.close() ends it, and await failover.dedicated() gives a connection of your own',
  );
}

/** Methods of ioredis also take a callback as their last argument. */
function withCallback(args: unknown[], go: (args: unknown[]) => unknown): unknown {
  const callback = args.at(-1);
  if (typeof callback !== 'function') return go(args);
  const promise = go(args.slice(0, -1)) as Promise<unknown>;
  promise.then(
    (value) => callback(null, value),
    (error: unknown) => callback(error),
  );
  return promise;
}

function apply(target: object, path: readonly string[], args: unknown[]): unknown {
  let at: unknown = target;
  let owner: unknown = target;
  for (const name of path) {
    owner = at;
    at = (at as Record<string, unknown>)[name];
  }
  return (at as Method).apply(owner, args);
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}
