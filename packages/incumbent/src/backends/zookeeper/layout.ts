import { createHash } from 'node:crypto';
import type { CandidateInfo } from '../../base/candidate.ts';
import { longestLeaseMs } from '../../base/timing.ts';
import type { SuccessorMark } from '../../mechanisms/queue/store.ts';
import { candidateIn, isObject, objectIn } from '../../record/candidate-entry.ts';
import type { ZooKeeperLayout } from './options.ts';

/** How the places of a queue are named, and what they say of their owners. */
export interface QueueLayout {
  /** True: other libraries' programs are members, by rules of their own. */
  readonly isMixed: boolean;
  /** True: the names carry no guid. One comes again when the election's node is made anew. */
  readonly recurs: boolean;
  /** True: makes the election's node when it is not there. */
  readonly createsNode: boolean;
  /** The child that says that the election is over. */
  readonly endMark: string | undefined;
  /** The name to which the server appends the sequence number. */
  namePrefix(guid: string): string;
  /** The sequence number of a place. Undefined for a child that is no place. */
  sequenceOf(child: string): number | undefined;
  /** True when a child can only have been made with this guid. */
  wasMadeWith(child: string, guid: string): boolean;
  dataOf(candidate: CandidateInfo, mark?: SuccessorMark): string;
  memberFrom(child: string, data: string): { candidate: CandidateInfo; isOurs: boolean };
}

/**
 * A number that the server prints with `%010d`: an int32 that runs over from
 * 2147483647 to -2147483648.
 */
const number = '(\\d{10}|-\\d{9,10})';

/** The layouts that are a queue, and no lock. */
export type QueueLayoutName = Exclude<ZooKeeperLayout, 'hadoop' | 'node'>;

const layouts: Readonly<Record<QueueLayoutName, QueueLayout>> = {
  incumbent: {
    isMixed: false,
    recurs: false,
    createsNode: true,
    endMark: undefined,
    namePrefix: (guid) => `_c_${guid}-n_`,
    sequenceOf: parser(new RegExp(`^_c_[A-Za-z0-9_-]+-n_${number}$`)),
    wasMadeWith: (child, guid) => child.startsWith(`_c_${guid}-n_`),
    dataOf: ({ id, incarnation, addresses, metadata }, mark) =>
      JSON.stringify({
        ...{ incumbent: 'candidate', id, incarnation, addresses, metadata },
        ...(mark && { successor: mark }),
      }),
    memberFrom: (child, data) => ({
      candidate: decodeCandidate(data) ?? foreignCandidate(child, data),
      isOurs: true,
    }),
  },
  golea: {
    ...foreign({
      prefix: () => 'le_',
      pattern: new RegExp(`^le_${number}$`),
      createsNode: false,
      endMark: 'DONE',
    }),
    recurs: true,
    wasMadeWith: () => false,
  },
  'curator-latch': foreign({
    prefix: (guid) => `_c_${uuidOf(guid)}-latch-`,
    pattern: new RegExp(`^(?:_c_[0-9a-fA-F-]{36}-)?latch-${number}$`),
  }),
  'curator-selector': foreign({
    prefix: (guid) => `_c_${uuidOf(guid)}-lock-`,
    pattern: new RegExp(`^(?:_c_[0-9a-fA-F-]{36}-)?lock-${number}$`),
  }),
  kazoo: foreign({
    prefix: (guid) => `${uuidOf(guid).replaceAll('-', '')}__lock__`,
    pattern: new RegExp(`^.*__lock__${number}$`),
  }),
  recipe: foreign({
    // One hyphen only: zkElection looks for the number between the first and the
    // second, and panics.
    prefix: (guid) => `${uuidOf(guid).replaceAll('-', '')}-n_`,
    // `n_` in the documentation, `p_` in zkElection, and any other name that ends in a number.
    pattern: new RegExp(`_${number}$|(?:^|[^0-9])(\\d{10})$`),
  }),
};

export function queueLayout(name: QueueLayoutName): QueueLayout {
  return layouts[name];
}

/** How much later `b` was made than `a`, over the wrap of the number. */
export function sequenceDistance(a: number, b: number): number {
  return (b - a) | 0;
}

interface ForeignNames {
  readonly prefix: (guid: string) => string;
  readonly pattern: RegExp;
  readonly createsNode?: boolean;
  readonly endMark?: string;
}

/** Members of those libraries say only an id, and so must ours. They show it for us. */
function foreign({ prefix, pattern, createsNode = true, endMark }: ForeignNames): QueueLayout {
  return {
    isMixed: true,
    recurs: false,
    createsNode,
    endMark,
    namePrefix: prefix,
    sequenceOf: parser(pattern),
    wasMadeWith: (child, guid) => child.startsWith(prefix(guid)),
    dataOf: ({ id }) => id,
    memberFrom: (child, data) => ({
      candidate: foreignCandidate(child, data),
      isOurs: carriesOurTag(child),
    }),
  };
}

function parser(pattern: RegExp): (child: string) => number | undefined {
  return (child) => {
    const match = pattern.exec(child);
    const digits = match?.[1] ?? match?.[2];
    return digits === undefined ? undefined : Number(digits);
  };
}

/** Marks the UUIDs that we make, so that ours are known among theirs. */
const tag = 'e1ec70';

/** A UUID of version 8 (RFC 9562, for custom UUIDs), always the same for a guid. */
function uuidOf(guid: string): string {
  const hex = createHash('sha256').update(guid).digest('hex');
  const part = (from: number, to: number) => hex.slice(from, to);
  return `${part(0, 8)}-${part(8, 12)}-8${part(12, 15)}-a${part(15, 18)}-${part(18, 24)}${tag}`;
}

function carriesOurTag(child: string): boolean {
  return /[0-9a-f]{8}-?[0-9a-f]{4}-?8[0-9a-f]{3}-?a[0-9a-f]{3}-?[0-9a-f]{6}e1ec70/.test(child);
}

function foreignCandidate(child: string, data: string): CandidateInfo {
  // GoLea wrote a single space before it knew names.
  return { id: data.trim() === '' ? child : data, incarnation: child, addresses: [], metadata: {} };
}

/** @param data of a place in the layout `incumbent` */
export function markIn(data: string): SuccessorMark | undefined {
  const mark = objectIn(data)?.['successor'];
  if (!isObject(mark) || decodeCandidate(data) === undefined) return undefined;
  const { nonce, beliefMs, leaseMs, ready } = mark;
  if (typeof nonce !== 'string' || nonce === '' || !isDuration(beliefMs) || !isDuration(leaseMs)) {
    return undefined;
  }
  return { nonce, beliefMs, leaseMs, ready: ready === false ? false : undefined };
}

function isDuration(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value <= longestLeaseMs;
}

function decodeCandidate(data: string): CandidateInfo | undefined {
  const fields = objectIn(data);
  return fields?.['incumbent'] === 'candidate' ? candidateIn(fields) : undefined;
}
