/** Reads a kubeconfig file whose YAML the caller has parsed. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describeValue } from '../../base/candidate.ts';
import {
  InvalidOptionError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../../base/errors.ts';
import type { Credentials } from './access.ts';
import { openApi } from './access.ts';
import type { KubernetesApi } from './client.ts';

/** The options of `fromKubeConfig`. */
export interface FromKubeConfigOptions {
  /** The context to use. Default: `current-context`. */
  readonly context?: string;
  /**
   * The directory of the file: relative paths in it start there. Default: the working directory.
   */
  readonly directory?: string;
}

const runFile = promisify(execFile);
const longestPluginMs = 30_000;
const execVersions: readonly string[] = [
  'client.authentication.k8s.io/v1',
  'client.authentication.k8s.io/v1beta1',
];

type Fields = Readonly<Record<string, unknown>>;

/**
 * Connects by a kubeconfig: tokens, client certificates, and credential plugins (`exec`),
 * which are run.
 * @param parsed the object from its YAML or JSON
 * @throws InvalidOptionError that names the part that is missing or cannot be used
 */
export function fromKubeConfig(
  parsed: unknown,
  options: FromKubeConfigOptions = {},
): KubernetesApi {
  const config = fields(parsed, 'a kubeconfig');
  const directory = options.directory ?? '.';
  const contextName = options.context ?? config['current-context'];
  if (typeof contextName !== 'string' || contextName === '') {
    throw new InvalidOptionError(
      'the kubeconfig has no current-context: name one of its contexts, or ' +
        'run `kubectl config use-context`',
    );
  }
  const context = named(config, 'contexts', 'context', contextName);
  const cluster = named(config, 'clusters', 'cluster', text(context['cluster'], 'cluster'));
  const user =
    context['user'] === undefined
      ? {}
      : named(config, 'users', 'user', text(context['user'], 'user'));
  for (const [what, where] of [
    ['proxy-url', cluster],
    ['auth-provider', user],
    ['username', user],
    ['as', user],
    ['as-groups', user],
    ['as-uid', user],
  ] as const) {
    if (where[what] !== undefined) throw cannotUse(what);
  }
  const pem = (where: Fields, name: string): string | undefined => {
    const data = where[`${name}-data`];
    if (data !== undefined) {
      return Buffer.from(text(data, `${name}-data`), 'base64').toString();
    }
    if (where[name] === undefined) return undefined;
    return file(resolve(directory, text(where[name], name)), name);
  };
  const ca = pem(cluster, 'certificate-authority');
  const cert = pem(user, 'client-certificate');
  const key = pem(user, 'client-key');
  const serverName = cluster['tls-server-name'];
  const credentials = credentialsOf(user, directory);
  return openApi(
    {
      url: text(cluster['server'], 'server'),
      insecure: cluster['insecure-skip-tls-verify'] === true,
      ...(typeof context['namespace'] === 'string' ? { namespace: context['namespace'] } : {}),
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(typeof serverName === 'string' ? { serverName } : {}),
    },
    credentials !== undefined,
    credentials ?? (async () => ({})),
  );
}

