/**
 * The parameters of a store's URL. Messages never repeat one that may hold a secret, nor anything
 * behind it: an "&" in a password would make a parameter of its rest.
 */
import type { Refuse } from './values.ts';

/** One parameter: how its value is read, and how it is shown again. */
export interface Parameter<Value> {
  readonly read: (text: string, refuse: Refuse) => Value;
  /** Absent: as it was written. */
  readonly show?: (text: string) => string;
  readonly isSecret?: true;
  readonly mayRepeat?: true;
}

export type ParameterTable = Readonly<Record<string, Parameter<unknown>>>;

/** The values given, in their order; absent: none was given. */
export type ValuesOf<Table extends ParameterTable> = {
  readonly [Name in keyof Table]?: readonly ReturnType<Table[Name]['read']>[];
};

/**
 * @param query what stands behind "?"
 * @param refuse is given sentences without secrets
 * @returns the values, and the query again without secrets
 */
export function readQuery<Table extends ParameterTable>(
  table: Table,
  query: string,
  refuse: Refuse,
): { readonly values: ValuesOf<Table>; readonly shown: string } {
  const values = new Map<string, unknown[]>();
  const shown: string[] = [];
  let isBehindSecret = false;
  for (const part of query.split('&').filter((each) => each !== '')) {
    const at = part.indexOf('=');
    const name = at === -1 ? part : part.slice(0, at);
    const parameter = Object.hasOwn(table, name) ? table[name] : undefined;
    if (parameter === undefined) {
      if (isBehindSecret) {
        refuse(
          'has an unknown parameter behind a secret, perhaps the rest of it: write %26 for "&" in it',
        );
      }
      refuse(
        `has the unknown parameter "${name.slice(0, 40)}"; there are ${Object.keys(table).join(', ')}`,
      );
    }
    isBehindSecret ||= parameter.isSecret === true;
    if (at === -1 || at === part.length - 1) refuse(`has no value for the parameter ${name}`);
    let text = '';
    try {
      text = decodeURIComponent(part.slice(at + 1));
    } catch {
      refuse(`has a "%" without two hex digits in the parameter ${name}; write %25 for "%"`);
    }
    const before = values.get(name) ?? [];
    if (before.length > 0 && parameter.mayRepeat !== true) refuse(`has two parameters ${name}`);
    const value = parameter.read(text, (why) => refuse(`has the parameter ${name}, which ${why}`));
    values.set(name, [...before, value]);
    shown.push(`${name}=${encode((parameter.show ?? ((same) => same))(text))}`);
  }
  // Each was read by the reader of its name.
  const read = Object.fromEntries(values) as unknown as ValuesOf<Table>;
  return { values: read, shown: shown.join('&') };
}

/** `{ [key]: value }`, or nothing where there is no value. */
export function given<Key extends string, Value>(
  key: Key,
  value: Value | undefined,
): { readonly [K in Key]?: Value } {
  return (value === undefined ? {} : { [key]: value }) as { readonly [K in Key]?: Value };
}

/** Legal as it is in a query, and easier to read. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/%(?:3A|2F|2C|40|3D)/g, decodeURIComponent);
}
