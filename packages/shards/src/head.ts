/**
 * The record of the coordinator's election, as far as shards are concerned: how many slots there are,
 * which list their numbers refer to, and which tokens the slots may have. Only a coordinator that still
 * holds its lease changes it.
 */
import type { Term } from 'incumbent';
import { InvalidOptionError } from 'incumbent';
import type { LeaseRecord } from 'incumbent/backend';
import type { Head } from './codec.ts';
import { decodeHead, encodeHead } from './codec.ts';
import type { Extended, Extension } from './extended-store.ts';
import { areAkin, describeList, sameList } from './lists.ts';
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
  /** This list can take the place of the other one when no process has that any more. */
  readonly canReplace: boolean;

  constructor(name: string, own: ShardList, theirs: ShardList) {
    const [mine, yours] = [describeList(own), describeList(theirs)];
    const canReplace = areAkin(own, theirs);
    const differ =
      mine === yours
        ? `both lists have ${own.count} shards, with different names`
        : `this process has ${mine}, and the others have ${yours}`;
    super(
      `"${name}" has another list of shards: ${differ}. This process owns nothing, and nothing was ` +
        (canReplace
          ? 'moved. Give all processes one list, or stop those with the other one first'
          : 'moved. Shards with names and shards with numbers cannot share a name: use another one'),
    );
    this.canReplace = canReplace;
  }
}

/** @throws ListDiffersError */
export function requireList(name: string, own: ShardList, theirs: ShardList): void {
  if (!sameList(own, theirs)) throw new ListDiffersError(name, own, theirs);
}

const nothing: Pick<Head, 'floors' | 'numbers'> = { floors: new Map(), numbers: 0 };

/** Carries the head on from one coordinator to the next. */
export class HeadRecord implements Extension<Head | undefined> {
  readonly #name: string;
  readonly #list: ShardList;
  #head: Head | undefined;
  #record: LeaseRecord | undefined;
  #wantedSlots = 0;
  #wantedFloors: ReadonlyMap<number, bigint> | undefined;
  #wantedTop = 0n;
  #wantedNumbers = 0;
  #noted: Pick<Head, 'floors' | 'numbers'> = nothing;
  /** The last term whose list was refused, and the one whose list no process has any more. */
  #refused: bigint | undefined;
  #abandoned: bigint | undefined;
  #readsSent = 0;
  /** Reads up to this one may show less than is known. */
  #readTaken = 0;
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

  /**
   * As the last confirmed write of this term has told them. A read is no proof of them: it may have
   * been sent before that write.
   */
  get noted(): Pick<Head, 'floors' | 'numbers'> {
    return this.#noted;
  }

  /**
   * No process with the list that was refused is alive: the next win writes the own one, unless another
   * process wins before.
   */
  takeOver(): void {
    this.#abandoned = this.#refused;
  }

  /** @throws ListDiffersError */
  #requireList({ token }: LeaseRecord, { list }: Head): void {
    if (token === this.#abandoned) return;
    this.#refused = token;
    requireList(this.#name, this.#list, list);
  }

  /** Resolves when the record is known to show that there are so many slots. */
  async raise(slots: number, term: Term): Promise<void> {
    this.#wantedSlots = slots;
    await term.proclaim({});
  }

  /**
   * Each write from here on says that the slots may have these tokens, and names these numbers.
   * @param tokenFloor no token that is given from here on is this one or lower
   */
  note(floors: ReadonlyMap<number, bigint>, tokenFloor: bigint, numbers: number): void {
    this.#wantedFloors = floors;
    this.#wantedTop = highestOf([this.#wantedTop, tokenFloor, ...floors.values()]);
    this.#wantedNumbers = numbers;
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
    if (isWin) {
      this.#wantedSlots = 0;
      this.#wantedFloors = undefined;
      this.#wantedNumbers = 0;
      this.#noted = nothing;
    }
    if (record !== undefined) this.#requireList(record, head);
    return {
      list: this.#list,
      slots: Math.max(head.slots, this.#wantedSlots),
      floors: this.#wantedFloors ?? head.floors,
      top: highestOf([head.top, this.#wantedTop]),
      numbers: Math.max(head.numbers, this.#wantedNumbers),
      pins: pinsIn(head.pins, head.list, this.#list),
    };
  }

  onWritten(written: Extended<Head | undefined>): void {
    this.#readTaken = this.#readsSent;
    this.#note(written);
    if (written.record?.holding !== undefined) this.#noted = written.state ?? nothing;
    this.#abandoned = undefined;
  }

  onReading(): number {
    this.#readsSent += 1;
    return this.#readsSent;
  }

  onRead(read: Extended<Head | undefined>, sent: unknown): LeaseRecord | undefined {
    const { record, state } = read;
    // A record that comes with a hint may be old, and so may one that was asked for before.
    if (typeof sent === 'number' && sent > this.#readTaken) {
      this.#readTaken = sent;
      this.#note(read);
    }
    if (record !== undefined && state !== undefined) this.#requireList(record, state);
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
    return { slots: 0, list: this.#list, pins: new Map(), top: 0n, ...nothing };
  }
}

function highestOf(tokens: readonly bigint[]): bigint {
  return tokens.reduce((highest, token) => (token > highest ? token : highest), 0n);
}
