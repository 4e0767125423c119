import type { Settings } from './collect.ts';
import { textOf } from './collect.ts';
import { readGiven } from './files.ts';
import { refuse } from './given.ts';

/** PEM, as `node:tls` takes it. */
export interface TlsContents {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

/**
 * @param prefix `tls` for the Redis servers, `zookeeper_tls` for ZooKeeper
 * @returns undefined if no setting of it was given
 * @throws SettingError
 */
export async function tlsFiles(
  settings: Settings,
  prefix: 'tls' | 'zookeeper_tls',
  cwd: string,
): Promise<TlsContents | undefined> {
  const [cert, key] = [settings.get(`${prefix}_cert`), settings.get(`${prefix}_key`)];
  const lonely = cert === undefined ? key : key === undefined ? cert : undefined;
  if (lonely !== undefined) {
    refuse(lonely, 'needs the other: a certificate and its key belong together');
  }
  const contents: { -readonly [Name in keyof TlsContents]: string } = {};
  for (const name of ['ca', 'cert', 'key'] as const) {
    const given = settings.get(`${prefix}_${name}`);
    if (given !== undefined) contents[name] = await readGiven(given, cwd);
  }
  const servername = textOf(settings, `${prefix}_servername`);
  if (servername !== undefined) contents.servername = servername;
  return Object.keys(contents).length === 0 ? undefined : contents;
}
