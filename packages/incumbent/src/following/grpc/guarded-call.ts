/** One call on a server, from its arrival to its status, bound to the term that accepted it. */

import { MisuseError } from '../../base/errors.ts';
import { publish } from '../../core/diagnostics.ts';
import type { Term } from '../../core/term.ts';
import { electionHeader, readTokens, refusedHeader, tokenHeader, writeName } from '../headers.ts';
import type { CallOfTerm } from './calls-of-term.ts';
import { CallsOfTerm } from './calls-of-term.ts';
import type { Grpc, Metadata } from './module.ts';

/** The election that a call is about, or the shard that stands for one. */
export interface CallSubject {
  readonly election: { readonly name: string };
  /** The present term of this process for it. */
  readonly term: () => Term | undefined;
}

export interface Policy {
  readonly grpc: Grpc;
  /** @throws when the call is about nothing that there is */
  readonly subjectOf: (path: string, metadata: Metadata) => CallSubject;
  readonly isRepeatable: (path: string) => boolean;
}

export interface GuardedMethod {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
}

interface Status {
  readonly code: number;
  readonly details: string;
  readonly metadata?: Metadata | null;
}

/** The part of the call below that we use. */
interface NextCall {
  sendStatus(status: Status): void;
}

interface Listener {
  onReceiveMetadata(metadata: Metadata, next: (metadata: Metadata) => void): void;
  onReceiveMessage(message: unknown, next: (message: unknown) => void): void;
  onReceiveHalfClose(next: () => void): void;
  onCancel(): void;
}

/** As grpc-js calls it: a value that is not handed to `next` goes no further. */
export interface Responder {
  start(next: (listener: Listener) => void): void;
  sendMetadata(metadata: Metadata, next: (metadata: Metadata) => void): void;
  sendMessage(message: unknown, next: (message: unknown) => void): void;
  sendStatus(status: Status, next: (status: Status) => void): void;
}

/**
 * - `arriving`: the handler has not seen the call.
 * - `begun`: the handler has seen it.
 * - `ended`: its status was sent, by the handler or by us. Anything that the handler sends
 *   later is dropped.
 */
type CallState = 'arriving' | 'begun' | 'ended';

export class GuardedCall implements CallOfTerm {
  readonly isStream: boolean;
  readonly #policy: Policy;
  readonly #method: GuardedMethod;
  readonly #next: NextCall;
  /** Undefined until the metadata is there. */
  #subject: CallSubject | undefined;
  #term: Term | undefined;
  #state: CallState = 'arriving';
  #sentMetadata = false;

  constructor(policy: Policy, method: GuardedMethod, next: unknown) {
    this.#policy = policy;
    this.#method = method;
    this.#next = next as NextCall;
    this.isStream = method.requestStream || method.responseStream;
  }

