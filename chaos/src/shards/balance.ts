import type { TermActivity } from '@incumbent/cli/trial';

/**
 * Judges by the logs alone whether each shard is worked for, by all processes alike.
 * @param newest of each shard the term with the highest token
 * @param members the processes that take part: their ids by their process numbers
 * @param sinceMs older effects do not count
 * @returns what is missing, in words
 */
export function imbalanceOf(
  newest: readonly (TermActivity | undefined)[],
  members: ReadonlyMap<number, string>,
  sinceMs: number,
): string | undefined {
  const owned = new Map([...members.keys()].map((pid) => [pid, 0]));
  const idle: number[] = [];
  for (const [shard, term] of newest.entries()) {
    const count = term === undefined ? undefined : owned.get(term.group);
    if (term === undefined || count === undefined || Number(term.lastNs) / 1e6 < sinceMs) {
      idle.push(shard);
    } else owned.set(term.group, count + 1);
  }
  const counts = [...owned.values()];
  const said = [...owned].map(([pid, count]) => `${members.get(pid)}: ${count}`).join(', ');
  if (idle.length > 0) return `nobody works for the shards ${idle.join(', ')} (${said})`;
  if (Math.max(...counts) - Math.min(...counts) > 1) return `the shares are uneven (${said})`;
  return undefined;
}
