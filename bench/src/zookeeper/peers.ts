import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { peersDirectory } from './adapters/peer-types.ts';
import type { CandidateName } from './messages.ts';

/** Debian's kazoo belongs to Debian's Python, which need not be the first in the path. */
const pythons = ['/usr/bin/python3', 'python3'];

export interface Peers {
  /** Why a candidate does not take part. */
  readonly absent: ReadonlyMap<CandidateName, string>;
  /** Of those that do. */
  readonly versions: ReadonlyMap<CandidateName, string>;
  /** One that knows kazoo. */
  readonly python: string | undefined;
}

/** Installs the peers at the first time, in a folder of their own, and sees who is there. */
export function findPeers(progress: (text: string) => void): Peers {
  const absent = new Map<CandidateName, string>();
  const versions = new Map<CandidateName, string>();
  const trouble = install(progress);
  for (const [name, module] of [
    ['NZC', 'node-zookeeper-client'],
    ['native', 'zookeeper'],
  ] as const) {
    const found = versionOf(module);
    if ('error' in found) absent.set(name, trouble ?? found.error);
    else versions.set(name, `${module} ${found.version}`);
  }
  let python: string | undefined;
  for (const candidate of pythons) {
    const program = 'import kazoo; print(kazoo.__version__)';
    const { status, stdout } = spawnSync(candidate, ['-c', program], { encoding: 'utf8' });
    if (status !== 0) continue;
    python = candidate;
    versions.set('kazoo', `kazoo ${stdout.trim()}`);
    break;
  }
  if (python === undefined) absent.set('kazoo', 'there is no Python with kazoo');
  return { absent, versions, python };
}

/** @returns what went wrong */
function install(progress: (text: string) => void): string | undefined {
  const file = (name: string) => new URL(name, peersDirectory);
  const wanted = createHash('sha256')
    .update(readFileSync(file('package-lock.json')))
    .digest('hex');
  const stamp = file('node_modules/.installed');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return undefined;
  progress('installing the peers; one of them compiles for 20 s');
  try {
    // A peer that does not compile is optional, and left out.
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], {
      cwd: fileURLToPath(peersDirectory),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    mkdirSync(file('node_modules'), { recursive: true });
    writeFileSync(stamp, wanted);
    return undefined;
  } catch (error) {
    return `it could not be installed: ${(error as Error).message.split('\n').slice(0, 3).join(' ')}`;
  }
}

/** Loads it in a process of its own: an addon can be there and not fit. */
function versionOf(module: string): { readonly version: string } | { readonly error: string } {
  const require = createRequire(new URL('package.json', peersDirectory));
  try {
    const { version } = require(`${module}/package.json`) as { version: string };
    const program = `require(${JSON.stringify(module)})`;
    execFileSync(process.execPath, ['-e', program], {
      cwd: fileURLToPath(peersDirectory),
      stdio: 'ignore',
    });
    return { version };
  } catch {
    return { error: `${module} could not be installed or loaded` };
  }
}
