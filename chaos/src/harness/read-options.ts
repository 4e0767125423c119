import { parseArgs } from 'node:util';

/** Of an option. @throws an Error for people */
export function wholeNumber(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new Error(`${name} must be a whole number from ${least} to ${most}, not "${text}"`);
  }
  return value;
}

/** Of a run that lasts for minutes. */
export interface TimedRun {
  readonly minutes: number;
  /** How many take part. */
  readonly count: number;
  readonly seed: number;
  readonly broken: string | undefined;
}

/**
 * @param parts what takes part: the name of the option, how many by default and at least
 * @throws an Error for people
 */
export function readTimedRun(
  argv: readonly string[],
  parts: { readonly name: string; readonly usual: number; readonly least: number },
  shortMinutes: number,
): TimedRun | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      minutes: { type: 'string' },
      short: { type: 'boolean', default: false },
      [parts.name]: { type: 'string', default: String(parts.usual) },
      seed: { type: 'string' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values['help']) return 'help';
  const text = (name: string) => values[name] as string | undefined;
  const minutes = text('minutes') ?? String(values['short'] ? shortMinutes : 30);
  return {
    minutes: wholeNumber('--minutes', minutes, 1, 10_000),
    count: wholeNumber(`--${parts.name}`, text(parts.name) ?? '', parts.least, 50),
    seed: seedFrom(text('seed')),
    broken: text('broken'),
  };
}

/** `--seed`, or one that the clock gives. @throws an Error for people */
export function seedFrom(text: string | undefined): number {
  return wholeNumber('--seed', text ?? String(Date.now() % 2 ** 32), 0, 2 ** 32 - 1);
}

/** `--broken`, one of `known`. @throws an Error for people */
export function brokenFrom<Broken extends string>(
  known: Readonly<Record<Broken, unknown>>,
  name: string | undefined,
): Broken | undefined {
  if (name !== undefined && !Object.hasOwn(known, name)) {
    throw new Error(`--broken knows ${Object.keys(known).join(', ')}, not "${name}"`);
  }
  return name as Broken | undefined;
}

/** The values of `--broken`, a line each. */
export function brokenUsage(
  known: Readonly<Record<string, { readonly about: string }>>,
  width: number,
): string {
  return Object.entries(known)
    .map(([name, { about }]) => `                     ${name.padEnd(width)} ${about}`)
    .join('\n');
}
