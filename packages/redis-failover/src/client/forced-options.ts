import { InvalidOptionError } from 'incumbent';
import { show } from './show.ts';

/** The driver's options that the failover client decides itself. */
export interface Refusals {
  /** For each option: why it is refused, and what to do instead. */
  readonly [name: string]: string;
}

const byZooKeeper = 'which node is connected to is said by ZooKeeper';
export const noReconnect: string =
  'a connection belongs to one term of one primary, and is never made again for another';
export const noResend: string =
  'a command that may have been applied is repeated only with retryAmbiguous: true';

/** Options that say where to connect. ZooKeeper says that. */
export function refuseTargets(...names: string[]): Refusals {
  return Object.fromEntries(names.map((name) => [name, byZooKeeper]));
}

/**
 * @param what the name of the function that takes the options, for the message
 * @param allowed values that change nothing, and so are accepted
 * @throws InvalidOptionError for an option that the failover client cannot honour
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
