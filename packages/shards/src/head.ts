/**
 * The record of the coordinator's election, as far as shards are concerned: how many slots there are,
 * and which list their numbers refer to. Only a coordinator that still holds its lease changes it.
 */
import type { Term } from 'incumbent';
import { InvalidOptionError } from 'incumbent';
import type { LeaseRecord } from 'incumbent/backend';
import type { Head } from './codec.ts';
import { decodeHead, encodeHead } from './codec.ts';
import type { Extended, Extension } from './extended-store.ts';
import { describeList, sameList } from './lists.ts';
import { pinsIn } from './pins.ts';
import type { ShardList } from './slot.ts';

/** @throws InvalidOptionError for the record of an ordinary election */
export function headIn(record: LeaseRecord | undefined, name: string): Head | undefined {
  if (record === undefined) return undefined;
  if (record.shards === undefined) {
    throw new InvalidOptionError(
      `the name "${name}" belongs to an ordinary election: use another name for the shards`,
    );
  }
  return decodeHead(Buffer.from(record.shards, 'base64'), `the record "${name}"`);
}

/** Other processes share another list of shards under this name. */
export class ListDiffersError extends InvalidOptionError {
  override readonly name: string = 'ListDiffersError';

  constructor(name: string, own: ShardList, theirs: ShardList) {
    const differ =
      own.count === theirs.count
        ? `both lists have ${own.count} shards, with different names`
        : `this process has ${describeList(own)}, and the others have ${describeList(theirs)}`;
    super(
      `"${name}" has another list of shards: ${differ}. This process owns nothing, and nothing was ` +
        'moved. Give all processes one list, or stop those with the other one first',
    );
  }
}

/** @throws ListDiffersError */
export function requireList(name: string, own: ShardList, theirs: ShardList): void {
  if (!sameList(own, theirs)) throw new ListDiffersError(name, own, theirs);
}

/** Carries the head on from one coordinator to the next. */
export class HeadRecord implements Extension<Head | undefined> {
  readonly #name: string;
  readonly #list: ShardList;
  #head: Head | undefined;
  #record: LeaseRecord | undefined;
  #wantedSlots = 0;
  #isNewList = false;
  /** Called after a read or write that shows other requests of operators. */
  onRequests: () => void = () => {};

  constructor(name: string, list: ShardList) {
    this.#name = name;
    this.#list = list;
  }

  /** As the last read or write of this process shows it. */
  get head(): Head | undefined {
    return this.#head;
  }

  get record(): LeaseRecord | undefined {
    return this.#record;
  }

  /** No process with the old list is alive: the next win writes the own one. */
  takeOver(): void {
    this.#isNewList = true;
  }

  /** Resolves when the record is known to show that there are so many slots. */
  async raise(slots: number, term: Term): Promise<void> {
    this.#wantedSlots = slots;
    await term.proclaim({});
  }

  decode(record: LeaseRecord | undefined): Head | undefined {
    return headIn(record, this.#name);
  }

  encode(head: Head | undefined): string {
    return Buffer.from(encodeHead(head ?? this.#first)).toString('base64');
  }

  follow({ record, state }: Extended<Head | undefined>, next: LeaseRecord): Head {
    const head = state ?? this.#first;
    const isOurs = next.holding !== undefined;
    if (!isOurs) return head;
    const isWin = next.token !== record?.token;
    if (isWin) this.#wantedSlots = 0;
    if (!this.#isNewList) requireList(this.#name, this.#list, head.list);
    return {
      list: this.#list,
      slots: Math.max(head.slots, this.#wantedSlots),
      pins: pinsIn(head.pins, head.list, this.#list),
    };
  }

  onWritten(written: Extended<Head | undefined>): void {
    this.#note(written);
    this.#isNewList = false;
  }

  onReading(): true {
    return true;
  }

  onRead(read: Extended<Head | undefined>, isRead: unknown): LeaseRecord | undefined {
    const { record, state } = read;
    // A record that comes with a hint may be old.
    if (isRead === true) this.#note(read);
    if (state !== undefined && !this.#isNewList) requireList(this.#name, this.#list, state.list);
    return record;
  }

  #note({ record, state }: Extended<Head | undefined>): void {
    const before = this.#requests;
    this.#head = state;
    this.#record = record;
    if (this.#requests !== before) this.onRequests();
  }

  /** Differs when the requests do. */
  get #requests(): string {
    return JSON.stringify([this.#record?.drains ?? [], [...(this.#head?.pins ?? [])]]);
  }

  get #first(): Head {
    return { slots: 0, list: this.#list, pins: new Map() };
  }
}
