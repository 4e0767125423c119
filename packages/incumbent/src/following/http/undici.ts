/**
 * The parts of undici that are used, as they are since version 7. Nothing is imported: the client
 * is the user's.
 */
import { InvalidOptionError } from '../../base/errors.ts';
import { electionHeader, readTokens, tokenHeader, writeTokens } from '../headers.ts';

export type UndiciHeaders = Record<string, string | string[] | undefined>;

// biome-ignore lint/suspicious/noExplicitAny: undici's narrower types, not imported, fit in no other way
type Undicis = any;

/** undici's description of a request. */
export interface DispatchOptions {
  origin?: Undicis;
  path: string;
  method: string;
  headers?: Undicis;
  body?: Undicis;
  idempotent?: boolean;
}

/** undici's control over a request. */
export interface DispatchController {
  readonly aborted: boolean;
  readonly paused: boolean;
  readonly reason: Error | null;
  rawHeaders?: unknown;
  rawTrailers?: unknown;
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

/** undici's handler of an answer. */
export interface DispatchHandler {
  onRequestStart?(controller: DispatchController, context: unknown): void;
  onRequestUpgrade?(
    controller: DispatchController,
    status: number,
    headers: UndiciHeaders,
    socket: unknown,
  ): void;
  onResponseStart?(
    controller: DispatchController,
    status: number,
    headers: UndiciHeaders,
    statusText?: string,
  ): void;
  onResponseData?(controller: DispatchController, chunk: Uint8Array): void;
  onResponseEnd?(controller: DispatchController, trailers: UndiciHeaders): void;
  onResponseError?(controller: DispatchController, error: Error): void;
}

/** undici's `dispatch`: sends a request, and gives the answer to the handler. */
export type Dispatch = (options: DispatchOptions, handler: DispatchHandler) => boolean;

/** For `new Agent().compose(…)`. */
export type Interceptor = (dispatch: Dispatch) => Dispatch;

/**
 * Dispatchers of undici 7 always give interceptors the present handlers. Those of undici 8 give
 * them as they came, and the `fetch` of some versions of Node has older ones.
 * @throws InvalidOptionError for the handlers of undici before version 7
 */
export function checkHandler(handler: DispatchHandler): void {
  if (typeof handler?.onRequestStart !== 'function') {
    throw new InvalidOptionError(
      'whoever made this request speaks an older handler interface than interceptors of undici 7 ' +
        "and later: Node's own fetch does with a dispatcher of undici 8, so use the fetch of that " +
        "undici (import { fetch } from 'undici'); undici before 7 cannot be used",
    );
  }
}

/**
 * The headers with one more token, as names and values in turn. A higher one of the
 * same election stays.
 * @throws InvalidOptionError when the present headers hold no list of tokens
 */
export function withToken(headers: unknown, election: string, token: bigint): unknown[] {
  const kept: unknown[] = [];
  const elections: string[] = [];
  const numbers: string[] = [];
  for (const [name, value] of pairsOf(headers)) {
    const lower = String(name).toLowerCase();
    if (lower === electionHeader) elections.push(String(value));
    else if (lower === tokenHeader) numbers.push(String(value));
    else kept.push(name, value);
  }
  const found = readTokens(elections, numbers);
  if (found === undefined) {
    throw new InvalidOptionError(
      `the request's ${electionHeader} and ${tokenHeader} do not belong together`,
    );
  }
  const present = found.get(election);
  const all = new Map(found);
  all.set(election, present !== undefined && present > token ? present : token);
  const written = writeTokens(all);
  kept.push(electionHeader, written.elections, tokenHeader, written.tokens);
  return kept;
}

/** Reads headers in any of undici's forms. */
function* pairsOf(headers: unknown): Generator<readonly [unknown, unknown], void, void> {
  if (headers === undefined || headers === null) return;
  if (Array.isArray(headers) && !Array.isArray(headers[0])) {
    for (let i = 0; i < headers.length; i += 2) yield [headers[i], headers[i + 1]];
    return;
  }
  const isIterable = Symbol.iterator in Object(headers);
  const pairs = isIterable ? (headers as Iterable<unknown>) : Object.entries(headers);
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2) {
      throw new InvalidOptionError('headers must be pairs of a name and a value');
    }
    if (pair[1] !== undefined) yield [pair[0], pair[1]];
  }
}
