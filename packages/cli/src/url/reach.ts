/** Getting through to a server: bounded, interruptible, and with a reason when it fails. */
import { setTimeout as sleep } from 'node:timers/promises';
import { formatDuration } from 'incumbent';
import type { StoreNeeds } from '../context.ts';
import type { KnownOfStore } from '../unusable.ts';
import { UnusableStoreError } from '../unusable.ts';

/** The pause before a server that refused is asked again. */
const askAgainMs = 200;

/**
 * An attempt that had less time than this and got no answer proves nothing: the error of an earlier
 * one counts.
 */
const shortMs = 2_000;

/**
 * Runs `attempt` until it succeeds, fails for good, or the time is over; only once without
 * `patient`.
 * @param attempt gets the time that is left, and should not take longer; it is left behind if it
 * does
 * @param mayPass whether waiting may cure it
 * @throws the error of the last attempt; the reason of `needs.signal`; TookTooLongError
 */
export async function reach<T>(
  { timeoutMs, signal, patient }: StoreNeeds,
  attempt: (leftMs: number) => Promise<T>,
  mayPass: (error: unknown) => boolean,
): Promise<T> {
  const untilMs = performance.now() + timeoutMs;
  let told: unknown;
  for (;;) {
    const leftMs = Math.max(1, untilMs - performance.now());
    try {
      return await within(leftMs, signal, attempt(leftMs));
    } catch (error) {
      signal.throwIfAborted();
      const isOver = performance.now() + askAgainMs > untilMs;
      const wasCutShort = error instanceof TookTooLongError && leftMs < shortMs;
      told = wasCutShort ? (told ?? error) : error;
      if (patient !== true || isOver || !mayPass(error)) throw told;
    }
    await sleep(askAgainMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

/** There was no answer at all. */
export class TookTooLongError extends Error {
  override readonly name: string = 'TookTooLongError';
  constructor() {
    super('it does not answer');
  }
}

/** @throws TookTooLongError, the reason of `signal`; the promise then goes on unobserved */
export async function within<T>(ms: number, signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const interrupt = () => reject(signal.reason);
    const timer = setTimeout(() => reject(new TookTooLongError()), ms);
    signal.addEventListener('abort', interrupt, { once: true });
    if (signal.aborted) interrupt();
    promise.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener('abort', interrupt);
    });
  });
}

/** The failure in words: when several addresses of one name fail, the error itself has none. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return [...new Set(error.errors.map(reasonOf))].join('; ');
  }
  if (!(error instanceof Error)) return String(error);
  if (error.message !== '') return error.message.replace(/\s+/g, ' ').trim();
  return codeOf(error) || error.name;
}

/** `ECONNREFUSED`, or the driver's own code; "" for none. */
export function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : '';
}

/** Of the operating system and of the network below: a server may come, or come back. */
export function isNetworkError(error: unknown): boolean {
  return (
    error instanceof TookTooLongError ||
    /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOTFOUND|ENOENT)/.test(codeOf(error))
  );
}

/**
 * ` within 10s (--timeout)`; empty for a refusal that came at once: then more time would not help.
 * @param said the words of the failure
 */
export function boundWords({ timeoutMs, timeoutName, patient }: StoreNeeds, said: string): string {
  if (patient !== true && !/does not answer|not answered|timed? ?out|deadline/i.test(said))
    return '';
  return ` within ${formatDuration(timeoutMs)}${timeoutName === undefined ? '' : ` (${timeoutName})`}`;
}

/**
 * @param what such as `PostgreSQL at h:5432`
 * @param hint another possible cause
 */
export function unreachable(
  what: string,
  error: unknown,
  needs: StoreNeeds,
  known: KnownOfStore,
  hint = '',
): UnusableStoreError {
  const reason = reasonOf(error);
  return new UnusableStoreError(
    'STORE_UNAVAILABLE',
    `${what} cannot be reached${boundWords(needs, reason)}: ${hint === '' ? reason : reason.replace(/\.$/, '')}${hint}`,
    known,
    { cause: error },
  );
}

/** Runs `end`, which may hang with its server, and waits for it no longer than `ms`. */
export async function endWithin(
  ms: number,
  end: () => Promise<unknown> | undefined,
): Promise<void> {
  const ended = Promise.resolve(end()).catch(() => {});
  await within(ms, new AbortController().signal, ended).catch(() => {});
}
