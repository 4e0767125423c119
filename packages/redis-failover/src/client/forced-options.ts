import { InvalidOptionError } from 'incumbent';
import { show } from './show.ts';

/** Options of a driver that the failover client decides itself. */
export interface Refusals {
  /** By name: why, and what to do instead. */
  readonly [name: string]: string;
}

const byZooKeeper = 'which node is connected to is said by ZooKeeper';
export const noReconnect: string =
  'a connection belongs to one term of one primary, and is never made again for another';
export const noResend: string =
  'a command that may have been applied is repeated only with retryAmbiguous: true';

/** Where to connect to: never the caller's business. */
export function refuseTargets(...names: string[]): Refusals {
  return Object.fromEntries(names.map((name) => [name, byZooKeeper]));
}

/**
 * @param what the function that takes the options
 * @param allowed a value that changes nothing is passed over
 * @throws InvalidOptionError for an option that cannot hold
 */
export function refuseOptions(
  what: string,
  options: object,
  refusals: Refusals,
  allowed: Readonly<Record<string, readonly unknown[]>>,
): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || !Object.hasOwn(refusals, name)) continue;
    if (allowed[name]?.includes(value) === true) continue;
    throw new InvalidOptionError(`${what} cannot take ${name}: ${refusals[name]}`);
  }
}

/** @throws InvalidOptionError */
export function checkObject(what: string, value: unknown): asserts value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidOptionError(`${what} takes an object of options, not ${show(value)}`);
  }
}
