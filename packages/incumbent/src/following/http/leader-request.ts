import { systemClock } from '../../base/clock.ts';
import { NoLeaderError } from '../../base/errors.ts';
import { asError } from '../../base/thrown.ts';
import type { AddressOf, Follower } from '../index.ts';
import type { Outcome, Repeat, Target } from './attempt.ts';
import { Attempt } from './attempt.ts';
import { originOf, whyNoOrigin } from './origin.ts';
import { needsReplay, ReplayBody } from './replay-body.ts';
import { RequestController } from './request-controller.ts';
import type { Dispatch, DispatchHandler, DispatchOptions } from './undici.ts';
import { withToken } from './undici.ts';

export interface LeaderRequestSettings {
  readonly waitMs: number;
  readonly attempts: number;
  readonly replayBytes: number;
  readonly addressOf: AddressOf | undefined;
}

/** The pause before the same leader is asked again. It doubles each time. */
const firstPauseMs = 100;

/** One request on its way to the leader: one attempt after the other until one is answered. */
export class LeaderRequest {
  readonly #dispatch: Dispatch;
  readonly #options: DispatchOptions;
  readonly #handler: DispatchHandler;
  readonly #follower: Follower;
  readonly #settings: LeaderRequestSettings;
  readonly #body: ReplayBody | undefined;
  readonly #controller = new RequestController();
  readonly #isSecure: boolean;
  #waitLeftMs: number;
  /** The highest token that an answer or a view has shown. */
  #token: bigint | undefined;

  constructor(
    dispatch: Dispatch,
    options: DispatchOptions,
    handler: DispatchHandler,
    follower: Follower,
    settings: LeaderRequestSettings,
  ) {
    this.#dispatch = dispatch;
    this.#handler = handler;
    this.#follower = follower;
    this.#settings = settings;
    this.#waitLeftMs = settings.waitMs;
    this.#isSecure = /^https:/i.test(String(options.origin));
    const { body } = options;
    this.#body = needsReplay(body) ? new ReplayBody(body, settings.replayBytes) : undefined;
    this.#options = this.#body === undefined ? options : { ...options, body: this.#body };
  }

  start(): void {
    // Now, and not when it is sent: from here on it can be aborted.
    this.#handler.onRequestStart?.(this.#controller, {});
    void this.#run();
  }

  async #run(): Promise<void> {
    try {
      let last: Repeat | undefined;
      for (let attempt = 1; ; attempt++) {
        const target = await this.#next(last, attempt);
        const outcome = await this.#send(target, attempt < this.#settings.attempts);
        if (outcome.kind === 'answered') break;
        last = outcome;
        if (outcome.hint === undefined) this.#follower.lookAgain();
      }
    } catch (error) {
      void this.#body?.close();
      this.#handler.onResponseError?.(this.#controller, asError(error));
    }
  }

  /** @throws NoLeaderError, the reason of an abort, ClosedError */
  async #next(last: Repeat | undefined, attempt: number): Promise<Target> {
    this.#controller.throwIfAborted();
    if (last?.hint !== undefined) return this.#aim(last.hint);
    if (last !== undefined) {
      const pauseMs = firstPauseMs * 2 ** (attempt - 2);
      const other = await this.#until((target) => target.key !== last.target.key, pauseMs);
      if (other !== undefined) return other;
    }
    // Not again without a pause.
    const found =
      last === undefined || this.#waitLeftMs > 0
        ? await this.#until(() => true, this.#waitLeftMs)
        : undefined;
    if (found !== undefined) return found;
    const { election, trouble } = this.#follower;
    const cause = last === undefined ? trouble : last.error;
    throw new NoLeaderError(election.name, this.#why(last), cause);
  }

  async #until(isWanted: (target: Target) => boolean, ms: number): Promise<Target | undefined> {
    const { signal } = this.#controller;
    const startMs = systemClock.monotonicMs();
    try {
      return await this.#follower.until(
        () => {
          const target = this.#present();
          return target !== undefined && isWanted(target) ? target : undefined;
        },
        Math.min(ms, this.#waitLeftMs),
        signal,
      );
    } finally {
      this.#waitLeftMs = Math.max(0, this.#waitLeftMs - (systemClock.monotonicMs() - startMs));
    }
  }

  #present(): Target | undefined {
    const leader = this.#follower.leader;
    if (leader === undefined) return undefined;
    const origin = originOf(leader.info, this.#isSecure, this.#settings.addressOf);
    if (origin === undefined) return undefined;
    const key = `${leader.token ?? leader.info.incarnation} ${origin}`;
    return this.#aim({ origin, token: leader.token, key });
  }

  #aim(target: Target): Target {
    const { token } = target;
    if (token !== undefined && (this.#token === undefined || token > this.#token)) {
      this.#token = token;
    }
    return target;
  }

  #send(target: Target, mayRepeat: boolean): Promise<Outcome> {
    const headers =
      this.#token === undefined
        ? this.#options.headers
        : withToken(this.#options.headers, this.#follower.election.name, this.#token);
    const options = { ...this.#options, origin: target.origin, headers };
    return new Attempt({
      target,
      handler: this.#handler,
      controller: this.#controller,
      follower: this.#follower,
      body: this.#body,
      isSecure: this.#isSecure,
      mayRepeat,
      isIdempotent: isIdempotent(this.#options),
    }).send(this.#dispatch, options);
  }

  #why(last: Repeat | undefined): string {
    const { waitMs, addressOf } = this.#settings;
    const { leader, unready, trouble, hasLooked } = this.#follower;
    if (last !== undefined) {
      const others =
        trouble === undefined
          ? 'nobody else leads'
          : `who else leads cannot be read (${trouble.message})`;
      return `${last.target.origin} ${last.why}, and ${others}`;
    }
    if (leader !== undefined) return whyNoOrigin(leader.info, this.#isSecure, addressOf);
    if (unready !== undefined)
      return `leader "${unready.info.id}" was not ready within ${waitMs} ms`;
    if (trouble !== undefined) return `who leads cannot be read (${trouble.message})`;
    return hasLooked ? `nobody has led for ${waitMs} ms` : `nothing was read in ${waitMs} ms`;
  }
}

const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

function isIdempotent({ idempotent, method }: DispatchOptions): boolean {
  return idempotent ?? idempotentMethods.has(method.toUpperCase());
}
