/** Which elections a Redis has: a look at its keys, bounded, for others may have millions there. */
import type { RedisConnections } from './connect.ts';

const defaultPrefix = 'incumbent:';
/** Of one server: so many keys are looked at, at most. */
const keysARound = 1_000;
const mostRounds = 20;
/** Nobody reads more names than this. */
const mostNames = 200;

/** @returns undefined when we may not look */
export async function electionsIn(
  { location, primaries }: RedisConnections,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const { prefix = defaultPrefix } = location.options;
  const pattern = `${prefix.replace(/[\\*?[\]^-]/g, '\\$&')}{*}`;
  const names = new Set<string>();
  try {
    for (const { send } of await primaries()) {
      // A look leaves a mark even of an election that has never been used.
      const isUsed = async (key: string) => Number(await send('HEXISTS', key, 'record')) === 1;
      let cursor = '0';
      for (let round = 0; round < mostRounds; round += 1) {
        signal.throwIfAborted();
        const reply = await send('SCAN', cursor, 'MATCH', pattern, 'COUNT', String(keysARound));
        const [next, keys] = reply as readonly [string, readonly string[]];
        const found = keys.filter((key) => electionOf(key, prefix) !== undefined);
        const used = await Promise.all(found.slice(0, mostNames).map(isUsed));
        for (const [i, key] of found.entries()) {
          if (used[i] === true) names.add(electionOf(key, prefix) ?? '');
        }
        cursor = String(next);
        if (cursor === '0') break;
      }
    }
    return [...names].sort();
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/** The name is the hash tag of the key, with what could end a tag percent-encoded. */
function electionOf(key: string, prefix: string): string | undefined {
  const tag = key.slice(prefix.length);
  if (!key.startsWith(prefix) || !tag.startsWith('{') || !tag.endsWith('}')) return undefined;
  try {
    return decodeURIComponent(tag.slice(1, -1));
  } catch {
    return undefined;
  }
}
