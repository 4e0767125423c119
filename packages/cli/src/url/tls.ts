/** TLS of a store's URL: the files of certificates and keys, in PEM. */
import type { Parameter, ValuesOf } from './query.ts';
import { given } from './query.ts';
import type { Machine } from './secrets.ts';
import { readText } from './secrets.ts';
import type { Refuse } from './values.ts';
import { word } from './values.ts';

const file: Parameter<string> = { read: word };

export const tlsTable: {
  readonly [Name in 'tls-ca' | 'tls-cert' | 'tls-key' | 'tls-servername']: Parameter<string>;
} = { 'tls-ca': file, 'tls-cert': file, 'tls-key': file, 'tls-servername': file };

/** Names of PEM files, as they were written. */
export interface TlsNames {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

/** As `tls.connect` takes them. */
export interface TlsContents {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly passphrase?: string;
  readonly servername?: string;
}

export function tlsNames(values: ValuesOf<typeof tlsTable>, refuse: Refuse): TlsNames {
  const [cert, key] = [values['tls-cert']?.[0], values['tls-key']?.[0]];
  if ((cert === undefined) !== (key === undefined)) {
    refuse('has one of tls-cert and tls-key; they belong together');
  }
  return {
    ...given('ca', values['tls-ca']?.[0]),
    ...given('cert', cert),
    ...given('key', key),
    ...given('servername', values['tls-servername']?.[0]),
  };
}

/** @throws CommandError for a file that cannot be read */
export async function readTlsFiles(
  names: TlsNames,
  origin: string,
  { cwd }: Pick<Machine, 'cwd'>,
  passphrase: string | undefined,
): Promise<TlsContents> {
  const [ca, cert, key] = await Promise.all(
    (['ca', 'cert', 'key'] as const).map(async (name) => {
      const path = names[name];
      return path === undefined ? undefined : readText(path, cwd, `tls-${name} of ${origin}`);
    }),
  );
  return {
    ...given('ca', ca),
    ...given('cert', cert),
    ...given('key', key),
    ...given('passphrase', passphrase || undefined),
    ...given('servername', names.servername),
  };
}
