/** The names of the keys of one election in Redis. */
export interface ElectionKeys {
  readonly record: string;
  readonly candidates: string;
}

/**
 * All keys of an election have its name as their hash tag. On a cluster they are on one node, so a
 * script may use them together.
 */
export function keysOf(prefix: string, election: string): ElectionKeys {
  return keysWith(`${prefix}{${tagOf(election)}}`);
}

/**
 * The keys of a lease that is part of something, such as `devices/3`. On a cluster all parts of
 * `devices` are on one node. No election has these keys, so no listing takes them for one.
 */
export function leaseKeysOf(prefix: string, name: string): ElectionKeys {
  const slash = name.lastIndexOf('/');
  if (slash < 1) return keysOf(prefix, name);
  return keysWith(`${prefix}{${tagOf(name.slice(0, slash))}}${name.slice(slash)}`);
}

/** A tag ends with the first brace, and is none when it is empty. */
function tagOf(election: string): string {
  return election.replaceAll(/[%{}]/g, (each) => encodeURIComponent(each));
}

function keysWith(record: string): ElectionKeys {
  return { record, candidates: `${record}:candidates` };
}

/** The keys of all elections with this prefix, as a pattern of SCAN. Others may match it too. */
export function patternOf(prefix: string): string {
  return `${prefix.replace(/[\\*?[\]^-]/g, '\\$&')}{*}*`;
}

/** The election that has this key. Undefined: it is not ours. */
export function electionOf(prefix: string, key: string): string | undefined {
  const tag = /^\{([^{}]+)\}/.exec(key.slice(prefix.length))?.[1];
  if (tag === undefined || !key.startsWith(prefix)) return undefined;
  let election: string;
  try {
    election = decodeURIComponent(tag);
  } catch {
    return undefined;
  }
  const { record, candidates } = keysOf(prefix, election);
  // Another spelling of the name is no key that we would ever look at.
  return key === record || key === candidates ? election : undefined;
}

/** The channel for news of all elections with this prefix. The message is the election's name. */
export function channelOf(prefix: string): string {
  return `${prefix}news`;
}

/**
 * A key beside `key`, on the same node of a cluster: it has the same hash tag, or all of `key` as
 * its tag. Undefined when there is none, because of a brace that closes nothing.
 */
export function keyBeside(key: string, suffix: string): string | undefined {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  if (close > open + 1) return `${key}${suffix}`;
  return key.includes('}') || key === '' ? undefined : `{${key}}${suffix}`;
}
