import { describeValue } from './candidate.ts';
import { InvalidOptionError } from './errors.ts';

/**
 * Refuses option names that are not known. Such a name is misspelt, or meant for another call, and
 * would be ignored without a word.
 * @param what the function that takes the options, for the error
 * @param example of options, where some are needed
 * @param elsewhere by option name: the calls that take it, where this one does not
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
  // A signal has no names of its own, so the loop below would let it pass.
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
