import type { CandidateInfo } from '../../base/candidate.ts';

export function writeListed({ id, incarnation, addresses, metadata }: CandidateInfo): string {
  return JSON.stringify({ id, incarnation, addresses, metadata });
}

/** Sorted by id. What is not ours to read is left out. */
export function readListed(entries: readonly string[]): readonly CandidateInfo[] {
  const found = entries.map(readEntry).filter((entry) => entry !== undefined);
  return found.sort((a, b) => compare(a.id, b.id) || compare(a.incarnation, b.incarnation));
}

function readEntry(text: string): CandidateInfo | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(parsed)) return undefined;
  const { id, incarnation, addresses, metadata } = parsed;
  if (typeof id !== 'string' || typeof incarnation !== 'string') return undefined;
  if (!Array.isArray(addresses) || !addresses.every(isString)) return undefined;
  if (!isObject(metadata) || !Object.values(metadata).every(isString)) return undefined;
  return { id, incarnation, addresses, metadata: metadata as Record<string, string> };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
