import { describeValue } from './candidate.ts';
import { InvalidOptionError } from './errors.ts';

/**
 * A name that nobody knows is misspelt: it would be passed over without a word.
 * @param what the function that takes the options, for the error
 * @param example of options, where some are needed
 * @throws InvalidOptionError
 */
export function checkNames(
  what: string,
  options: unknown,
  known: Readonly<Record<string, true>>,
  example?: string,
): void {
  if (typeof options !== 'object' || options === null) {
    const such = example === undefined ? '' : ` such as ${example}`;
    throw new InvalidOptionError(`${what} takes options${such}, not ${describeValue(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name)) {
      throw new InvalidOptionError(
        `${what} has no option "${name}"; it knows ${Object.keys(known).join(', ')}`,
      );
    }
  }
}
