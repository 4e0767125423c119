import type { IncomingMessage, RequestOptions } from 'node:http';
import { Agent as HttpAgent, request as requestByHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestByHttps } from 'node:https';
import { createInterface } from 'node:readline';
import { StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import type { ApiRequest, ApiResponse, ApiWatch, KubernetesApi } from './client.ts';

/** The TLS material, in PEM, by the names of `node:tls`. */
export interface TlsMaterial {
  readonly ca?: string | Uint8Array | undefined;
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  readonly pfx?: string | Uint8Array | undefined;
  readonly passphrase?: string | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
}

/** The credentials of one request. */
export interface Access {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
  /** The agent for a proxy, made by another library. */
  readonly agent?: unknown;
}

export interface HttpsApiPlan {
  /** `https://host:port`, perhaps with a path before `/api`. */
  readonly url: URL;
  readonly namespace: string | undefined;
  /**
   * @param refresh true: the server did not accept us, so read again the parts that may
   * have been replaced
   */
  access(refresh: boolean): Promise<Access>;
}

/** After such a silence the connection is dead. Callers have bounds of their own. */
const silenceMs = 30_000;
/** A watch reports something about once a minute, if only a bookmark. */
const watchSilenceMs = 150_000;
const mostConnections = 32;
/** A Lease has at most 1.5 MB. */
const largestBody = 8 * 1024 * 1024;

const brokenTrust: ReadonlySet<string> = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** JSON over HTTPS on kept connections. That is all of a Kubernetes client that is needed here. */
export class HttpsApi implements KubernetesApi {
  readonly url: string;
  readonly namespace: string | undefined;
  readonly #plan: HttpsApiPlan;
  #agents: Agents | undefined;
  /** True: the server has answered once, so its certificate was trusted rightly. */
  #hasAnswered = false;

  constructor(plan: HttpsApiPlan) {
    this.#plan = plan;
    this.url = plan.url.origin;
    this.namespace = plan.namespace;
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    const { method, path, body, contentType = 'application/json', signal } = request;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const send = async (access: Access) => {
      const headers = { ...access.headers, accept: 'application/json' };
      const options: RequestOptions = {
        method,
        headers:
          text === undefined
            ? headers
            : {
                ...headers,
                'content-type': contentType,
                'content-length': Buffer.byteLength(text),
              },
        agent: this.#agentsFor(access).forCalls,
        timeout: silenceMs,
      };
      return answerOf(await this.#send(path, options, text, signal));
    };
    const response = await send(await this.#plan.access(false));
    // A service account's token is replaced all the time. The request was not carried out, so it
    // may be sent again.
    return response.status === 401 ? send(await this.#plan.access(true)) : response;
  }

  async watch({ path, signal, onOpen, onEvent }: ApiWatch): Promise<ApiResponse | undefined> {
    const open = async (access: Access) =>
      this.#send(
        path,
        {
          method: 'GET',
          headers: { ...access.headers, accept: 'application/json' },
          agent: this.#agentsFor(access).forWatches,
          timeout: watchSilenceMs,
        },
        undefined,
        signal,
        true,
      );
    let message = await open(await this.#plan.access(false));
    if (message.statusCode === 401) {
      message.resume();
      message = await open(await this.#plan.access(true));
    }
    if (message.statusCode !== 200 || !isJson(message)) return answerOf(message);
    onOpen();
    try {
      for await (const line of createInterface({ input: message, crlfDelay: Infinity })) {
        if (signal.aborted) break;
        if (line.trim() !== '') onEvent(JSON.parse(line));
      }
    } catch (error) {
      throw new StoreUnavailableError(`a watch of ${this.url} broke: ${messageOf(error)}`, {
        cause: error,
      });
    } finally {
      message.destroy();
    }
    return undefined;
  }

  close(): void {
    this.#agents?.forCalls.destroy();
    this.#agents?.forWatches.destroy();
    this.#agents = undefined;
  }

  /** Resolves with the beginning of the answer. */
  #send(
    path: string,
    options: RequestOptions,
    body: string | undefined,
    signal: AbortSignal | undefined,
    inBackground = false,
  ): Promise<IncomingMessage> {
    const { url } = this.#plan;
    const isHttps = url.protocol === 'https:';
    return new Promise((resolve, reject) => {
      const outgoing = (isHttps ? requestByHttps : requestByHttp)(
        new URL(url.pathname.replace(/\/$/, '') + path, url.origin),
        { ...options, ...(signal === undefined ? {} : { signal }) },
      );
      outgoing.on('response', (message) => {
        this.#hasAnswered = true;
        resolve(message);
      });
      outgoing.on('timeout', () =>
        outgoing.destroy(new Error(`nothing was heard for ${options.timeout} ms`)),
      );
      outgoing.on('error', (error: Error & { readonly code?: string }) => {
        // The server has closed a kept connection meanwhile. A read may be sent again, because it
        // changes nothing.
        const wasStale = outgoing.reusedSocket && error.code === 'ECONNRESET';
        if (signal?.aborted) reject(error);
        else if (wasStale && options.method === 'GET') {
          resolve(this.#send(path, options, body, signal, inBackground));
        } else reject(this.#failure(error));
      });
      // A watch alone does not keep the process alive.
      if (inBackground) outgoing.on('socket', (socket) => socket.unref());
      outgoing.end(body);
    });
  }

  #failure(error: Error & { readonly code?: string }): Error {
    const what = `the API server ${this.url} cannot be reached: ${error.message}`;
    if (!this.#hasAnswered && error.code !== undefined && brokenTrust.has(error.code)) {
      return new StoreUnsuitableError(
        `the certificate of the API server ${this.url} is not trusted (${error.code}: ` +
          `${error.message}): give the cluster's own authority as ca, and serverName if the ` +
          'address is not in the certificate',
      );
    }
    return new StoreUnavailableError(what, { cause: error });
  }

  #agentsFor({ tls, agent }: Access): Pick<Agents, 'forCalls' | 'forWatches'> {
    if (agent !== undefined) {
      const given = agent as HttpAgent;
      return { forCalls: given, forWatches: given };
    }
    const key = JSON.stringify(tls, (_name, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value,
    );
    if (this.#agents?.key !== key) {
      // Agents of before are left to their calls. Idle connections close by themselves.
      this.#agents = makeAgents(this.#plan.url, tls, key);
    }
    return this.#agents;
  }
}

interface Agents {
  readonly key: string;
  readonly forCalls: HttpAgent;
  readonly forWatches: HttpAgent;
}

function makeAgents(url: URL, tls: TlsMaterial, key: string): Agents {
  const make = (options: object): HttpAgent =>
    url.protocol === 'https:'
      ? new HttpsAgent({ ...definedOnly(tls), ...options })
      : new HttpAgent(options);
  return {
    key,
    forCalls: make({ keepAlive: true, maxSockets: mostConnections, scheduling: 'lifo' }),
    forWatches: make({ keepAlive: false }),
  };
}

function definedOnly(material: TlsMaterial): Record<string, unknown> {
  return Object.fromEntries(Object.entries(material).filter(([, value]) => value !== undefined));
}

async function answerOf(message: IncomingMessage): Promise<ApiResponse> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > largestBody) throw new Error(`an answer of more than ${largestBody} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw new StoreUnavailableError(`an answer broke off: ${messageOf(error)}`, { cause: error });
  }
  const text = Buffer.concat(chunks).toString();
  const retryAfter = message.headers['retry-after'];
  return {
    status: message.statusCode ?? 0,
    body: isJson(message) ? parsed(text) : undefined,
    text: text.slice(0, 1_000),
    retryAfter,
  };
}

function isJson({ headers }: IncomingMessage): boolean {
  return /^application\/(?:[a-z.+-]*\+)?json\b/i.test(headers['content-type'] ?? '');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
