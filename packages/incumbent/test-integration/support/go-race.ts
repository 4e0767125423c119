/**
 * vimeo/leaderelection on Cloud Storage, step by step: `Config.Acquire` with the decider of its
 * package `gcs`, by the raw JSON API. It compares the wall clock with the written times, and each
 * of these programs has a clock of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32cBase64 } from '../../src/backends/gcs/crc32c.ts';
import {
  decodeEntry,
  encodeEntry,
  timestampOf,
  unixMsOf,
} from '../../src/backends/gcs/race-entry.ts';

export interface GoRaceOptions {
  /** Of the API. */
  readonly url: string;
  readonly bucket: string;
  readonly object: string;
  readonly leaderId: string;
  readonly hostPorts: readonly string[];
  readonly connectionParameters: Uint8Array;
  readonly termLengthMs: number;
  readonly maxClockSkewMs: number;
  /** How far its clock is ahead. */
  readonly clockAheadMs: number;
}

/** `entry.RaceEntry` with its token. */
export interface GoEntry {
  readonly leaderId: string;
  readonly hostPorts: readonly string[];
  readonly connectionParameters: Uint8Array;
  readonly termExpiryMs: number;
  /** -1: no elections yet. */
  readonly electionNumber: bigint;
  readonly generation: string;
}

/** `FailedAcquisitionErr`: the precondition did not hold. */
class FailedAcquire extends Error {}

const noElections = -1n;

export class GoRace {
  readonly #options: GoRaceOptions;
  /** The context that `OnElected` was given is not cancelled. */
  #isElected = false;
  /** `TimeView`. */
  #termExpiryMs = Number.NEGATIVE_INFINITY;
  /** Requests get no answer any more, and nothing else arrives. */
  isCut = false;
  onElected: (electionNumber: bigint) => void = () => {};

  constructor(options: GoRaceOptions) {
    this.#options = options;
  }

  get nowMs(): number {
    return Date.now() + this.#options.clockAheadMs;
  }

  /**
   * The check that work has to make: `TimeView.ValueInFuture` in a context that is not cancelled.
   */
  isLeading(): boolean {
    return this.#isElected && this.nowMs < this.#termExpiryMs;
  }

  /** Returns when `signal` aborts, without giving anything back. Rejects with fatal errors. */
  async acquire(signal: AbortSignal): Promise<void> {
    let last = await this.readCurrent(signal);
    let backoffMs = 1;
    while (!signal.aborted) {
      const won = await this.#acquireOnce(last, signal);
      if (won === 'lost') {
        last = await this.readCurrent(signal).catch(() => last);
      } else {
        backoffMs = 1;
        last = await this.#manageWin(won, signal);
      }
      if (last.electionNumber === noElections) {
        await pause(backoffMs, signal);
        backoffMs = Math.min(backoffMs * 1.2, 60_000);
        continue;
      }
      await this.#sleepUntil(this.#retryAtMs(last.termExpiryMs), signal);
    }
  }

  async readCurrent(signal: AbortSignal): Promise<GoEntry> {
    const { bucket, object } = this.#options;
    const path = `/storage/v1/b/${bucket}/o/${encodeURIComponent(object)}?alt=media`;
    const response = await this.#fetch(path, {}, signal);
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (response.status === 404) {
      return {
        leaderId: '',
        hostPorts: [],
        connectionParameters: new Uint8Array(),
        termExpiryMs: unixMsOf({ seconds: -62_135_596_800n, nanos: 0 }),
        electionNumber: noElections,
        generation: '0',
      };
    }
    if (response.status !== 200) throw new Error(`unexpected error opening: ${response.status}`);
    const entry = decodeEntry(bytes, object);
    const { leaderId, hostPorts, connectionParameters, electionNumber } = entry;
    return {
      leaderId,
      hostPorts,
      connectionParameters,
      electionNumber,
      termExpiryMs: unixMsOf(entry.termExpiry),
      generation: response.headers.get('x-goog-generation') as string,
    };
  }

