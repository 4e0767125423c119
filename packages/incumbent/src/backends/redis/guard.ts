import { describeValue } from '../../base/candidate.ts';
import { InvalidOptionError, NotLeadingError } from '../../base/errors.ts';
import type { RedisClient } from './client.ts';
import type { RedisDriver } from './driver.ts';
import { driverOf } from './driver-of.ts';
import { keyBeside } from './keys.ts';
import { runScript } from './run-script.ts';
import type { Script } from './scripts.ts';
import { fencedScript, fencedSetScript } from './scripts.ts';

/**
 * Checks for resources in Redis. Beside each resource is a key, named like it with `:fence` at its
 * end. It keeps the highest token that has written. A write by a lower token is refused there, in
 * the same script, however late it arrives.
 */
export interface RedisGuard {
  /** The token of the term. */
  readonly token: bigint;
  /** The key of the election's record, a hash. Its field `token` is that of the newest term. */
  readonly key: string;
  /**
   * Asks Redis: true once a newer term has been elected. A term that begins between this answer and
   * the effect is not noticed. `set` and `run` are safe from that.
   * @throws StoreUnavailableError, StoreUnsuitableError
   */
  superseded(): Promise<boolean>;
  /**
   * SET, unless a newer term has written to `key` before.
   * @throws NotLeadingError when a newer term has written, otherwise the client's error
   */
  set(key: string, value: string): Promise<void>;
  /**
   * Runs your own script, unless a newer term has written to the first of `keys` before. In Lua the
   * fence is KEYS[1] and the token ARGV[1]: your keys and arguments begin with 2.
   * @returns the script's result
   * @throws NotLeadingError when a newer term has written, otherwise the client's error
   */
  run(lua: string, keys: readonly string[], args?: readonly string[]): Promise<unknown>;
}

/** @param newestToken reads the token of the election's record */
export function redisGuard(
  driver: RedisDriver,
  election: string,
  key: string,
  token: bigint,
  newestToken: () => Promise<bigint>,
): RedisGuard {
  return {
    token,
    key,
    superseded: async () => (await newestToken()) > token,
    set: async (resource, value) => {
      await runFenced(driver, fencedSetScript, election, token, [resource], [value]);
    },
    run: (lua, keys, args = []) =>
      runFenced(driver, fencedScript(lua), election, token, keys, args),
  };
}

/**
 * `term.guard` for a resource in another Redis than the election's. Also for an election that is
 * not in Redis at all: any `term` has a token.
 *
 * @param term a term, or an object with its election and token
 * @throws InvalidOptionError for a value that is no client
 */
export function fenceIn(
  client: RedisClient,
  term: { readonly election: string; readonly token: bigint },
): Pick<RedisGuard, 'token' | 'set' | 'run'> {
  const { token, set, run } = redisGuard(
    driverOf(client),
    term.election,
    '',
    term.token,
    async () => 0n,
  );
  return { token, set, run };
}

async function runFenced(
  driver: RedisDriver,
  script: Script,
  election: string,
  token: bigint,
  resources: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const [first] = resources;
  if (typeof first !== 'string') {
    throw new InvalidOptionError(
      `a guarded write needs the key that it writes, not ${describeValue(first)}`,
    );
  }
  const keys = [fenceBeside(driver, first), ...resources].map((key) => driver.ownPrefix + key);
  const send = (words: readonly string[]) => driver.send(keys[1] as string, words);
  try {
    return await runScript(send, script, keys, [token.toString(), ...args]);
  } catch (error) {
    const newer =
      error instanceof Error ? /\bSTALETOKEN (\d+)/.exec(error.message)?.[1] : undefined;
    if (newer === undefined) throw error;
    const refusal = new NotLeadingError(election, token, 0, 0);
    refusal.cause = new Error(
      `term ${newer} has written to ${JSON.stringify(first)}; if that is a term from before Redis ` +
        'lost data, raise tokenFloor',
      { cause: error },
    );
    throw refusal;
  }
}

/**
 * The name of the fence. On a cluster it must be on the same node, so it must have the
 * same hash tag.
 */
function fenceBeside(driver: RedisDriver, resource: string): string {
  const suffix = ':fence';
  const prefix = driver.ownPrefix + driver.clientPrefix;
  const beside = keyBeside(prefix + resource, suffix);
  // A name within the prefix cannot be tagged.
  if (beside?.startsWith(prefix + resource)) return resource + suffix;
  if (beside !== undefined && prefix === '') return beside;
  if (driver.together !== undefined) return resource + suffix;
  throw new InvalidOptionError(
    `on a cluster the key ${JSON.stringify(resource)} needs a hash tag for a guarded write, such as ` +
      `"{${resource.replaceAll(/[{}]/g, '')}}"`,
  );
}
