import { createHash } from 'node:crypto';
import type { CandidateInfo } from '../../base/candidate.ts';
import type { Scope } from '../../core/contest.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../mechanisms/lease/store.ts';
import { decodeCandidates, encodeCandidate } from '../../record/candidate-entry.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { decodeRecordOf, encodeLeaseRecord } from '../../record/lease-record.ts';
import type { HintHub } from '../hint-hub.ts';
import { acknowledge, UnacknowledgedWrites } from './acknowledge.ts';

import type { RedisDriver, Send } from './driver.ts';
import type { Right } from './errors.ts';
import { asStoreError, keyLocation, refusal } from './errors.ts';
import type { ElectionKeys } from './keys.ts';
import { channelOf, keysOf } from './keys.ts';
import type { CheckedOptions } from './options.ts';
import { runScript, texts } from './run-script.ts';
import type { Script } from './scripts.ts';
import { enlistScript, listScript, readScript, swapScript } from './scripts.ts';

/**
 * How many tokens are left out when a server may have lost terms, so that none comes
 * again. More terms than that do not begin in a second or two of appending to a file, or
 * within a replica's lag.
 */
const mostLostTerms = 1_000n;

/** One handle on an election in Redis. */
export class RedisLeaseStore implements LeaseStore {
  readonly clockStepMs?: number;
  readonly forgets: boolean;
  readonly watch?: (onHint: () => void) => () => void;
  /** The token of the newest record, as far as the server knows. */
  readonly newestToken: () => Promise<bigint> = async () => {
    const token = await this.#send(['HGET', this.#keys.record, 'token']);
    return token === null || token === undefined ? 0n : BigInt(String(token));
  };
  readonly #tokenFloor: bigint;
  readonly #driver: RedisDriver;
  readonly #scope: Scope;
  readonly #keys: ElectionKeys;
  readonly #channel: string;
  readonly #wait: CheckedOptions['wait'];
  readonly #hub: HintHub | undefined;
  /** The rights that the client has used before, in any election. */
  readonly #worked: Set<Right>;
  readonly #endHints = new Set<() => void>();
  #highestToken = 0n;
  /** The highest token that is known from before this life of the store. */
  #lostToken = 0n;
  /** When this life began, by the server's clock. */
  #bornAtUnixMs = 0n;
  #spread = 0n;
  #enlisted: CandidateInfo | undefined;
  /** The record as we know it, to tell news from a mere confirmation. */
  #known: { readonly version: Version; readonly news: string } | undefined;
  /** The last hint that there was when the last look began. */
  #lastHint: number | undefined;
  readonly #unacknowledged = new UnacknowledgedWrites();
  #isTroubled = false;

  constructor(
    driver: RedisDriver,
    options: CheckedOptions,
    hub: HintHub | undefined,
    worked: Set<Right>,
    scope: Scope,
    keysFor: (prefix: string, name: string) => ElectionKeys = keysOf,
  ) {
    this.#driver = driver;
    this.#scope = scope;
    this.#keys = keysFor(driver.ownPrefix + options.prefix, scope.election);
    this.#channel = channelOf(driver.ownPrefix + driver.clientPrefix + options.prefix);
    this.#wait = options.wait;
    this.#hub = hub;
    this.#worked = worked;
    this.forgets = !options.durable;
    this.#tokenFloor = options.tokenFloor;
    if (options.clockStepMs !== undefined) this.clockStepMs = options.clockStepMs;
    if (hub !== undefined) this.watch = (onHint) => this.#watch(hub, onHint);
  }

  /**
   * Without ages, a look once per lease could not tell a dead leader's last renewal from a new one.
   */
  get hintsWork(): boolean {
    return this.clockStepMs !== undefined && this.#hub?.isOpen === true;
  }

