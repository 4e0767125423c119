import type { Clock } from '../clock.ts';
import { RequestTimeoutError } from '../errors.ts';
import { onAbort } from '../on-abort.ts';
import type { JuteWriter } from '../protocol/jute.ts';
import type { Credentials } from './handshake.ts';
import { writeAuth } from './handshake.ts';

/** A call that waits until a server has accepted its credentials. */
interface AuthWaiter {
  resolve(): void;
  reject(error: unknown): void;
}

interface AuthBounds {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

interface Entry {
  readonly credentials: Credentials;
  readonly waiters: Set<AuthWaiter>;
}

/**
 * The credentials of a session. Every connection sends all of them, and the replies come in that
 * order.
 */
export class Authenticator {
  readonly #entries: Entry[] = [];
  /** Sent on this connection, and not answered yet. */
  #unanswered: Entry[] = [];
  /** Added since the handshake of this connection was written. */
  #unsent: Set<Entry> = new Set();

  constructor(credentials: readonly Credentials[]) {
    for (const one of credentials) this.#entryOf(one);
  }

  /** Whether all credentials that were sent on this connection are answered. */
  get isAnswered(): boolean {
    return this.#unanswered.length === 0;
  }

  /**
   * Adds credentials, or known ones again. The next handshake, or `writeUnsent`, sends them.
   * @param added called when they were added
   * @returns resolves when a server has accepted them. Rejects at its limits, but the credentials
   *   are kept
   */
  add(
    credentials: Credentials,
    { clock, timeoutMs, signal }: AuthBounds,
    added: () => void,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const entry = this.#entryOf(credentials);
      const settle = (act: () => void) => {
        timer.cancel();
        stopListening();
        entry.waiters.delete(waiter);
        act();
      };
      const waiter: AuthWaiter = {
        resolve: () => settle(resolve),
        reject: (error) => settle(() => reject(error)),
      };
      const timer = clock.setTimer(
        () => waiter.reject(new RequestTimeoutError(timeoutMs, false, { operation: 'auth' })),
        timeoutMs,
      );
      const stopListening = onAbort(signal, () => waiter.reject(signal?.reason));
      entry.waiters.add(waiter);
      this.#unsent.add(entry);
      added();
    });
  }

  /** Writes all credentials for a new connection. */
  writeAll(writer: JuteWriter): void {
    this.#unsent = new Set(this.#entries);
    this.writeUnsent(writer);
  }

  writeUnsent(writer: JuteWriter): void {
    for (const entry of this.#unsent) {
      writeAuth(writer, entry.credentials);
      this.#unanswered.push(entry);
    }
    this.#unsent.clear();
  }

  /**
   * Takes note that the server has accepted the oldest unanswered credentials. @returns false if
   * there were none
   */
  onTaken(): boolean {
    const entry = this.#unanswered.shift();
    if (entry === undefined) return false;
    // A later call with the same credentials waits for its own answer.
    if (!this.#unanswered.includes(entry) && !this.#unsent.has(entry)) {
      for (const waiter of [...entry.waiters]) waiter.resolve();
    }
    return true;
  }

  /** The connection is gone, so the next one sends everything again. */
  onDisconnect(): void {
    this.#unanswered = [];
    this.#unsent.clear();
  }

  rejectAll(error: unknown): void {
    for (const { waiters } of this.#entries) {
      for (const waiter of [...waiters]) waiter.reject(error);
    }
  }

  #entryOf(credentials: Credentials): Entry {
    const known = this.#entries.find(
      (entry) =>
        entry.credentials.scheme === credentials.scheme &&
        Buffer.compare(entry.credentials.credentials, credentials.credentials) === 0,
    );
    if (known !== undefined) return known;
    const entry = { credentials, waiters: new Set<AuthWaiter>() };
    this.#entries.push(entry);
    return entry;
  }
}
