/**
 * A candidate as a store keeps it beside the record: in its place in a queue, or in a list of
 * waiting candidates.
 */
import type { CandidateInfo } from '../base/candidate.ts';

export function encodeCandidate({ id, incarnation, addresses, metadata }: CandidateInfo): string {
  return JSON.stringify({ id, incarnation, addresses, metadata });
}

/** The candidates in `entries`, sorted by id. Entries that are not ours are left out. */
export function decodeCandidates(entries: readonly string[]): readonly CandidateInfo[] {
  const found = entries.map((entry) => candidateIn(objectIn(entry)));
  return found.filter((candidate) => candidate !== undefined).sort(byId);
}

/**
 * @returns undefined when `entry` names no candidate. Addresses and metadata of a wrong type are
 * left out.
 */
export function candidateIn(entry: unknown): CandidateInfo | undefined {
  if (!isObject(entry)) return undefined;
  const { id, incarnation, addresses, metadata } = entry;
  if (!isString(id) || !isString(incarnation)) return undefined;
  const isList = Array.isArray(addresses) && addresses.every(isString);
  const isMap = isObject(metadata) && Object.values(metadata).every(isString);
  return {
    ...{ id, incarnation, addresses: isList ? addresses : [] },
    metadata: isMap ? (metadata as CandidateInfo['metadata']) : {},
  };
}

/** @returns undefined when the text is no JSON, or no object */
export function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** By id, and candidates of one id by their incarnations. */
export function byId(a: CandidateInfo, b: CandidateInfo): number {
  return compare(a.id, b.id) || compare(a.incarnation, b.incarnation);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
