/** Ways to an API server without a client library. */

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import {
  InvalidOptionError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../../base/errors.ts';
import type { KubeConfigLike, KubernetesApi } from './client.ts';
import type { Access, TlsMaterial } from './https-api.ts';
import { HttpsApi } from './https-api.ts';

/** Where a Pod finds the account that it runs as. */
const accountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount';

/** The address of an API server, and credentials for it. */
export interface ApiServerOptions {
  /**
   * `https://host:port`. `http:` is only for a server without a token, as with `kubectl proxy`,
   * or on loopback.
   */
  readonly url: string;
  /** The namespace of elections that name none. */
  readonly namespace?: string;
  /**
   * The authorities that signed the server's certificate, in PEM. Default: those that Node trusts.
   */
  readonly ca?: string | Uint8Array;
  /** A bearer token. */
  readonly token?: string;
  /** A file with the token, read at every request because it may be replaced. */
  readonly tokenFile?: string;
  /** A client certificate and its key, in PEM. */
  readonly cert?: string | Uint8Array;
  readonly key?: string | Uint8Array;
  /** The name in the server's certificate, when it is not that of the URL. */
  readonly serverName?: string;
  /**
   * Trusts any certificate, so that anyone can pose as the server. Only for tests. Default false.
   */
  readonly insecure?: boolean;
}

/** Headers and TLS material that change from request to request. */
export type Credentials = (refresh: boolean) => Promise<{
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: TlsMaterial;
}>;

const known: Readonly<Record<keyof ApiServerOptions, true>> = {
  url: true,
  namespace: true,
  ca: true,
  token: true,
  tokenFile: true,
  cert: true,
  key: true,
  serverName: true,
  insecure: true,
};

/**
 * Connects to an API server by address and credentials.
 * @throws InvalidOptionError
 */
export function apiServer(options: ApiServerOptions): KubernetesApi {
  checkNames('apiServer()', options, known);
  const { token, tokenFile, cert, key } = options;
  if (token !== undefined && tokenFile !== undefined) {
    throw new InvalidOptionError('give token or tokenFile, not both');
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw new InvalidOptionError('cert and key belong together: give both or neither');
  }
  if (token !== undefined) checkToken(token, 'token');
  return openApi(options, token !== undefined || tokenFile !== undefined, async () => {
    const present = tokenFile === undefined ? token : await readToken(tokenFile);
    return present === undefined ? {} : { headers: { authorization: `Bearer ${present}` } };
  });
}

/** @param sendsSecrets true when no other host may read the requests on their way */
export function openApi(
  options: Omit<ApiServerOptions, 'token' | 'tokenFile'>,
  sendsSecrets: boolean,
  credentials: Credentials,
): KubernetesApi {
  const url = checkUrl(options.url, sendsSecrets);
  const tls: TlsMaterial = {
    ca: options.ca,
    cert: options.cert,
    key: options.key,
    servername: options.serverName,
    rejectUnauthorized: options.insecure === true ? false : undefined,
  };
  return new HttpsApi({
    url,
    namespace: options.namespace,
    async access(refresh) {
      const present = await credentials(refresh);
      return { headers: present.headers ?? {}, tls: { ...tls, ...present.tls } };
    },
  });
}

/** The options of `inCluster`. */
export interface InClusterOptions {
  /**
   * The directory with `token`, `ca.crt` and `namespace`. Default
   * `/var/run/secrets/kubernetes.io/serviceaccount`.
   */
  readonly directory?: string;
  /**
   * The environment with KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT. Default
   * `process.env`.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Connects as the service account of the Pod that this process runs in. Its token is read at every
 * request, because it is replaced about hourly.
 * @throws StoreUnsuitableError when this is no Pod, or one without an account
 */
export function inCluster(options: InClusterOptions = {}): KubernetesApi {
  const { directory = accountDirectory, env = process.env } = options;
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'];
  if (!host || !port) {
    throw new StoreUnsuitableError(
      'this process runs in no Pod of Kubernetes (KUBERNETES_SERVICE_HOST is not set): give ' +
        'kubernetes() a KubeConfig, fromKubeConfig() or apiServer() instead of inCluster()',
    );
  }
  const file = (name: string) => {
    try {
      return readFileSync(join(directory, name), 'utf8');
    } catch (error) {
      throw new StoreUnsuitableError(
        `this Pod has no service account to speak as (${(error as Error).message}): leave out ` +
          'automountServiceAccountToken: false, and give it a serviceAccountName',
      );
    }
  };
  // Fails here and now, rather than at the first request.
  file('token');
  return apiServer({
    url: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: file('ca.crt'),
    namespace: file('namespace').trim(),
    tokenFile: join(directory, 'token'),
  });
}

/**
 * Connects by a `KubeConfig` of `@kubernetes/client-node`, with credentials of every kind
 * that it knows.
 */
export function fromClientNode(config: KubeConfigLike): KubernetesApi {
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw new InvalidOptionError(
      'the KubeConfig has no current cluster: call its loadFromDefault() or loadFromCluster() first',
    );
  }
  const { namespace } = config.getContextObject(config.getCurrentContext()) ?? {};
  return new HttpsApi({
    url: checkUrl(cluster.server, false),
    namespace: namespace?.trim() || undefined,
    async access() {
      const options: {
        headers: Record<string, string>;
        auth?: string;
        agent?: unknown;
      } & TlsMaterial = { headers: {} };
      await config.applyToHTTPSOptions(options);
      const { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized, auth } = options;
      const headers =
        auth === undefined
          ? options.headers
          : { ...options.headers, authorization: `Basic ${Buffer.from(auth).toString('base64')}` };
      const access: Access = {
        headers,
        tls: { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized },
      };
      // Its agents keep no connections, so they are used only for what ours cannot do.
      return cluster.proxyUrl === undefined ? access : { ...access, agent: options.agent };
    },
  });
}

async function readToken(path: string): Promise<string> {
  try {
    return checkToken((await readFile(path, 'utf8')).trim(), path);
  } catch (error) {
    if (error instanceof InvalidOptionError) throw error;
    // The file may be there again in a moment: replacing it takes more than one step.
    throw new StoreUnavailableError(`the token cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function checkToken(token: unknown, from: string): string {
  if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token;
  throw new InvalidOptionError(
    `${from} holds no token: one line of letters, digits and signs, without spaces`,
  );
}

function checkUrl(text: unknown, sendsSecrets: boolean): URL {
  const example = 'write https://host:6443';
  if (typeof text !== 'string' || !URL.canParse(text)) {
    throw new InvalidOptionError(`url ${describeValue(text)} is no URL: ${example}`);
  }
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') {
    throw new InvalidOptionError('url holds a password: give a token or a certificate instead');
  }
  if (url.protocol === 'https:') return url;
  if (url.protocol !== 'http:') {
    throw new InvalidOptionError(`url "${text}" has the scheme ${url.protocol} ${example}`);
  }
  const isLoopback = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname);
  if (sendsSecrets && !isLoopback) {
    throw new InvalidOptionError(
      `url "${text}" would send the token in clear text over the network: ${example}`,
    );
  }
  return url;
}
