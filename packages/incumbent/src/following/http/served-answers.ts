import type { IncomingMessage, ServerResponse } from 'node:http';
import { maxTimerMs, systemClock } from '../../base/clock.ts';
import { onAbort } from '../../base/wait.ts';
import type { Term } from '../../core/term.ts';
import { electionHeader, readNames, tokenHeader, writeName } from '../headers.ts';
import type { Problem } from './problem.ts';
import { renderProblem } from './problem.ts';

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** The pause between looks at a belief that is about to end. */
const shortestLookMs = 10;

type Write = (chunk?: unknown, encoding?: unknown, callback?: unknown) => unknown;

/** The requests that are being served here, and the fate of their answers when the term ends. */
export class ServedAnswers {
  readonly #election: string;
  readonly #late: 'replace' | 'keep';
  readonly #retryAfterS: number;
  readonly #open = new Map<Term, Set<ServerResponse>>();
  /**
   * Terms whose end is waited for. Once for each, because a term may be long and has many answers.
   */
  readonly #watched = new WeakSet<Term>();
  readonly #idle = new Set<() => void>();

  constructor(election: string, late: 'replace' | 'keep', retryAfterS: number) {
    this.#election = election;
    this.#late = late;
    this.#retryAfterS = retryAfterS;
  }

  begin(request: IncomingMessage, response: ServerResponse, term: Term): void {
    // It may be there twice, for example on a router in a router.
    if (this.#open.get(term)?.has(response) === true) return;
    // The client has gone, or another handler has answered. Then the answer is not ours any more.
    if (response.headersSent || response.destroyed) return;
    this.#track(response, term);
    this.#name(response, term);
    if (this.#late === 'replace') this.#guard(request, response, term);
  }

  /**
   * Resolves with true as soon as nothing is being served. Cuts streams of events off at
   * once. After `timeoutMs` it cuts off all other answers that are still being sent, and
   * resolves with false.
   * @throws `signal.reason` when aborted
   */
  drained(timeoutMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      this.#cutAll(isEndless);
      if (this.#open.size === 0) return resolve(true);
      const settle = (finish: () => void) => {
        timer.cancel();
        this.#idle.delete(onIdle);
        removeListener();
        finish();
      };
      const onIdle = () => settle(() => resolve(true));
      this.#idle.add(onIdle);
      const timer = systemClock.setTimer(() => {
        settle(() => resolve(false));
        this.#cutAll();
      }, timeoutMs);
      const removeListener = onAbort(signal, () => settle(() => reject(signal?.reason)));
    });
  }

  /**
   * Once, where several of us stand before one handler. Names of other elections stay beside it.
   */
  #name(response: ServerResponse, { token }: Term): void {
    const present = response.getHeader(electionHeader);
    const names = present === undefined ? [] : readNames(String(present));
    if (names?.includes(this.#election) === true) return;
    addTo(response, electionHeader, writeName(this.#election));
    addTo(response, tokenHeader, String(token));
  }

  #track(response: ServerResponse, term: Term): void {
    if (this.#late === 'replace') this.#watch(term);
    let open = this.#open.get(term);
    if (open === undefined) {
      open = new Set();
      this.#open.set(term, open);
    }
    open.add(response);
    response.once('close', () => {
      open.delete(response);
      if (open.size > 0) return;
      this.#open.delete(term);
      if (this.#open.size === 0) for (const onIdle of [...this.#idle]) onIdle();
    });
  }

  /** Cuts off answers that go on when the belief is over, or the seat is given back. */
  #watch(term: Term): void {
    if (this.#watched.has(term)) return;
    this.#watched.add(term);
    void term.ended.then(() => this.#cut(term));
    // Not left to `ended` alone: that waits for the work, which may wait for these very answers.
    const look = () => {
      const leftMs = term.remaining();
      if (leftMs <= 0) this.#cut(term);
      else systemClock.setTimer(look, Math.min(Math.max(leftMs, shortestLookMs), maxTimerMs), true);
    };
    onAbort(term.signal, look);
  }

  #cutAll(which?: (response: ServerResponse) => boolean): void {
    if (this.#late === 'replace') for (const term of this.#open.keys()) this.#cut(term, which);
  }

  /**
   * Cuts off answers that have begun and go on, such as streams of events. No process serves
   * them any more.
   */
  #cut(term: Term, which: (response: ServerResponse) => boolean = () => true): void {
    for (const response of this.#open.get(term) ?? []) {
      if (response.headersSent && response.statusCode < 400 && which(response)) cutOff(response);
    }
  }

  #guard(request: IncomingMessage, response: ServerResponse, term: Term): void {
    const isSafe = safeMethods.has(request.method ?? '');
    const writeHead = response.writeHead as (...args: unknown[]) => ServerResponse;
    const write = response.write as Write;
    const end = response.end as Write;
    /** True: the application's own answer goes nowhere. */
    let isReplaced = false;
    const isLate = (status: number) =>
      !term.isLeading() && (status < 400 || (isSafe && !response.headersSent));
    const replace = () => {
      isReplaced = true;
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      const problem = isSafe ? this.#notServed() : this.#unknown(request.method, term.token);
      const { headers, text } = renderProblem(problem);
      // The one of HTTP/2 writes by `this.write`.
      response.write = write as typeof response.write;
      writeHead.call(response, problem.status, headers);
      end.call(response, text);
      response.write = patched.write as typeof response.write;
    };
    /** @returns false when nothing of the application's answer may follow */
    const goesOn = () => {
      if (isReplaced) return false;
      if (!isLate(response.statusCode)) return true;
      if (response.headersSent) cutOff(response);
      else replace();
      return false;
    };
    const patched = {
      writeHead(...args: unknown[]) {
        if (isReplaced) return response;
        if (response.headersSent || !isLate(Number(args[0])))
          return writeHead.apply(response, args);
        replace();
        return response;
      },
      write(...args: unknown[]) {
        return goesOn() ? write.apply(response, args as []) : swallow(args, true);
      },
      end(...args: unknown[]) {
        return goesOn() ? end.apply(response, args as []) : swallow(args, response);
      },
    };
    Object.assign(response, patched);
  }

  #notServed(): Problem {
    return {
      status: 503,
      type: 'term-ended',
      title: 'The term ended before the answer',
      detail: `This process has stopped leading election "${this.#election}"; ask the next leader.`,
      election: this.#election,
      refused: true,
      headers: { 'retry-after': String(this.#retryAfterS) },
    };
  }

  #unknown(method: string | undefined, token: bigint): Problem {
    return {
      status: 500,
      type: 'outcome-unknown',
      title: 'The term ended before the answer',
      detail:
        `This process has stopped leading election "${this.#election}" while it worked on this ` +
        `${method}: it may have been applied or not. Find out before it is repeated.`,
      election: this.#election,
      token,
      refused: false,
    };
  }
}

/** True for a stream of events that the application has not ended. */
function isEndless(response: ServerResponse): boolean {
  const type = String(response.getHeader('content-type') ?? '');
  return !response.writableEnded && /^text\/event-stream\b/i.test(type);
}

/** So that the client cannot take it for whole. */
function cutOff(response: ServerResponse): void {
  const { stream } = response as { stream?: { close(code: number): void } };
  // With HTTP/2, to destroy it would say that all is well. So close it with INTERNAL_ERROR.
  if (stream !== undefined) stream.close(2);
  else response.destroy();
}

/** As Node does: the writer is told that it is done. */
function swallow<T>(args: readonly unknown[], result: T): T {
  const callback = args.find((arg) => typeof arg === 'function') as (() => void) | undefined;
  if (callback !== undefined) queueMicrotask(callback);
  return result;
}

/** There may be several elections. */
function addTo(response: ServerResponse, name: string, value: string): void {
  const present = response.getHeader(name);
  response.setHeader(name, present === undefined ? value : `${String(present)}, ${value}`);
}
