/** Of an option. @throws an Error for people */
export function wholeNumber(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new Error(`${name} must be a whole number from ${least} to ${most}, not "${text}"`);
  }
  return value;
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

/** What `--broken` knows, a line each. */
export function brokenUsage(
  known: Readonly<Record<string, { readonly about: string }>>,
  width: number,
): string {
  return Object.entries(known)
    .map(([name, { about }]) => `                     ${name.padEnd(width)} ${about}`)
    .join('\n');
}
