import { describeValue } from './candidate.ts';
import { InvalidOptionError } from './errors.ts';

/**
 * A name that nobody knows is misspelt, or meant for another call: it would be passed over without a
 * word.
 * @param what the function that takes the options, for the error
 * @param example of options, where some are needed
 * @param elsewhere the calls that take an option which this one does not, by its name
 * @throws InvalidOptionError
 */
export function checkNames(
  what: string,
  options: unknown,
  known: Readonly<Record<string, true>>,
  example?: string,
  elsewhere: Readonly<Record<string, string>> = {},
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const such = example === undefined ? '' : ` such as ${example}`;
    throw new InvalidOptionError(`${what} takes options${such}, not ${describeValue(options)}`);
  }
  // It has no names of its own, so it would be passed over.
  if (options instanceof AbortSignal) {
    throw new InvalidOptionError(`${what} takes options, not a signal alone: write { signal }`);
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(known, name)) continue;
    const knows = Object.keys(known);
    throw new InvalidOptionError(
      `${what} has no option "${name}"` +
        (Object.hasOwn(elsewhere, name) ? `: ${elsewhere[name]} takes it` : '') +
        (knows.length === 0 ? '; it takes none' : `; it knows ${knows.join(', ')}`),
    );
  }
}
