/**
 * The contents of our headers. A request may speak of several elections. So the first two are lists
 * of equal length: `incumbent-election: billing, storage` and `incumbent-token: 12, 7`. Names are
 * percent-encoded (`encodeURIComponent`), and tokens are decimal.
 */

/** Elections, in the order of their tokens. */
export const electionHeader = 'incumbent-election';
/**
 * Tokens. On a request: the term that it comes from (`carryToken`) or believes in (`toLeader`). On
 * an answer: the term that answered. On a refusal: the newest term known.
 */
export const tokenHeader = 'incumbent-token';
/**
 * On an answer: why the request was not passed on, so that nothing came of it. Only with
 * `term-ended` it was passed on, by a method that changes nothing.
 */
export const refusedHeader = 'incumbent-refused';
/** On a request: the elections whose followers have passed it on. Each passes it on once. */
export const proxiedHeader = 'incumbent-proxied';

/** A header as Node and undici give it. */
export type HeaderValue = string | readonly string[] | undefined;

const maxEntries = 100;

/** @returns undefined when the two do not fit together, or are malformed */
export function readTokens(
  elections: HeaderValue,
  tokens: HeaderValue,
): ReadonlyMap<string, bigint> | undefined {
  const names = readNames(elections);
  const numbers = split(tokens);
  if (names === undefined || names.length !== numbers.length) return undefined;
  const found = new Map<string, bigint>();
  for (const [i, name] of names.entries()) {
    const number = numbers[i] as string;
    if (!/^\d{1,39}$/.test(number) || found.has(name)) return undefined;
    found.set(name, BigInt(number));
  }
  return found;
}

/** @returns undefined when they are not percent-encoded names */
export function readNames(elections: HeaderValue): readonly string[] | undefined {
  const texts = split(elections);
  if (texts.length > maxEntries) return undefined;
  try {
    const names = texts.map((text) => decodeURIComponent(text));
    return names.includes('') ? undefined : names;
  } catch {
    return undefined;
  }
}

export function writeName(election: string): string {
  return encodeURIComponent(election);
}

/** The values of the two headers. */
export function writeTokens(tokens: Iterable<readonly [string, bigint]>): {
  readonly elections: string;
  readonly tokens: string;
} {
  const entries = [...tokens];
  return {
    elections: entries.map(([election]) => writeName(election)).join(', '),
    tokens: entries.map(([, token]) => String(token)).join(', '),
  };
}

function split(value: HeaderValue): string[] {
  if (value === undefined) return [];
  const text = typeof value === 'string' ? value : value.join(',');
  return text === '' ? [] : text.split(',').map((entry) => entry.trim());
}
