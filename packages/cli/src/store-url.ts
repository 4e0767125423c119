/** Finds the store that `--store`, INCUMBENT_STORE or the default name. */
import { posix, win32 } from 'node:path';
import type { OpenStore } from './context.ts';
import type { MachineProbe } from './environment.ts';
import { detectIsolation } from './environment.ts';
import { CommandError, exitCodes } from './failure.ts';
import { anyOf, fileForm, serverForms } from './store-forms.ts';
import { nearest } from './terminal/nearest.ts';

/** A store that this version can open. */
export type StoreLocation = FileLocation | ServerUrl;

/** The module that opens it reads its parts: a file store need not load a client for that. */
export interface ServerUrl {
  readonly scheme: ServerKind;
  /** As it was given. May hold a password: not to be shown. */
  readonly text: string;
  readonly origin: '--store' | 'INCUMBENT_STORE';
}

export interface FileLocation {
  readonly scheme: 'file';
  /** Absolute. */
  readonly directory: string;
  /** In its plain form. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

export type ServerKind = 'zookeeper' | 'postgres' | 'redis' | 'etcd' | 'kubernetes' | 's3' | 'gcs';

const serverSchemes: Readonly<Record<string, ServerKind>> = {
  zk: 'zookeeper',
  zks: 'zookeeper',
  postgres: 'postgres',
  postgresql: 'postgres',
  redis: 'redis',
  rediss: 'redis',
  etcd: 'etcd',
  etcds: 'etcd',
  k8s: 'kubernetes',
  s3: 's3',
  gs: 'gcs',
};

/** Names of stores that are no scheme of ours, and the scheme that is meant. */
const otherNames: Readonly<Record<string, string>> = {
  zookeeper: 'zk',
  zookeepers: 'zks',
  valkey: 'redis',
  valkeys: 'rediss',
  kubernetes: 'k8s',
  kube: 'k8s',
  pg: 'postgres',
  pgsql: 'postgres',
  psql: 'postgres',
  gcs: 'gs',
};

/** The ports that servers listen on by default: a URL may lack only its scheme. */
const usualPorts: Readonly<Record<string, string>> = {
  2181: 'zk',
  2379: 'etcd',
  5432: 'postgres',
  6379: 'redis',
};

const wayOut =
  'name a store that all candidates share, with --store or INCUMBENT_STORE:\n' +
  '  --store file:/shared/path   for candidates of one machine\n' +
  `  --store ${serverForms[0]}, ${anyOf(serverForms.slice(1))}   for any number of machines`;

/** The URLs that this version takes. */
const known: string = anyOf([fileForm, ...serverForms]);

/** @throws CommandError */
export function locateStore(
  option: string | undefined,
  cwd: string,
  probe: MachineProbe,
): StoreLocation {
  if (option !== undefined) return parseStoreUrl(option, '--store', cwd, probe);
  const variable = probe.env['INCUMBENT_STORE'];
  // An empty variable is how a shell unsets one for a single command.
  if (variable) return parseStoreUrl(variable, 'INCUMBENT_STORE', cwd, probe);
  const isolation = detectIsolation(probe);
  if (isolation !== undefined) {
    throw refusal(
      'NO_DEFAULT_STORE',
      `this looks like ${isolation.what} (${isolation.because}), so there is no default store: ` +
        `candidates would elect one leader in each of them; ${wayOut}`,
    );
  }
  return location(defaultDirectory(probe), 'default', probe);
}

/** `$XDG_STATE_HOME/incumbent`, and the same place on other systems. */
function defaultDirectory({ env, platform }: MachineProbe): string {
  const path = platform === 'win32' ? win32 : posix;
  const absolute = (value: string | undefined) =>
    value !== undefined && path.isAbsolute(value) ? value : undefined;
  // The XDG specification has relative values ignored.
  const stateHome = absolute(env['XDG_STATE_HOME']);
  if (stateHome !== undefined) return path.join(stateHome, 'incumbent');
  if (platform === 'win32') {
    const local = absolute(env['LOCALAPPDATA']);
    if (local !== undefined) return path.join(local, 'incumbent');
    const profile = absolute(env['USERPROFILE']);
    if (profile !== undefined) return path.join(profile, 'AppData', 'Local', 'incumbent');
    throw noHome('neither LOCALAPPDATA nor USERPROFILE is set to an absolute path');
  }
  const home = absolute(env['HOME']);
  if (home === undefined) {
    throw noHome(
      env['HOME'] ? `HOME is "${env['HOME']}", not an absolute path` : 'HOME is not set',
    );
  }
  if (platform === 'darwin') return path.join(home, 'Library', 'Application Support', 'incumbent');
  return path.join(home, '.local', 'state', 'incumbent');
}

function noHome(because: string): CommandError {
  return refusal(
    'NO_DEFAULT_STORE',
    `the default store is a directory below your home, but ${because}; ${wayOut}`,
  );
}

function parseStoreUrl(
  text: string,
  origin: '--store' | 'INCUMBENT_STORE',
  cwd: string,
  probe: MachineProbe,
): StoreLocation {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase();
  if (scheme === 'file') {
    const directory = parseFilePath(text.slice('file:'.length), origin, cwd, probe);
    // The kernel's views of itself. Making a directory there fails oddly, or never ends.
    if (probe.platform === 'linux' && /^\/(?:proc|sys)(?:\/|$)/.test(directory)) {
      throw badUrl(
        `${origin} file:${directory} is in the kernel's own file system, which keeps no files; ` +
          'write file:/some/directory on a disk',
      );
    }
    return location(directory, origin, probe);
  }
  if (scheme !== undefined && Object.hasOwn(serverSchemes, scheme)) {
    return { scheme: serverSchemes[scheme] as ServerKind, text, origin };
  }
  if (scheme === 'memory') {
    throw badUrl(
      `${origin} memory: would hold the election inside this one process, where nobody else can ` +
        'take part; use file:/some/directory for the processes of one machine',
    );
  }
  // From here on the URL is not repeated: it may hold a password.
  const missing = missingScheme(text);
  if (missing !== undefined) throw badUrl(`${origin} ${missing}`);
  if (scheme !== undefined) throw badUrl(`${origin} ${unknownScheme(scheme)}`);
  // A URL whose scheme is misspelt.
  if (text.includes('@')) {
    throw badUrl(
      `${origin} is not the URL of a store (it is not shown, for it may hold a password): it has to ` +
        `begin with a scheme; write ${known}`,
    );
  }
  if (text === '') throw badUrl(`${origin} is empty; write ${known}`);
  // Both have a path for a shape: a directory given without its scheme.
  if (/^[./~]|^[a-z]:|[\\/]/i.test(text)) {
    const isRelative = !/^(?:\/|\.{1,2}[\\/]|[a-z]:)/i.test(text);
    throw badUrl(
      `${origin} "${text}" is a path; a store is a URL: write file:${isRelative ? './' : ''}${text}`,
    );
  }
  throw badUrl(
    `${origin} "${text}" is not the URL of a store; write file:/some/directory, or ` +
      `file:./${text} for the directory of that name`,
  );
}

/** Undefined unless it begins with a host and a port. */
function missingScheme(text: string): string | undefined {
  const port = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\]):(\d{1,5})(?:[/,?]|$)/i.exec(text)?.[1];
  if (port === undefined) return undefined;
  const usual = usualPorts[port];
  const wayOut = usual === undefined ? known : `${usual}://host:${port}`;
  return `begins with a host and a port, and no scheme; write ${wayOut}`;
}