function credentialsOf(user: Fields, directory: string): Credentials | undefined {
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token.trim()}` } });
  if (user['exec'] !== undefined) return plugin(fields(user['exec'], 'exec'), directory);
  const { tokenFile, token } = user;
  if (tokenFile !== undefined) {
    const path = resolve(directory, text(tokenFile, 'tokenFile'));
    return async () => bearer(file(path, 'tokenFile'));
  }
  if (token === undefined) return undefined;
  const given = text(token, 'token');
  return async () => bearer(given);
}

interface Credential {
  readonly token?: string;
  readonly clientCertificateData?: string;
  readonly clientKeyData?: string;
  readonly expirationTimestamp?: string;
}

interface PluginCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** @throws InvalidOptionError for a plugin that this version cannot use */
function pluginCommand(exec: Fields, directory: string): PluginCommand {
  const version = exec['apiVersion'];
  if (typeof version !== 'string' || !execVersions.includes(version)) {
    throw new InvalidOptionError(
      `the kubeconfig has a credential plugin of version ${describeValue(version)}; ` +
        `${execVersions.join(' and ')} can be used`,
    );
  }
  if (exec['interactiveMode'] === 'Always') {
    throw new InvalidOptionError(
      'the kubeconfig has a credential plugin that wants to ask somebody (interactiveMode: Always)',
    );
  }
  const name = text(exec['command'], 'exec.command');
  // As kubectl does: a name is looked for in PATH, and a path is relative to the file.
  const command = /[\\/]/.test(name) ? resolve(directory, name) : name;
  const args = list(exec['args']).map((each) => text(each, 'exec.args'));
  const env: Record<string, string | undefined> = {
    ...process.env,
    KUBERNETES_EXEC_INFO: JSON.stringify({
      apiVersion: version,
      kind: 'ExecCredential',
      spec: { interactive: false },
    }),
  };
  for (const entry of list(exec['env'])) {
    const { name: variable, value } = fields(entry, 'exec.env');
    env[text(variable, 'exec.env')] = text(value, 'exec.env');
  }
  return { command, args, env };
}

/**
 * @throws StoreUnsuitableError where the plugin is not installed
 * @throws StoreUnavailableError where it fails
 */
async function runPlugin({ command, args, env }: PluginCommand): Promise<Credential> {
  let output: string;
  try {
    ({ stdout: output } = await runFile(command, args, { env, timeout: longestPluginMs }));
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') {
      throw new StoreUnsuitableError(
        `the credential plugin "${command}" of the kubeconfig is not installed`,
      );
    }
    throw new StoreUnavailableError(
      `the credential plugin "${command}" failed: ${(error as Error).message}`,
      { cause: error },
    );
  }
  try {
    return fields(fields(JSON.parse(output), 'answer')['status'], 'status') as Credential;
  } catch (error) {
    throw new StoreUnavailableError(`the credential plugin "${command}" gave no ExecCredential`, {
      cause: error,
    });
  }
}

/** Runs a credential plugin. Its answer is kept until it expires or the server refuses it. */
function plugin(exec: Fields, directory: string): Credentials {
  const given = pluginCommand(exec, directory);
  let latest: Promise<Credential> | undefined;
  let untilUnixMs = 0;
  return async (refresh) => {
    if (latest === undefined || refresh || Date.now() >= untilUnixMs) {
      const running = runPlugin(given);
      latest = running;
      untilUnixMs = Infinity;
      running.then(
        ({ expirationTimestamp }) => {
          const expires = Date.parse(expirationTimestamp ?? '');
          // A little earlier, so that it is not refused on its way.
          if (latest === running && !Number.isNaN(expires)) untilUnixMs = expires - 10_000;
        },
        () => {
          if (latest === running) latest = undefined;
        },
      );
    }
    const { token, clientCertificateData, clientKeyData } = await latest;
    return {
      ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
      ...(clientCertificateData === undefined
        ? {}
        : { tls: { cert: clientCertificateData, key: clientKeyData } }),
    };
  };
}

function cannotUse(what: string): InvalidOptionError {
  return new InvalidOptionError(
    `the kubeconfig uses "${what}", which needs a whole client: load it with the KubeConfig of ` +
      '@kubernetes/client-node and hand that in',
  );
}

function named(config: Fields, plural: string, singular: string, name: string): Fields {
  for (const entry of list(config[plural])) {
    const each = fields(entry, plural);
    if (each['name'] === name) return fields(each[singular] ?? {}, `${singular} "${name}"`);
  }
  const names = list(config[plural])
    .map((entry) => `"${(entry as Fields | null)?.['name']}"`)
    .join(', ');
  throw new InvalidOptionError(
    `the kubeconfig has no ${singular} "${name}"; it has ${names === '' ? 'none' : names}`,
  );
}

function fields(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new InvalidOptionError(
    `kubeconfig: ${what} must be an object, not ${describeValue(value)}`,
  );
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown, what: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new InvalidOptionError(`kubeconfig: ${what} must be text, not ${describeValue(value)}`);
}

function file(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StoreUnsuitableError(
      `kubeconfig: ${what} cannot be read: ${(error as Error).message}`,
    );
  }
}
