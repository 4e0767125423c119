import { checkElectionName, describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import { systemClock } from '../../base/clock.ts';
import type { Duration } from '../../base/duration.ts';
import { parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { asError } from '../../base/thrown.ts';
import { bounded } from '../../base/wait.ts';
import { electionHeader, readTokens, tokenHeader } from '../headers.ts';
import type { FastifyHook, HttpRequest, HttpResponse, Middleware, Next } from './node-http.ts';
import { asFastifyHook, asMiddleware } from './node-http.ts';
import type { Problem } from './problem.ts';
import { sendProblem } from './problem.ts';
import type { TokenMemory } from './token-memory.ts';
import { memoryOfTokens } from './token-memory.ts';

/** The options of `requireToken`. */
export interface RequireTokenOptions {
  /** The election (its handle or its name) whose leaders write here. */
  readonly election: string | { readonly name: string };
  /** Where the highest token is kept. Default: in this process. */
  readonly memory?: TokenMemory;
  /** How long the memory may take. Default 5 s. */
  readonly memoryTimeout?: Duration;
  /** Called when the memory fails. The request has then been answered with 503. */
  readonly onError?: (error: Error) => void;
}

/** A middleware: `app.use('/storage', required)`. */
export interface RequireToken extends Middleware {
  /** For Fastify: `fastify.addHook('onRequest', required.fastify)`. */
  readonly fastify: FastifyHook;
  /**
   * True while no newer token has come since this request was let in. Ask it again before the
   * effect, after slow steps, such as a body that came slowly.
   * @throws the memory's error
   */
  isCurrent(request: HttpRequest): Promise<boolean>;
}

const optionNames: Record<keyof RequireTokenOptions, true> = {
  election: true,
  memory: true,
  memoryTimeout: true,
  onError: true,
};

type Refusal = Pick<Problem, 'status' | 'type' | 'title' | 'detail' | 'token'>;

const unreadable: Refusal = {
  status: 400,
  type: 'bad-token',
  title: 'The token headers cannot be read',
  detail: `${electionHeader} and ${tokenHeader} are lists of equal length, of names and numbers.`,
};

function missing(election: string): Refusal {
  return {
    status: 428,
    type: 'token-required',
    title: 'A token is required',
    detail: `Only the leader of election "${election}" may do this, with the token of its term.`,
  };
}

const unchecked: Refusal = {
  status: 503,
  type: 'token-memory',
  title: 'The token cannot be checked',
  detail: 'What was seen before cannot be read at the moment; try again.',
};

function stale(election: string, token: bigint, highest: bigint): Refusal {
  return {
    status: 412,
    type: 'stale-token',
    title: 'The term is over',
    detail: `Token ${token} is older than ${highest}: somebody else leads "${election}".`,
    token: highest,
  };
}

/**
 * For resources that leaders write to. A request is let in only with a token of the election that
 * is at least the highest ever seen here.
 *
 * Otherwise nothing comes of the request. The answer is 412 for an older token, 428 without one,
 * and 400 for a text that is no token. It is 503 when the memory fails.
 *
 * Promised: after a request of one term was let in, none of an earlier term is. Not promised: that
 * a request that was let in before has finished. Where that matters, compare the token (`tokenOf`)
 * in the same transaction as the effect.
 *
 * A token is no password. Any client that can send requests can make one up, and a very high one
 * shuts all leaders out.
 * @throws InvalidOptionError
 */
export function requireToken(options: RequireTokenOptions): RequireToken {
  checkNames('requireToken', options, optionNames);
  const { election, memory = memoryOfTokens(), onError } = options;
  const name = checkElectionName(typeof election === 'string' ? election : election?.name);
  if (typeof memory?.raise !== 'function') {
    throw new InvalidOptionError(`memory must have a function raise, not ${describeValue(memory)}`);
  }
  if (onError !== undefined && typeof onError !== 'function') {
    throw new InvalidOptionError(`onError must be a function, not ${describeValue(onError)}`);
  }
  const timeoutMs = parseDuration('memoryTimeout', options.memoryTimeout ?? 5000);
  const highest = highestOf(memory, name);
  /** Raises `highest` to the token that the memory or this process has seen. */
  const raise = async (token: bigint): Promise<void> => {
    const kept: unknown = await bounded(
      systemClock,
      'the memory of tokens',
      timeoutMs,
      new AbortController().signal,
      async () => memory.raise(name, token),
    );
    if (typeof kept !== 'bigint' || kept < token) {
      throw new TypeError(`memory.raise(…, ${token}) gave ${describeValue(kept)}`);
    }
    // Answers of the memory may arrive in another order than they were given in.
    if (kept > highest.token) highest.token = kept;
  };
  const handle = async (
    request: HttpRequest,
    response: HttpResponse,
    next: Next,
    take: () => void,
  ): Promise<void> => {
    const refuse = (about: Refusal) => {
      take();
      sendProblem(response, { election: name, refused: true, ...about });
    };
    const tokens = tokensOf(request);
    if (tokens === undefined) return refuse(unreadable);
    const token = tokens.get(name);
    if (token === undefined) return refuse(missing(name));
    try {
      await raise(token);
    } catch (error) {
      refuse(unchecked);
      queueMicrotask(() => onError?.(asError(error)));
      return;
    }
    // Outside of this promise, because of errors from `next`, and with nothing in between.
    queueMicrotask(() => {
      if (token >= highest.token) next();
      else refuse(stale(name, token, highest.token));
    });
  };
  const middleware = asMiddleware('requireToken', (request, response, next, take) => {
    // Never rejects.
    void handle(request, response, next, take);
  });
  return Object.assign(middleware, {
    fastify: asFastifyHook((request, response, next, take) => {
      void handle(request, response, next, take);
    }),
    async isCurrent(request: HttpRequest) {
      const token = tokensOf(request)?.get(name);
      if (token === undefined) return false;
      await raise(token);
      return token >= highest.token;
    },
  });
}

interface Highest {
  token: bigint;
}

const seen = new WeakMap<TokenMemory, Map<string, Highest>>();

/** Shared by all middlewares that use one memory in this process. */
function highestOf(memory: TokenMemory, election: string): Highest {
  const ofMemory = seen.get(memory) ?? new Map<string, Highest>();
  seen.set(memory, ofMemory);
  const highest = ofMemory.get(election) ?? { token: -1n };
  ofMemory.set(election, highest);
  return highest;
}

/**
 * The token that a request carries for an election, for use where its effects land.
 * @returns undefined without one, and when the headers cannot be read
 */
export function tokenOf(request: HttpRequest, election: string): bigint | undefined {
  return tokensOf(request)?.get(election);
}

function tokensOf({ headers }: HttpRequest): ReadonlyMap<string, bigint> | undefined {
  return readTokens(headers[electionHeader], headers[tokenHeader]);
}
