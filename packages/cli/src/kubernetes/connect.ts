/** Finds the API server and our identity there: the Pod's service account, or a kubeconfig. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { ElectionError } from 'incumbent';
import type { KubernetesApi } from 'incumbent/kubernetes';
import { fromKubeConfig, inCluster } from 'incumbent/kubernetes';
import type { StoreNeeds } from '../context.ts';
import { CommandError, exitCodes } from '../failure.ts';
import { UnusableStoreError } from '../unusable.ts';
import { reach, reasonOf, unreachable } from '../url/reach.ts';
import type { Machine } from '../url/secrets.ts';
import type { KubernetesLocation } from './url.ts';

export interface KubernetesConnection {
  readonly api: KubernetesApi;
  readonly location: KubernetesLocation;
  readonly namespace: string;
  /** `the service account of this Pod`, `the kubeconfig /home/ann/.kube/config` */
  readonly identity: string;
  /** `v1.30.2`; undefined: it does not tell us. */
  readonly version: string | undefined;
}

/** @throws CommandError, UnusableStoreError that names server and reason */
export async function connectKubernetes(
  location: KubernetesLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<KubernetesConnection> {
  const known = { url: location.url, origin: location.origin };
  const { api, identity } = await chooseApi(location, machine).catch((error: unknown) => {
    if (!(error instanceof ElectionError)) throw error;
    throw new UnusableStoreError('NO_CLUSTER', error.message, known, { cause: error });
  });
  const namespace = location.namespace ?? api.namespace ?? 'default';
  const attempt = () => api.request({ method: 'GET', path: '/version', signal: needs.signal });
  try {
    const mayPass = (error: unknown) => !(error instanceof ElectionError) || error.retryable;
    const { status, body, text } = await reach(needs, attempt, mayPass);
    if (status === 401) {
      const said = (body as { readonly message?: unknown } | undefined)?.message ?? text;
      throw new UnusableStoreError(
        'AUTH_FAILED',
        `the API server ${api.url} does not know us by ${identity} (401: ${String(said).slice(0, 200)})`,
        known,
      );
    }
    const version = (body as { readonly gitVersion?: unknown } | undefined)?.gitVersion;
    return {
      api,
      location,
      namespace,
      identity,
      version: typeof version === 'string' ? version : undefined,
    };
  } catch (error) {
    api.close();
    needs.signal.throwIfAborted();
    if (error instanceof CommandError) throw error;
    if (error instanceof ElectionError && !error.retryable) {
      throw new UnusableStoreError(error.code, error.message, known, { cause: error });
    }
    // The library's error names the server, as ours does.
    const cause = error instanceof ElectionError ? (error.cause ?? error) : error;
    throw unreachable(`the API server ${api.url} (${identity})`, cause, needs, known);
  }
}

async function chooseApi(
  { kubeconfig, context, inCluster: asPod, origin }: KubernetesLocation,
  { env, cwd }: Machine,
): Promise<Pick<KubernetesConnection, 'api' | 'identity'>> {
  const isPod = Boolean(env['KUBERNETES_SERVICE_HOST']);
  const wantsFile = (kubeconfig ?? context) !== undefined || Boolean(env['KUBECONFIG']);
  if (asPod ?? (isPod && !wantsFile)) {
    return { api: inCluster({ env }), identity: 'the service account of this Pod' };
  }
  const path = kubeconfig === undefined ? defaultFile(env) : resolve(cwd, kubeconfig);
  const identity = `the kubeconfig ${path}${context === undefined ? '' : `, context ${context}`}`;
  const text = await readConfig(path, origin);
  const { parse } = await import('yaml');
  let parsed: unknown;
  try {
    // Its long messages show what stands there, and that may be a token.
    parsed = parse(text, { prettyErrors: false, logLevel: 'error' });
  } catch (error) {
    const code = (error as { readonly code?: unknown }).code;
    throw refuse(`the kubeconfig ${path} is no YAML (${code ?? 'it cannot be read'})`);
  }
  const directory = dirname(path);
  try {
    const api = fromKubeConfig(
      parsed,
      context === undefined ? { directory } : { context, directory },
    );
    return { api, identity };
  } catch (error) {
    if (!(error instanceof ElectionError)) throw error;
    throw refuse(`${path}: ${error.message}`, error);
  }
}

function defaultFile(env: Machine['env']): string {
  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  if (named.length > 1) {
    throw refuse(
      `KUBECONFIG names ${named.length} files, which this command does not merge: name the one that ` +
        'is meant with kubeconfig=/PATH in the URL',
    );
  }
  return named[0] ?? join(env['HOME'] || homedir(), '.kube', 'config');
}

async function readConfig(path: string, origin: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw refuse(
      `the kubeconfig ${path} of ${origin} cannot be read: ${reasonOf(error)}; outside of a Pod name ` +
        'one with kubeconfig=/PATH or KUBECONFIG',
      error,
    );
  }
}

function refuse(message: string, cause?: unknown): CommandError {
  return new CommandError('BAD_KUBECONFIG', exitCodes.usage, message, { cause });
}
