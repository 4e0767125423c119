import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CandidateInfo } from '../../base/candidate.ts';
import { ClosedError, MisuseError } from '../../base/errors.ts';
import type { Election } from '../../core/election.ts';
import type { Term } from '../../core/term.ts';
import { electionHeader, proxiedHeader, readNames, readTokens, tokenHeader } from '../headers.ts';
import type { AddressOf } from '../index.ts';
import { Follower } from '../index.ts';
import type { HttpRequest, HttpResponse, Next } from './node-http.ts';
import { callLater } from './node-http.ts';
import { originOf, whyNoOrigin } from './origin.ts';
import type { Problem } from './problem.ts';
import { sendProblem } from './problem.ts';
import type { ProxySettings } from './proxy.ts';
import { LeaderProxy } from './proxy.ts';
import { isSelf, targetOf } from './request-target.ts';
import { ServedAnswers } from './served-answers.ts';

export interface GateSettings {
  readonly election: Election;
  readonly term: () => Term | undefined;
  readonly followers: 'redirect' | 'proxy' | 'refuse';
  readonly refuseWith: 421 | 503;
  readonly waitMs: number;
  readonly retryAfterS: number;
  readonly minRemainingMs: number;
  readonly lateAnswers: 'replace' | 'keep';
  readonly addressOf: AddressOf | undefined;
  readonly scheme: 'http' | 'https' | undefined;
  readonly proxy: ProxySettings;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The newest term that the request knows of. */
  readonly carried: bigint;
  readonly next: Next;
  /** Call it before an answer of ours. */
  readonly take: () => void;
}

/** Another process that leads, and can be asked. */
interface Elsewhere {
  readonly origin: string;
  readonly token: bigint | undefined;
}

/**
 * The pause between looks at `term()`, at first and at most. Others hear of our term a moment
 * before our work is given it, and no event tells us of that.
 */
const firstLookMs = 2;
const longestLookMs = 20;

/** Decides for each request whether it is served here. */
export class LeaderGate {
  readonly #settings: GateSettings;
  readonly #name: string;
  readonly #follower: Follower;
  readonly #answers: ServedAnswers;
  readonly #proxy: LeaderProxy;
  /** The newest term that this process has held. Its record may still stand when it is over. */
  #ownToken = -1n;

  constructor(settings: GateSettings) {
    this.#settings = settings;
    this.#name = settings.election.name;
    this.#follower = new Follower(settings.election);
    this.#answers = new ServedAnswers(this.#name, settings.lateAnswers, settings.retryAfterS);
    this.#proxy = new LeaderProxy(this.#name, settings.proxy, () => this.#follower.lookAgain());
  }

