import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ClientOptions } from '@incumbent/zookeeper';
import type { Environment } from '../context.ts';
import { CommandError, exitCodes } from '../failure.ts';
import type { SecretSource, ZooKeeperLocation } from './location.ts';

interface Machine {
  readonly env: Environment;
  readonly cwd: string;
}

/**
 * Who we are: what INCUMBENT_ZK_AUTH and INCUMBENT_ZK_SASL say, as for `incumbent-zk`, and what the
 * URL does; its `sasl` wins. Nothing of a secret is in an error.
 * @throws CommandError
 */
export async function readSecrets(
  { parameters, origin }: ZooKeeperLocation,
  machine: Machine,
): Promise<Pick<ClientOptions, 'auth' | 'sasl'>> {
  const { env } = machine;
  const auth = credentialsIn(env['INCUMBENT_ZK_AUTH'] ?? '', 'INCUMBENT_ZK_AUTH');
  for (const source of parameters.auth) {
    const [text, where] = await contentOf(source, `auth of ${origin}`, machine);
    auth.push(...credentialsIn(text, where));
  }
  const source: SecretSource | undefined =
    parameters.sasl ??
    (env['INCUMBENT_ZK_SASL'] ? { kind: 'env', name: 'INCUMBENT_ZK_SASL' } : undefined);
  if (source === undefined) return { auth };
  const [text, where] = await contentOf(source, `sasl of ${origin}`, machine);
  const line = text.replace(/\r?\n$/, '');
  const colon = line.indexOf(':');
  if (colon < 1 || line.includes('\n')) throw unusable(`${where} is not USER:PASSWORD`);
  return { auth, sasl: { username: line.slice(0, colon), password: line.slice(colon + 1) } };
}

/** @throws CommandError for a file that cannot be read */
export async function readTls(
  { scheme, parameters: { tls }, origin }: ZooKeeperLocation,
  { env, cwd }: Machine,
): Promise<ClientOptions['tls']> {
  if (scheme === 'zk') return undefined;
  const [ca, cert, key] = await Promise.all(
    (['ca', 'cert', 'key'] as const).map(async (name) => {
      const path = tls[name];
      return path === undefined ? undefined : readText(path, cwd, `tls-${name} of ${origin}`);
    }),
  );
  const passphrase = env['INCUMBENT_ZK_TLS_PASSPHRASE'];
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(passphrase ? { passphrase } : {}),
    ...(tls.servername === undefined ? {} : { servername: tls.servername }),
  };
}

/** @returns the secret, and what to call its place */
async function contentOf(
  source: SecretSource,
  what: string,
  { env, cwd }: Machine,
): Promise<[text: string, where: string]> {
  if (source.kind === 'literal') return [source.text, `the parameter ${what}`];
  if (source.kind === 'file') {
    return [await readText(source.path, cwd, what), `the file ${source.path} (${what})`];
  }
  const text = env[source.name];
  if (!text) throw unusable(`the variable ${source.name} (${what}) is not set`);
  return [text, `the variable ${source.name}`];
}

/** SCHEME:CREDENTIALS, one a line. */
function credentialsIn(
  text: string,
  where: string,
): { readonly scheme: string; readonly credentials: string }[] {
  const lines = text.split(/\r?\n/).filter((line) => line !== '');
  return lines.map((line) => {
    const colon = line.indexOf(':');
    if (colon < 1) {
      throw unusable(`${where} is not SCHEME:CREDENTIALS, such as digest:USER:PASSWORD`);
    }
    return { scheme: line.slice(0, colon), credentials: line.slice(colon + 1) };
  });
}

async function readText(path: string, cwd: string, what: string): Promise<string> {
  try {
    return await readFile(resolve(cwd, path), 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw unusable(`the file ${path} (${what}) cannot be read: ${why}`);
  }
}

function unusable(message: string): CommandError {
  return new CommandError('BAD_CREDENTIALS', exitCodes.usage, message);
}