/** The refusal of a scheme that we do not know. It does not repeat the rest of the URL. */
function unknownScheme(scheme: string): string {
  const unknown = `has the unknown scheme "${scheme}:"`;
  if (scheme === 'http' || scheme === 'https') {
    return `${unknown}; write etcd://host:2379, or s3://bucket?endpoint=${scheme}://host:9000`;
  }
  const meant = otherNames[scheme] ?? nearest(scheme, ['file', ...Object.keys(serverSchemes)]);
  if (meant !== undefined) return `${unknown}; write ${meant}:${meant === 'file' ? '' : '//'}…`;
  return (
    `${unknown}; this version takes ${known}; see whether a newer one takes it: ` +
    'npm install -g @incumbent/cli@latest'
  );
}

/** The path behind `file:`, made absolute. */
function parseFilePath(
  text: string,
  origin: '--store' | 'INCUMBENT_STORE',
  cwd: string,
  { platform }: MachineProbe,
): string {
  const path = platform === 'win32' ? win32 : posix;
  const withoutHost = text.replace(/^\/\/(?:localhost)?(?=\/)/i, '');
  const nameless = badUrl(`${origin} file:${text} names no directory; write file:/some/directory`);
  if (withoutHost === '' || withoutHost === '//') throw nameless;
  if (withoutHost.startsWith('//')) {
    const host = /^\/\/([^/]*)/.exec(withoutHost)?.[1] ?? '';
    throw badUrl(
      `${origin} file:${text} names the host "${host}": a file store is on this machine; write ` +
        `file:${withoutHost.slice(1)} or file:./${withoutHost.slice(2)}`,
    );
  }
  if (/[?#]/.test(withoutHost)) {
    throw badUrl(
      `${origin} file:${text} has "?" or "#" in it: a file store takes no parameters; in a name ` +
        'write %3F or %23',
    );
  }
  let decoded: string;
  try {
    decoded = decodeURIComponent(withoutHost);
  } catch {
    throw badUrl(`${origin} file:${text} has a "%" without two hex digits; write %25 for "%"`);
  }
  if (decoded.includes('\0')) throw badUrl(`${origin} file:${text} has a zero byte in it`);
  // file:///C:/dir
  if (platform === 'win32') decoded = decoded.replace(/^\/(?=[a-z]:)/i, '');
  if (path.isAbsolute(decoded)) return path.normalize(decoded);
  if (/^\.{1,2}(?:[\\/]|$)/.test(decoded)) return path.resolve(cwd, decoded);
  if (decoded.startsWith('~')) {
    throw badUrl(
      `${origin} file:${text}: nobody expands "~" there; write file:$HOME${decoded.slice(1)}`,
    );
  }
  throw badUrl(`${origin} file:${text} is neither absolute nor relative; write file:./${text}`);
}

function location(
  directory: string,
  origin: OpenStore['origin'],
  { platform }: MachineProbe,
): FileLocation {
  const asPath = platform === 'win32' ? directory.replaceAll('\\', '/') : directory;
  // Back to a URL that parses as this directory again.
  const escaped = asPath.replace(/[%?#]/g, (character) => encodeURIComponent(character));
  const url = `file:${escaped.startsWith('/') ? '' : '///'}${escaped}`;
  return { scheme: 'file', directory, url, origin };
}

function badUrl(message: string): CommandError {
  return refusal('BAD_STORE_URL', message);
}

function refusal(code: string, message: string): CommandError {
  return new CommandError(code, exitCodes.usage, message);
}
