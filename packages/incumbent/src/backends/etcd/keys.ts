/**
 * The keys of an election in etcd: the layout of the Go client's `concurrency.Election`, which
 * `etcdctl elect` uses as well.
 *
 *     <root><election>/<lease id in hex>     one for each candidate, attached to its lease; the
 *                                            smallest create revision leads
 *     <root>incumbent/record/<election>      our record, where no prefix of an election reaches it
 *     <root>incumbent/lease/<name>           a lease of shards
 *     <root>incumbent/news/<name>            put with each change of it that others wait for
 */

import type { CandidateInfo } from '../../base/candidate.ts';
import { checkElectionName, checkName } from '../../base/candidate.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { Entry } from '../../mechanisms/queue/store.ts';
import { candidateIn, objectIn } from '../../record/candidate-entry.ts';
import type { KeyValue } from './messages.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** A byte order mark is as good a part of a key as any. */
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Surrogates that are not half of a pair. */
const standIns = /([\udc80-\udcff])/u;

/** @param text may have `decodeKey`'s stand-ins for bytes that are no UTF-8 */
export function encodeKey(text: string): Uint8Array {
  if (!standIns.test(text)) return encoder.encode(text);
  const parts = text.split(standIns).map((part) => {
    const isByte = part.length === 1 && standIns.test(part);
    return isByte ? [part.charCodeAt(0) & 0xff] : encoder.encode(part);
  });
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/**
 * Keys are bytes, and a Go program may use any. A byte that is no UTF-8 becomes half a surrogate
 * pair, U+DC80 to U+DCFF. Valid UTF-8 never decodes to that, so the name of each place leads back
 * to its key.
 */
function decodeKey(key: Uint8Array): string {
  const whole = decodeUtf8(key);
  if (whole !== undefined) return whole;
  let text = '';
  for (let at = 0; at < key.length; ) {
    const first = key[at] as number;
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const character = decodeUtf8(key.subarray(at, at + length));
    text += character ?? String.fromCharCode(0xdc00 + first);
    at += character === undefined ? 1 : length;
  }
  return text;
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strictDecoder.decode(bytes);
  } catch {
    return undefined;
  }
}

export interface ElectionKeys {
  /** With the slash at its end. */
  readonly prefix: string;
  /** All keys that begin with the prefix. */
  readonly range: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array };
  readonly record: string;
}

/** @throws InvalidOptionError for a name that would be in the way of others */
export function electionKeys(root: string, election: string): ElectionKeys {
  const refuse = (why: string): never => {
    throw new InvalidOptionError(
      `the election ${JSON.stringify(election)} cannot be kept in etcd: ${why}`,
    );
  };
  if (election.endsWith('/')) refuse('its name ends with "/", which is put there anyway');
  if (election.includes('//')) refuse('its name has "//" in it');
  if (election === 'incumbent' || election.startsWith('incumbent/')) {
    refuse('below "incumbent/" are the records of all elections');
  }
  const prefix = `${root}${election}/`;
  return { prefix, range: rangeBelow(prefix), record: `${recordsOf(root)}${election}` };
}

/**
 * @returns the key of the lease, and the one that is put with each change of it but a renewal
 * @throws InvalidOptionError
 */
export function leaseKeys(root: string, name: string): Record<'record' | 'news', string> {
  electionKeys(root, name);
  return { record: `${leasesBelow(root)}${name}`, news: `${root}incumbent/news/${name}` };
}

/** The keys of all leases begin with this. */
export function leasesBelow(root: string): string {
  return `${root}incumbent/lease/`;
}

/** The keys of the records of all elections begin with this. */
export function recordsOf(root: string): string {
  return `${root}incumbent/record/`;
}

/** @param prefix ends with a slash */
export function rangeBelow(prefix: string): ElectionKeys['range'] {
  const key = encodeKey(prefix);
  const rangeEnd = key.slice();
  // "/" + 1: the first key that does not begin with the prefix.
  rangeEnd[rangeEnd.length - 1] = '/'.charCodeAt(0) + 1;
  return { key, rangeEnd };
}

/**
 * The keys of the election whose record has this key. Undefined: it is no key that a candidate would
 * use.
 */
export function keysOfRecord(root: string, key: Uint8Array): RecordKeys | undefined {
  const election = decodeUtf8(key)?.slice(recordsOf(root).length);
  if (election === undefined) return undefined;
  try {
    return { election, keys: electionKeys(root, checkElectionName(election)) };
  } catch {
    return undefined;
  }
}

export interface RecordKeys {
  readonly election: string;
  readonly keys: ElectionKeys;
}

export function checkRoot(root: unknown): string {
  if (root === '') return '';
  return checkName('root', root, 200);
}

export function placeKey(prefix: string, lease: bigint): string {
  return `${prefix}${lease.toString(16)}`;
}

/**
 * The name of a place: its key and its create revision. The key comes again when a candidate enters
 * again on the same lease. With its revision it is unique for ever.
 */
export function placeName(key: string, createRevision: bigint): string {
  return `${key}@${createRevision}`;
}

/**
 * The name of a place as a record has it, below our own prefix. The writer of the record may reach
 * the same keys through a proxy that puts a namespace before them.
 */
export function nameBelow(prefix: string, recorded: string): string {
  return `${prefix}${recorded.slice(recorded.lastIndexOf('/') + 1)}`;
}

/** Undefined for a text that is no name: a record may have been written by hand. */
export function parsePlace(
  name: string,
): { readonly key: string; readonly createRevision: bigint } | undefined {
  const match = /^(.+)@([1-9]\d{0,18})$/s.exec(name);
  if (match === null) return undefined;
  return { key: match[1] as string, createRevision: BigInt(match[2] as string) };
}

/**
 * The name of the place in a key. Undefined when it belongs to another election, whose name begins
 * with ours and a slash.
 */
export function nameOf(prefix: string, { key, createRevision }: KeyValue): string | undefined {
  const text = decodeKey(key);
  return text.includes('/', prefix.length) ? undefined : placeName(text, createRevision);
}

/** The value of a candidate's key. */
export function encodeCandidate({ guid, candidate }: Entry): Uint8Array {
  const { id, incarnation, addresses, metadata } = candidate;
  const fields = { incumbent: 'candidate', guid, id, incarnation, addresses, metadata };
  return encoder.encode(JSON.stringify(fields));
}

export interface DecodedCandidate {
  readonly candidate: CandidateInfo;
  /** The guid of the entry that it was put for. Undefined when another program has put it. */
  readonly guid: string | undefined;
}

/** A foreign candidate is known by its proposal: `etcdctl elect NAME PROPOSAL`. */
export function decodeCandidate(name: string, value: Uint8Array): DecodedCandidate {
  const text = decoder.decode(value);
  const foreign: DecodedCandidate = {
    candidate: { id: text === '' ? name : text, incarnation: name, addresses: [], metadata: {} },
    guid: undefined,
  };
  const fields = objectIn(text);
  const candidate = candidateIn(fields);
  const guid = fields?.['guid'];
  if (fields?.['incumbent'] !== 'candidate' || typeof guid !== 'string') return foreign;
  return candidate === undefined ? foreign : { candidate, guid };
}