  #retryAtMs(termExpiryMs: number): number {
    const { termLengthMs, maxClockSkewMs } = this.#options;
    return termExpiryMs + 0.1 * termLengthMs * Math.random() + maxClockSkewMs;
  }

  async #acquireOnce(last: GoEntry, signal: AbortSignal): Promise<GoEntry | 'lost'> {
    let termBeginMs = last.termExpiryMs;
    // Skew is left out here: an entry that has expired by its own clock is taken at once.
    if (last.electionNumber === noElections || termBeginMs < this.nowMs) termBeginMs = this.nowMs;
    else await this.#sleepUntil(this.#retryAtMs(termBeginMs), signal);
    if (signal.aborted) return 'lost';
    return this.#write(last, termBeginMs + this.#options.termLengthMs, signal);
  }

  async #manageWin(won: GoEntry, signal: AbortSignal): Promise<GoEntry> {
    this.#termExpiryMs = won.termExpiryMs;
    this.#isElected = true;
    this.onElected(won.electionNumber);
    let entry = won;
    try {
      while (!signal.aborted) {
        let next: GoEntry | 'lost' | undefined;
        try {
          const expiryMs = this.nowMs + this.#options.termLengthMs;
          next = await this.#write(entry, expiryMs, signal);
        } catch {
          // Anything but a lost race or a deadline is tried again.
        }
        if (next === 'lost') break;
        if (next !== undefined) {
          entry = next;
          this.#termExpiryMs = next.termExpiryMs;
        }
        const halfMs = (entry.termExpiryMs - this.nowMs) / 2 - this.#options.maxClockSkewMs;
        if (halfMs <= 0 && this.nowMs > entry.termExpiryMs) break;
        await pause(Math.max(1, halfMs), signal);
      }
      // It goes on until the end of its term, even if another member has the seat by then.
      await this.#sleepUntil(entry.termExpiryMs, signal);
    } finally {
      this.#isElected = false;
    }
    return entry;
  }

  async #write(
    last: GoEntry,
    termExpiryMs: number,
    signal: AbortSignal,
  ): Promise<GoEntry | 'lost'> {
    const { maxClockSkewMs, leaderId, hostPorts, connectionParameters } = this.#options;
    const timeoutMs = Math.max(0, termExpiryMs - this.nowMs - maxClockSkewMs);
    const next = {
      leaderId,
      hostPorts,
      connectionParameters,
      termExpiryMs,
      electionNumber: last.electionNumber + 1n,
    };
    const bound = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const generation = await this.#upload(
        encodeEntry({ ...next, termExpiry: timestampOf(termExpiryMs), record: undefined }),
        last.generation,
        bound,
      );
      return { ...next, generation };
    } catch (error) {
      if (error instanceof FailedAcquire || bound.aborted) return 'lost';
      throw error;
    }
  }

  async #upload(bytes: Uint8Array, generation: string, signal: AbortSignal): Promise<string> {
    const { bucket, object } = this.#options;
    const query = new URLSearchParams({
      uploadType: 'multipart',
      name: object,
      ifGenerationMatch: generation,
    });
    const metadata = JSON.stringify({ name: object, bucket, crc32c: crc32cBase64(bytes) });
    const body = Buffer.concat([
      Buffer.from(
        `--b0undary\r\nContent-Type: application/json\r\n\r\n${metadata}\r\n--b0undary\r\n`,
      ),
      Buffer.from('Content-Type: application/octet-stream\r\n\r\n'),
      bytes,
      Buffer.from('\r\n--b0undary--\r\n'),
    ]);
    const headers = { 'content-type': 'multipart/related; boundary=b0undary' };
    const path = `/upload/storage/v1/b/${bucket}/o?${query}`;
    const response = await this.#fetch(path, { method: 'POST', headers, body }, signal);
    const told = (await response.json()) as { readonly generation?: string };
    if (response.status === 412) throw new FailedAcquire('lost race');
    if (response.status !== 200) throw new Error(`failed to close: ${response.status}`);
    return told.generation as string;
  }

  async #fetch(path: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    if (this.isCut) await never(signal);
    const response = await fetch(this.#options.url + path, { ...init, signal });
    if (this.isCut) await never(signal);
    return response;
  }

  async #sleepUntil(untilMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.nowMs < untilMs) {
      await pause(Math.min(untilMs - this.nowMs, 1_000_000), signal);
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

function never(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