  get tokenFloor(): bigint {
    // Terms after it may be forgotten, perhaps in a life that began with the same record as this
    // one. So the floor also rises with the clock. If the clock was set back, the names of the
    // lives still differ.
    const skipped = mostLostTerms + this.#spread;
    const floor = this.forgets && this.#lostToken > 0n ? this.#lostToken + skipped : 0n;
    return [floor, this.#bornAtUnixMs, this.#tokenFloor].reduce((a, b) => (a > b ? a : b));
  }

  async read(signal: AbortSignal): Promise<Reading> {
    const listed = this.#enlisted === undefined ? ['', '', ''] : this.#listing(this.#enlisted);
    const keys = [this.#keys.record, this.#keys.candidates];
    const args = [this.#scope.uniqueId(), ...listed, `${this.#highestToken}`];
    const wasDoubted = this.#hub?.isDoubted;
    const lastHint = this.#hub?.lastHint(this.#scope.election);
    const reply = await this.#run(readScript, keys, args, signal);
    this.#worked.add('read');
    const [version = '', life = '', age = '', lifeAge = '', text = '', lostToken, bornAt] =
      texts(reply);
    // A write that only the primary has may still be lost.
    if (this.#unacknowledged.has(version)) await this.#acknowledge(version);
    const record = text === '' ? undefined : this.#decode(text);
    this.#hub?.ensure(wasDoubted);
    if (record !== undefined) {
      const news = newsOf(record);
      if (this.#isUnannounced(record, news)) this.#hub?.doubt();
      this.#learn(version, record, news);
    }
    this.#lastHint = lastHint;
    this.#lostToken = BigInt(lostToken ?? 0);
    this.#bornAtUnixMs = BigInt(bornAt ?? 0);
    this.#spread = spreadOf(life);
    const counts = this.forgets && life !== '';
    return { record, version, ...this.#ages(age, lifeAge), ...(counts ? { life } : {}) };
  }

  async swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    const version = this.#scope.uniqueId();
    const news = newsOf(next);
    signal.throwIfAborted();
    if (expected === '') {
      throw refusal(
        `${this.#driver.description}: this user may only read, and a candidate writes; it needs the ` +
          'rights that docs/stores/redis.md lists',
        this.#worked.has('write'),
      );
    }
    if (this.#wait !== undefined) this.#unacknowledged.add(version);
    const wasDoubted = this.#hub?.isDoubted;
    const isNews = this.#known?.version !== expected || this.#known.news !== news;
    const reply = await this.#run(
      swapScript,
      [this.#keys.record],
      [
        String(expected),
        version,
        encodeLeaseRecord(next),
        `${next.token}`,
        isNews ? this.#channel : '',
        this.#scope.election,
      ],
      signal,
      'write',
    );
    this.#worked.add('write');
    const [outcome, trouble = ''] = texts(reply);
    if (outcome !== 'ok') return { outcome: 'conflict' };
    if (trouble !== '') this.#complain(trouble);
    if (this.#unacknowledged.has(version)) await this.#acknowledge(version);
    this.#learn(version, next, news);
    this.#hub?.ensure(wasDoubted);
    return { outcome: 'ok', version };
  }

  async enlist(candidate: CandidateInfo): Promise<() => Promise<void>> {
    this.#enlisted = candidate;
    const keys = [this.#keys.record, this.#keys.candidates];
    await this.#run(enlistScript, keys, this.#listing(candidate));
    return async () => {
      if (this.#enlisted === candidate) this.#enlisted = undefined;
      await this.#send(['HDEL', this.#keys.candidates, candidate.incarnation]);
    };
  }

  async list(signal: AbortSignal): Promise<readonly CandidateInfo[]> {
    return decodeCandidates(
      texts(await this.#run(listScript, [this.#keys.candidates], [], signal)),
    );
  }

  /** Makes nothing, but shows faults of the server. */
  async init(signal: AbortSignal): Promise<void> {
    await this.read(signal);
  }

  async close(): Promise<void> {
    this.#enlisted = undefined;
    for (const end of [...this.#endHints]) end();
  }

  /** The key of the record, as it is named in Redis. */
  get key(): string {
    return this.#driver.clientPrefix + this.#keys.record;
  }

  #watch(hub: HintHub, onHint: () => void): () => void {
    const remove = hub.add(this.#scope.election, onHint);
    const end = () => {
      this.#endHints.delete(end);
      remove();
    };
    this.#endHints.add(end);
    return end;
  }

  #ages(age: string, lifeAge: string): Pick<Reading, 'ageMs' | 'lifeAgeMs'> {
    if (this.clockStepMs === undefined) return {};
    const lifeAgeMs = Number(lifeAge);
    // A record from an earlier life was written by another clock, and may have come back.
    return age === '' ? { lifeAgeMs } : { lifeAgeMs, ageMs: Math.min(Number(age), lifeAgeMs) };
  }

  #learn(version: Version, { token }: LeaseRecord, news: string): void {
    this.#known = { version, news };
    if (token > this.#highestToken) this.#highestToken = token;
  }

  #decode(text: string): LeaseRecord {
    return decodeRecordOf(this.#scope.election, text, keyLocation(this.key));
  }

  /**
   * True for a change since the last look that no hint has told. A record that has gone back is no
   * such change: no hint tells of a loss.
   */
  #isUnannounced({ token }: LeaseRecord, news: string): boolean {
    if (this.#known === undefined || this.#known.news === news || token < this.#highestToken) {
      return false;
    }
    const lastHint = this.#hub?.lastHint(this.#scope.election);
    return lastHint !== undefined && lastHint === this.#lastHint;
  }

  /** Listed until well after the next look, which renews it. */
  #listing(candidate: CandidateInfo): string[] {
    const { leaseMs, pollEveryMs } = this.#scope.timing;
    const ttlMs = Math.ceil(2.5 * Math.max(leaseMs, pollEveryMs));
    return [candidate.incarnation, encodeCandidate(candidate), `${ttlMs}`];
  }

  async #acknowledge(version: string): Promise<void> {
    const { together } = this.#driver;
    const wait = this.#wait;
    if (together === undefined || wait === undefined) return;
    await this.#translated(() =>
      together((send) => acknowledge(send, this.#keys.record, version, wait)),
    );
    this.#unacknowledged.acknowledged(version);
  }

  #send(args: readonly string[], signal?: AbortSignal): Promise<unknown> {
    return this.#translated(() => this.#driver.send(this.#keys.record, args, signal));
  }

  #run(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    signal?: AbortSignal,
    right: Right = 'read',
  ): Promise<unknown> {
    signal?.throwIfAborted();
    const send: Send = (words) => this.#driver.send(this.#keys.record, words, signal);
    return this.#translated(() => runScript(send, script, keys, args), signal, right);
  }

  async #translated<T>(
    operation: () => Promise<T>,
    signal?: AbortSignal,
    right: Right = 'read',
  ): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw asStoreError(error, this.key, this.#driver.description, this.#worked.has(right));
    }
  }

  /** Complains once, because the trouble is the same every time. */
  #complain(trouble: string): void {
    if (this.#isTroubled) return;
    this.#isTroubled = true;
    this.#scope.onTrouble(
      `telling the others on channel ${this.#channel}`,
      new Error(`${trouble}: those who wait find out by themselves, later`),
    );
  }
}

/**
 * Another number for nearly every life. Larger ones would bring tokens ahead of the clock for
 * longer than two of the shortest leases.
 */
function spreadOf(life: string): bigint {
  return BigInt(createHash('sha1').update(life).digest().readUInt16BE(0) & 1_023);
}

/** Everything that a candidate may wait for: all but a mere renewal. */
function newsOf(record: LeaseRecord): string {
  return encodeLeaseRecord({ ...record, nonce: '' });
}
