import { networkInterfaces } from 'node:os';
import { InvalidOptionError } from './errors.ts';

/** The candidate as observers will see it when it leads. */
export interface CandidateOptions {
  /**
   * A name for people and operators: 1 to 200 bytes without control characters. Default: host name
   * and process id, in a worker thread its number too. Two candidates may share a name, as a
   * restarted process usually does. Only drains, transfers and reservations go by it.
   */
  readonly id?: string;
  /**
   * Where the leader can be reached, such as `"10.0.0.7:50051"`. At most 32, each 1 to 300 bytes.
   */
  readonly addresses?: readonly string[];
  /** Anything that observers should know. At most 4096 bytes as JSON. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A candidate or leader as others see it. */
export interface CandidateInfo {
  /** The candidate's name, for people. Several candidates may share it. */
  readonly id: string;
  /**
   * Random, drawn when a campaign begins. All terms of one `lead` share it. The next call of
   * `lead`, `campaign` or `terms` has another one, and so has a restarted process. People and
   * observers tell campaigns apart by it. It does not prove that a process wrote a record: a copy
   * of a process that campaigns has the same one.
   */
  readonly incarnation: string;
  /** Where the candidate can be reached, as it published them. */
  readonly addresses: readonly string[];
  /** Facts that the candidate published. */
  readonly metadata: Readonly<Record<string, string>>;
}

// Shared: a process may hold thousands of elections.
const noAddresses: readonly string[] = Object.freeze([]);
const noMetadata: Readonly<Record<string, string>> = Object.freeze({});

export const maxMetadataBytes = 4096;
export const maxAddresses = 32;
const maxIdBytes = 200;
const maxAddressBytes = 300;
const maxElectionNameBytes = 200;

/** Rejects names that a store, a log or a terminal could misread. */
export function checkName(what: string, value: unknown, maxBytes: number): string {
  if (typeof value !== 'string') {
    throw new InvalidOptionError(`${what} must be a string, not ${describeValue(value)}`);
  }
  if (value === '') throw new InvalidOptionError(`${what} must not be empty`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point
  const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.exec(value);
  if (control) {
    const code = control[0].codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
    throw new InvalidOptionError(
      `${what} ${JSON.stringify(value)} contains the control character U+${code}; leave it out`,
    );
  }
  if (hasLoneSurrogate(value)) {
    throw new InvalidOptionError(
      `${what} ${JSON.stringify(value)} has half a surrogate pair in it`,
    );
  }
  const bytes = Buffer.byteLength(value);
  if (bytes > maxBytes) {
    throw new InvalidOptionError(
      `${what} "${value.slice(0, 40)}…" has ${bytes} bytes, at most ${maxBytes} are allowed`,
    );
  }
  return value;
}

export function checkElectionName(value: unknown): string {
  return checkName('the election name', value, maxElectionNameBytes);
}

export function checkCandidateId(value: unknown): string {
  return checkName('the candidate id', value, maxIdBytes);
}

export function checkAddresses(value: unknown): readonly string[] {
  if (!Array.isArray(value)) {
    throw new InvalidOptionError(`addresses must be a list, not ${describeValue(value)}`);
  }
  if (value.length > maxAddresses) {
    throw new InvalidOptionError(
      `${value.length} addresses were given, at most ${maxAddresses} are allowed`,
    );
  }
  if (value.length === 0) return noAddresses;
  return Object.freeze(value.map((address) => checkName('an address', address, maxAddressBytes)));
}

/**
 * Describes a client for an error message. A text is not shown: it may be a URL with a password.
 */
export function describeClient(value: unknown): string {
  return typeof value === 'string' ? 'a string' : describeValue(value);
}

export function checkMetadata(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidOptionError(
      `metadata must be an object with string values, not ${describeValue(value)}`,
    );
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return noMetadata;
  for (const [key, entry] of entries) {
    if (typeof entry !== 'string') {
      throw new InvalidOptionError(
        `metadata "${key}" must be a string, not ${describeValue(entry)}`,
      );
    }
    if (hasLoneSurrogate(key) || hasLoneSurrogate(entry)) {
      throw new InvalidOptionError(
        `metadata ${JSON.stringify(key)} has half a surrogate pair in it`,
      );
    }
  }
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > maxMetadataBytes) {
    throw new InvalidOptionError(
      `metadata takes ${bytes} bytes as JSON, at most ${maxMetadataBytes} are allowed: ` +
        'publish where the rest can be found instead',
    );
  }
  return Object.freeze({ ...(value as Record<string, string>) });
}

/**
 * `given` over `base`.
 * @throws InvalidOptionError when `given` is no object, or has a field that no candidate has
 */
export function checkCandidate(
  base: CandidateOptions | undefined,
  given: CandidateOptions,
): CandidateOptions {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new InvalidOptionError(
      `candidate must be an object such as { id: "host-7" }, not ${describeValue(given)}`,
    );
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(optionNames, name)) continue;
    throw new InvalidOptionError(
      `a candidate has no "${name}"; it has ${Object.keys(optionNames).join(', ')}, and metadata may ` +
        'hold whatever else others should know',
    );
  }
  return { ...base, ...given };
}

const optionNames: Readonly<Record<keyof CandidateOptions, true>> = {
  id: true,
  addresses: true,
  metadata: true,
};

/** The options with defaults filled in and all values checked. */
export function resolveCandidate(
  options: CandidateOptions,
  defaultId: string,
  incarnation: string,
): CandidateInfo {
  return {
    id: checkCandidateId(options.id ?? defaultId),
    incarnation,
    addresses: checkAddresses(options.addresses ?? []),
    metadata: checkMetadata(options.metadata ?? {}),
  };
}

/**
 * Every address at which other hosts may reach this one, each with `port`: `10.0.0.7:50051` or
 * `[2001:db8::7]:50051`. Loopback, link-local and multicast addresses are left out.
 * @param port 1 to 65535
 * @throws InvalidOptionError for any other port
 */
export function selfAddresses(port: number): string[] {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new InvalidOptionError(`a port is a whole number from 1 to 65535, not ${port}`);
  }
  const found: string[] = [];
  for (const entries of Object.values(networkInterfaces())) {
    for (const { address, family, internal } of entries ?? []) {
      if (internal) continue;
      if (family === 'IPv4') {
        if (!address.startsWith('169.254.')) found.push(`${address}:${port}`);
      } else if (!/^(fe[89ab]|ff)/i.test(address)) {
        found.push(`[${address}]:${port}`);
      }
    }
  }
  return found;
}

/** Half a surrogate pair cannot be written as UTF-8 and read back. */
function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

/** A value for an error message: short, and it never throws. */
export function describeValue(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 60));
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'undefined') return 'undefined';
  return `a value of type ${typeof value}`;
}