  handle(given: HttpRequest, answer: HttpResponse, next: Next, take: () => void): void {
    const request = given as IncomingMessage;
    const response = answer as ServerResponse;
    const { headers } = request;
    const tokens = readTokens(headers[electionHeader], headers[tokenHeader]);
    if (tokens === undefined) {
      take();
      sendProblem(response, this.#badToken());
      return;
    }
    const carried = tokens.get(this.#name) ?? -1n;
    const exchange = { request, response, carried, next, take };
    let isServed = false;
    try {
      isServed = this.#begin(exchange);
    } catch (error) {
      next(error);
      return;
    }
    // Not within the `try`: an error of the handlers behind it is not ours.
    if (isServed) next();
    else void this.#sendOn(exchange);
  }

  drained(timeoutMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    return this.#answers.drained(timeoutMs, signal);
  }

  close(): void {
    this.#follower.close();
    this.#proxy.close();
  }

  /**
   * @returns false when this process does not lead, is not ready, or does not lead any more by the
   * request's knowledge
   */
  #begin({ request, response, carried }: Exchange): boolean {
    const term = this.#leading(carried);
    if (term === undefined) return false;
    this.#answers.begin(request, response, term);
    return true;
  }

  #leading(carried: bigint): Term | undefined {
    const term = this.#settings.term();
    if (term === undefined) return undefined;
    if (term.election !== this.#name) {
      throw new MisuseError(
        `term() gave a term of election "${term.election}", this is about "${this.#name}"`,
      );
    }
    if (term.token > this.#ownToken) this.#ownToken = term.token;
    const { minRemainingMs } = this.#settings;
    if (carried > term.token || !term.isLeading() || !term.isReady) return undefined;
    return minRemainingMs === 0 || term.remaining() > minRemainingMs ? term : undefined;
  }

  /** Answers for a process that does not lead, unless it leads after a wait. Never rejects. */
  async #sendOn(exchange: Exchange): Promise<void> {
    const { request, response, next } = exchange;
    let isTaken = false;
    const take = () => {
      isTaken = true;
      exchange.take();
    };
    const gone = new AbortController();
    const onClose = () => gone.abort();
    response.once('close', onClose);
    try {
      // The client may have gone while others were at work.
      if (isOver(response)) return take();
      const passedOnBy = readNames(request.headers[proxiedHeader]);
      const isPassedOn = passedOnBy === undefined || passedOnBy.includes(this.#name);
      const found = await this.#look(exchange, isPassedOn, gone.signal);
      if (this.#begin(exchange)) return callLater(next);
      take();
      if (isPassedOn) {
        // The process that passed it on believed that we lead. One of us is behind.
        sendProblem(response, this.#notLeading(this.#newest(exchange)));
        return;
      }
      const problem = found === undefined ? this.#nobody(exchange) : this.#pass(exchange, found);
      if (problem !== undefined) sendProblem(response, problem);
    } catch (error) {
      if (gone.signal.aborted) return;
      if (isTaken) sendProblem(response, this.#failed());
      else callLater(next, error);
    } finally {
      response.off('close', onClose);
    }
  }

  /** Waits until another process is known to lead and is ready, or this one is. */
  async #look(
    exchange: Exchange,
    isPassedOn: boolean,
    signal: AbortSignal,
  ): Promise<Elsewhere | undefined> {
    const { carried } = exchange;
    const pick = () => {
      if (this.#leading(carried) !== undefined) return 'here';
      const other = this.#elsewhere(exchange);
      if (!isPassedOn || other?.token === undefined) return isPassedOn ? undefined : other;
      // The process that passed it on means this one, perhaps by a name that this one does not know
      // as its own.
      return other.token > carried ? other : undefined;
    };
    let leftMs = this.#settings.waitMs;
    let pauseMs = firstLookMs;
    try {
      for (;;) {
        const waitMs = Math.min(leftMs, pauseMs);
        const found = await this.#follower.until(pick, waitMs, signal);
        if (found === 'here') return undefined;
        leftMs -= waitMs;
        if (found !== undefined || leftMs <= 0) return found;
        pauseMs = Math.min(2 * pauseMs, longestLookMs);
      }
    } catch (error) {
      if (error instanceof ClosedError) return undefined;
      throw error;
    }
  }

  #elsewhere({ request, carried }: Exchange): Elsewhere | undefined {
    const { leader, token: newest } = this.#follower;
    // Also while the known leader is not ready: the one that the request knows of may be.
    if (newest !== undefined && newest < carried) this.#follower.lookAgain();
    if (leader === undefined) return undefined;
    const { token, info } = leader;
    if (token !== undefined && (token <= this.#ownToken || token < carried)) return undefined;
    const origin = this.#originOf(request, info);
    if (origin === undefined || isSelf(request, origin)) return undefined;
    return { origin, token };
  }

  #originOf(request: IncomingMessage, info: CandidateInfo): string | undefined {
    const { scheme, addressOf } = this.#settings;
    const isSecure =
      scheme === undefined
        ? (request.socket as { encrypted?: boolean }).encrypted === true
        : scheme === 'https';
    return originOf(info, false, addressOf, isSecure);
  }

  /** @returns undefined when the leader answers */
  #pass(exchange: Exchange, leader: Elsewhere): Problem | undefined {
    const { request, response } = exchange;
    const { followers } = this.#settings;
    const target = targetOf(request);
    const token = leader.token ?? this.#newest(exchange);
    const elsewhere = this.#notLeading(token);
    if (followers === 'refuse' || target === undefined) return elsewhere;
    if (followers === 'redirect') {
      return { ...elsewhere, status: 307, headers: { location: leader.origin + target } };
    }
    if (isUpgrade(request)) {
      const detail = 'Connect to the leader itself.';
      return {
        ...elsewhere,
        status: 501,
        type: 'no-upgrade',
        title: 'No upgrade here',
        detail,
        headers: {},
      };
    }
    this.#proxy.forward(request, response, {
      origin: leader.origin,
      target,
      token: leader.token,
      carried: token,
      onReplaced: (than, listener) => this.#onReplaced(exchange, than, listener),
    });
    return undefined;
  }

  /** Reports another leader, of a newer term, that can be asked. */
  #onReplaced(
    exchange: Exchange,
    token: bigint | undefined,
    listener: (origin: string, token: bigint) => void,
  ): () => void {
    return this.#follower.onChange(() => {
      let next: Elsewhere | undefined;
      try {
        next = this.#elsewhere(exchange);
      } catch {
        // An error of `addressOf`: the next request is told.
      }
      if (next?.token !== undefined && token !== undefined && next.token > token) {
        listener(next.origin, next.token);
      }
    });
  }

  #notLeading(token: bigint | undefined): Problem {
    const { refuseWith, retryAfterS } = this.#settings;
    return {
      status: refuseWith,
      type: 'not-leading',
      title: 'This process does not lead',
      detail: `Another process leads election "${this.#name}".`,
      election: this.#name,
      token,
      refused: true,
      headers: refuseWith === 503 ? { 'retry-after': String(retryAfterS) } : {},
    };
  }

  #nobody(exchange: Exchange): Problem {
    const token = this.#newest(exchange);
    const leader = this.#follower.leader;
    // Not a term of this process that is over, and none older than the request knows.
    const isOther = leader?.token === undefined || leader.token > this.#ownToken;
    const isNewest = leader?.token === undefined || leader.token >= exchange.carried;
    if (leader !== undefined && isOther && isNewest) {
      if (this.#originOf(exchange.request, leader.info) === undefined) {
        const why = whyNoOrigin(leader.info, false, this.#settings.addressOf);
        return { ...this.#notLeading(token), detail: `Election "${this.#name}": ${why}.` };
      }
    }
    const isUnready = this.#follower.unready !== undefined;
    const isStale = token !== undefined && this.#ownToken >= 0n && token > this.#ownToken;
    return {
      status: 503,
      type: isStale && exchange.carried === token ? 'newer-token' : 'no-leader',
      title: 'Nobody is known to lead',
      detail: isUnready
        ? `The leader of election "${this.#name}" is not ready yet; try again.`
        : `No leader of election "${this.#name}" can be asked at the moment; try again.`,
      election: this.#name,
      token,
      refused: true,
      headers: { 'retry-after': String(this.#settings.retryAfterS) },
    };
  }

  #newest({ carried }: Exchange): bigint | undefined {
    const known = [this.#follower.token ?? -1n, this.#ownToken, carried];
    const newest = known.reduce((a, b) => (a > b ? a : b));
    return newest < 0n ? undefined : newest;
  }

  #failed(): Problem {
    return {
      status: 500,
      type: 'not-passed-on',
      title: 'The request could not be passed on',
      detail: 'It is none that this server can pass on.',
      election: this.#name,
      refused: true,
    };
  }

  #badToken(): Problem {
    return {
      status: 400,
      type: 'bad-token',
      title: 'The token headers cannot be read',
      detail: `${electionHeader} and ${tokenHeader} are lists of equal length, of names and numbers.`,
      election: this.#name,
      refused: true,
    };
  }
}

function isOver(response: ServerResponse): boolean {
  return response.destroyed || response.writableFinished;
}

/** An offer of HTTP/2 may be ignored. Any other upgrade is meant. */
function isUpgrade(request: IncomingMessage): boolean {
  const { upgrade, connection } = request.headers;
  if (upgrade === undefined || upgrade.toLowerCase() === 'h2c') return false;
  return connection !== undefined && /\bupgrade\b/i.test(connection);
}
