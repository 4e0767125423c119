/** Where the set of servers is kept in ZooKeeper. */
import { InvalidArgumentError, parseConnectionString } from '@incumbent/zookeeper';
import { resolveOptions } from '../../manager/options.ts';
import { SettingError } from '../failure.ts';
import type { Settings } from './collect.ts';
import type { Given } from './given.ts';
import { refuse } from './given.ts';
import { checked } from './manager-options.ts';

export interface Place {
  /** With the chroot, as the client takes it. */
  readonly zookeeper: string;
  readonly root: string;
}

/** @throws SettingError */
export function placeOf(settings: Settings): Place {
  const given = settings.get('zookeeper');
  if (given === undefined) {
    throw new SettingError(
      'it is not said where ZooKeeper is: give --zookeeper HOST:PORT,HOST:PORT, ' +
        'INCUMBENT_REDIS_ZOOKEEPER, or zookeeper in a configuration file (--config)',
    );
  }
  const root = settings.get('root');
  return {
    zookeeper: connectionString(given, settings.get('chroot')),
    root:
      root === undefined ? defaultRoot() : (checked(root, 'root', String(root.value)) as string),
  };
}

function connectionString(given: Given, chroot: Given | undefined): string {
  const { value } = given;
  // A list in a file: each of them a server.
  const text = Array.isArray(value) ? value.join(',') : String(value).trim();
  const parsed = parse(given, text);
  // That of a file does not go with servers that were given elsewhere, if those have one.
  if (chroot === undefined || (parsed.chroot !== '/' && chroot.rank < given.rank)) return text;
  if (parsed.chroot !== '/') {
    refuse(chroot, `is a second chroot: ${given.name} has ${parsed.chroot} already`);
  }
  const path = String(chroot.value);
  if (!path.startsWith('/'))
    refuse(chroot, `is the path of a node such as /redis, not ${JSON.stringify(path)}`);
  const [before, ...query] = text.split('?');
  const joined = [`${before?.replace(/\/$/, '')}${path}`, ...query].join('?');
  parse(chroot, joined);
  return joined;
}

function parse(given: Given, text: string): { readonly chroot: string } {
  try {
    return parseConnectionString(text);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    return refuse(given, `cannot be used: ${error.message}`);
  }
}

function defaultRoot(): string {
  return resolveOptions({ nodes: ['localhost:6379'], zookeeper: 'localhost' }).root;
}