  get #election(): string {
    return this.#subject?.election.name ?? '';
  }

  get responder(): Responder {
    return {
      start: (next) => this.#start(next),
      sendMetadata: (metadata, next) => {
        if (!this.#mayGoOn()) return;
        this.#sentMetadata = true;
        this.#mark(metadata);
        next(metadata);
      },
      sendMessage: (message, next) => {
        if (this.#mayGoOn()) next(message);
      },
      sendStatus: (status, next) => {
        if (!this.#mayGoOn()) return;
        this.#leave();
        if (this.#sentMetadata) return next(status);
        const metadata = status.metadata?.clone() ?? new this.#policy.grpc.Metadata();
        this.#mark(metadata);
        next({ ...status, metadata });
      },
    };
  }

  /** The term is over, or was told to stop. */
  end(): void {
    if (this.#state === 'ended') return;
    const { ABORTED, UNAVAILABLE } = this.#policy.grpc.status;
    const term = `term ${this.#term?.token} of election "${this.#election}" ended`;
    if (this.#state !== 'begun') {
      this.#refuse(`${term} before the call was begun`, 'not-leading');
    } else if (this.#policy.isRepeatable(this.#method.path)) {
      this.#fail(UNAVAILABLE, `${term} while the call was served; it may be repeated`);
    } else {
      this.#fail(ABORTED, `${term} while the call was served: whether it took effect is not known`);
    }
  }

  #start(next: (listener: Listener) => void): void {
    next({
      onReceiveMetadata: (metadata, pass) => {
        const term = this.#accept(metadata);
        if (term === undefined || this.#isOutdated(term, metadata)) return;
        // Handlers of request streams are called now. The others are called when the
        // request is whole.
        if (this.#method.requestStream) this.#state = 'begun';
        pass(metadata);
      },
      onReceiveMessage: (message, pass) => {
        if (this.#mayGoOn()) pass(message);
      },
      onReceiveHalfClose: (pass) => {
        if (!this.#mayGoOn()) return;
        this.#state = 'begun';
        pass();
      },
      onCancel: () => this.#leave(),
    });
  }

  /** @returns the term that serves the call. Undefined: it was refused */
  #accept(metadata: Metadata): Term | undefined {
    try {
      this.#subject = this.#policy.subjectOf(this.#method.path, metadata);
    } catch (error) {
      this.#fail(this.#policy.grpc.status.INVALID_ARGUMENT, (error as Error).message);
      return undefined;
    }
    const election = this.#election;
    const term = this.#presentTerm(this.#subject);
    if (term?.isLeading() !== true) {
      this.#refuse(`this server does not lead election "${election}"`, 'not-leading');
      return undefined;
    }
    if (!term.isReady) {
      this.#refuse(`this server leads election "${election}" and is not ready yet`, 'not-leading');
      return undefined;
    }
    if (term.signal.aborted) {
      this.#refuse(`this server is about to stop leading election "${election}"`, 'not-leading');
      return undefined;
    }
    this.#term = term;
    CallsOfTerm.of(term).add(this);
    return term;
  }

  /** A user's function that throws would end the process, because no caller would catch it. */
  #presentTerm({ election: { name: election }, term }: CallSubject): Term | undefined {
    try {
      const present = term();
      if (!present || present.election === election) return present;
      throw new MisuseError(
        `term() gave a term of election "${present.election}", this is about "${election}"`,
      );
    } catch (error) {
      const what = 'asking for the present term';
      publish('incumbent:trouble', { election, candidate: '' }, { what, error });
      return undefined;
    }
  }

  /** Ends the call if its term is over. */
  #mayGoOn(): boolean {
    if (this.#state === 'ended') return false;
    if (this.#term?.isLeading() === true) return true;
    this.end();
    return false;
  }

  /**
   * True when the caller knows a newer leader. Then our own term is over, whether it knows
   * that or not.
   */
  #isOutdated(term: Term, metadata: Metadata): boolean {
    const election = this.#election;
    const known = tokensIn(metadata)?.get(election);
    if (known === undefined || known <= term.token) return false;
    const details = `the caller knows term ${known} of election "${election}", here is ${term.token}`;
    this.#refuse(details, 'newer-token');
    return true;
  }

  #refuse(details: string, why: 'not-leading' | 'newer-token'): void {
    this.#fail(this.#policy.grpc.status.UNAVAILABLE, details, why);
  }

  #fail(code: number, details: string, refused?: string): void {
    this.#leave();
    const metadata = new this.#policy.grpc.Metadata();
    if (this.#subject !== undefined) metadata.set(electionHeader, writeName(this.#election));
    if (refused !== undefined) metadata.set(refusedHeader, refused);
    this.#next.sendStatus({ code, details, metadata });
  }

  #mark(metadata: Metadata): void {
    // Names may have letters that headers cannot.
    metadata.set(electionHeader, writeName(this.#election));
    metadata.set(tokenHeader, String(this.#term?.token));
  }

  #leave(): void {
    this.#state = 'ended';
    if (this.#term !== undefined) CallsOfTerm.of(this.#term).delete(this);
  }
}

/** @returns undefined when the headers hold no list of tokens */
export function tokensIn(metadata: Metadata): ReadonlyMap<string, bigint> | undefined {
  return readTokens(
    metadata.get(electionHeader).map(String),
    metadata.get(tokenHeader).map(String),
  );
}
