import type { LeaseRecord, LeaseStore, Reading, Scope, Version } from 'incumbent/backend';
import type { Sighting } from 'incumbent/internal';
import { LossWatch, Observation } from 'incumbent/internal';
import { decodeSlot } from './codec.ts';
import type { Known } from './ledger.ts';
import type { SlotState } from './slot.ts';

/** A write that has no answer yet, or never had one. */
interface Sent {
  readonly state: SlotState;
  readonly record: LeaseRecord;
  readonly expected: Version;
}

/** A record that is none of a slot. Its holder cannot confirm any more. */
interface Damage {
  readonly error: Error;
  /** The first look that found it, monotonic. */
  readonly sinceMs: number;
}

/**
 * One slot, as a coordinator sees it. It outlives the coordinator's term: the time for which a holder
 * was silent goes on counting.
 */
export class SeenSlot {
  readonly number: number;
  readonly store: LeaseStore;
  readonly #scope: Scope;
  readonly #observation: Observation;
  #loss: LossWatch;
  /** The highest token of a stay, and when a holder with it cannot believe any more if it was lost. */
  #token = 0n;
  #settledAtMs: number | undefined;
  /** Undefined: there is none, as far as we know. */
  record: LeaseRecord | undefined;
  state: SlotState | undefined;
  version: Version = 0;
  /** Counts only while it is set: there may be no more than one write under way. */
  sent: Sent | undefined;
  isWriting = false;
  /** The look that was the last to begin before the end of the last write. Later ones show it. */
  lookAtWrite = 0;
  /** The last look whose reading was taken. */
  lookTaken = 0;
  /** Not written before then, so that its holder gets its turn. Monotonic. */
  pausedUntilMs: number = Number.NEGATIVE_INFINITY;
  /** The time at which a loss was found, monotonic. */
  lostAtMs: number = Number.NEGATIVE_INFINITY;
  /** Set while the record cannot be read. `state` is the last one that could, if there was one. */
  damage: Damage | undefined;
  /** The version is that of the damaged record, so that it can be replaced. */
  canReplace = false;
  #changes = 0n;
  #highest = 0n;
  #sinceMs: number = Number.POSITIVE_INFINITY;

  constructor(number: number, store: LeaseStore, scope: Scope) {
    this.number = number;
    this.store = store;
    this.#scope = scope;
    this.#observation = new Observation(store, scope);
    this.#loss = new LossWatch(store, scope);
  }

  /**
   * @param look counts the looks, in the order in which they began
   * @throws RecordDamagedError, RecordTooNewError
   */
  learn(reading: Reading, look: number): void {
    // It may be older than a write of ours.
    if (this.isWriting || look <= this.lookAtWrite) return;
    const { record, version } = reading;
    const state = record?.shards === undefined ? undefined : slotIn(record, this.#scope.election);
    const sighting = this.#observation.see(reading);
    this.#loss.see(sighting);
    this.#seeToken(sighting);
    this.#sinceMs = sighting.sinceMs;
    // A write on an older version can land no more. If it has landed, this reading shows it.
    if (this.sent !== undefined && this.sent.expected !== version) this.sent = undefined;
    const changes = state?.changes ?? -1n;
    // Later changes may have reached the old number again. Only a grant raises the highest token.
    const isOlder = changes < this.#changes || (state?.highest ?? 0n) < this.#highest;
    if (isOlder && (state !== undefined || this.state !== undefined)) {
      this.lostAtMs = this.#scope.clock.monotonicMs();
    }
    this.#changes = state === undefined ? 0n : changes;
    this.#highest = state?.highest ?? 0n;
    this.damage = undefined;
    // Its holder had its turn.
    if (record?.nonce !== this.record?.nonce) this.pausedUntilMs = Number.NEGATIVE_INFINITY;
    this.lookTaken = look;
    this.record = record;
    this.state = state;
    this.version = version;
  }

  /**
   * A slot that was lost and made anew begins with low tokens again. Its holders renew it, which would
   * prolong the wait for the lost one for ever.
   */
  #seeToken(sighting: Sighting): void {
    const token = sighting.record?.token ?? 0n;
    if (token >= this.#token) this.#settledAtMs = undefined;
    else {
      const nowMs = this.#scope.clock.monotonicMs();
      this.#settledAtMs ??= nowMs + this.#loss.leftMs;
      if (nowMs < this.#settledAtMs) return;
      this.#settledAtMs = undefined;
      this.#loss = new LossWatch(this.store, this.#scope);
      this.#loss.see(sighting);
    }
    this.#token = token;
  }

  /**
   * A look has found a record that is none of a slot, or of a newer release.
   * @param reading undefined: its version is not known, or it is not to be replaced
   * @returns true when the slot could be read before
   */
  spoil(error: Error, look: number, reading: Reading | undefined): boolean {
    if (this.isWriting || look <= this.lookAtWrite) return false;
    const isNew = this.damage === undefined;
    // A version that moves shows a live holder, whose records this release may be unable to read.
    const hasMoved = reading !== undefined && reading.version !== this.version;
    const standsMs = hasMoved ? undefined : this.damage?.sinceMs;
    this.damage = { error, sinceMs: standsMs ?? this.#scope.clock.monotonicMs() };
    this.lookTaken = look;
    this.canReplace = reading !== undefined;
    if (reading === undefined) return isNew;
    const { record, version } = reading;
    if (this.sent !== undefined && this.sent.expected !== version) this.sent = undefined;
    if (record !== undefined) this.record = record;
    this.version = version;
    return isNew;
  }

  /** Our write has replaced the version that it was made from. */
  onWritten({ state, record }: Sent, version: Version): void {
    this.sent = undefined;
    this.record = record;
    this.state = state;
    this.version = version;
    this.#changes = state.changes;
    this.#highest = state.highest;
    this.damage = undefined;
    const { life } = this.#observation.sighting ?? {};
    const sighting = this.#observation.see({
      record,
      version,
      ...(life !== undefined && { life }),
    });
    this.#sinceMs = sighting.sinceMs;
  }

  get known(): Known | undefined {
    if (this.state === undefined) return undefined;
    return { seen: this.state, sent: this.sent === undefined ? [] : [this.sent.state] };
  }

  /** How long the record could not be read, in ms. */
  get spoiltMs(): number {
    return this.damage === undefined ? 0 : this.#scope.clock.monotonicMs() - this.damage.sinceMs;
  }

  /** How long the holder has written nothing, in ms. */
  get silentMs(): number {
    return this.#scope.clock.monotonicMs() - this.#sinceMs;
  }

  /** How much longer a holder may believe whose record is lost, in ms. */
  get settlesMs(): number {
    return this.#loss.leftMs;
  }

  /** The death of the holder shows before its lease is over. */
  get canProve(): boolean {
    return this.store.provesGone !== undefined && (this.record?.holding?.actors?.length ?? 0) > 0;
  }

  /** The holder cannot believe any more, by the rule of the lease race. */
  get isOver(): boolean {
    const { record } = this;
    if (record?.holding === undefined || this.settlesMs > 0) return false;
    if (this.silentMs >= record.leaseMs) return true;
    const { actors } = record.holding;
    return actors !== null && actors.length > 0 && this.store.provesGone?.(actors) === true;
  }
}

function slotIn(record: LeaseRecord, election: string): SlotState {
  return decodeSlot(Buffer.from(record.shards ?? '', 'base64'), `the slot "${election}"`);
}
