/**
 * The controller sees this as `kubectl proxy`: the API without credentials, on loopback, with the
 * rights of its Role. Leases are those of the stand-in for kube-apiserver; ConfigMaps are kept
 * here.
 */
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { FakeApiServer } from '@incumbent/servers';

export interface ConfigMap {
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly resourceVersion: string;
  };
  readonly data: Readonly<Record<string, string>>;
}

/** One of the `rules` of a Role. */
export interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const token = 'the token of the account';

export class KubeProxy implements AsyncDisposable {
  readonly maps = new Map<string, ConfigMap>();
  /** Each map as it was after a write by HTTP, in order. */
  readonly written: ConfigMap[] = [];
  readonly api: FakeApiServer;
  readonly #server: Server;
  readonly #rules: readonly Rule[];
  #version = 0;

  private constructor(api: FakeApiServer, rules: readonly Rule[]) {
    this.api = api;
    this.#rules = rules;
    api.accounts.addToken(token, 'controller');
    const forLeases = rules.filter(({ resources }) => resources.includes('leases'));
    api.accounts.allow(
      'controller',
      ...forLeases.map(({ verbs, resourceNames: names }) => ({
        verbs,
        ...(names === undefined ? {} : { names }),
      })),
    );
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(rules: readonly Rule[]): Promise<KubeProxy> {
    const proxy = new KubeProxy(await FakeApiServer.start({ plain: true }), rules);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** As `kubectl apply` does. */
  apply(name: string, data: Readonly<Record<string, string>>): void {
    const labels = { 'checksum.example.com/wanted': 'true' };
    const metadata = { labels, ...this.maps.get(name)?.metadata, name, resourceVersion: '' };
    this.#keep({ metadata, data });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await this.api.close();
  }

  #keep({ metadata, data }: ConfigMap): ConfigMap {
    this.#version += 1;
    const kept = { data, metadata: { ...metadata, resourceVersion: `${this.#version}` } };
    this.maps.set(metadata.name, kept);
    return kept;
  }

  #mayDo(verb: string): boolean {
    return this.#rules.some(
      ({ resources, verbs }) => resources.includes('configmaps') && verbs.includes(verb),
    );
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url);
    const match = /^\/api\/v1\/namespaces\/default\/configmaps(?:\/([^/]+))?$/.exec(pathname);
    if (match === null) return forward(this.api.port, request, response);
    const [, name] = match;
    const verb = name === undefined ? 'list' : request.method === 'PUT' ? 'update' : 'get';
    if (!this.#mayDo(verb)) return answer(response, 403, { kind: 'Status', code: 403 });
    if (name === undefined) return answer(response, 200, { items: [...this.maps.values()] });
    const present = this.maps.get(name);
    if (present === undefined) return answer(response, 404, { kind: 'Status', code: 404 });
    if (request.method === 'GET') return answer(response, 200, present);
    const next = JSON.parse(await text(request)) as ConfigMap;
    // Read again: others may have written while the body came.
    if (next.metadata.resourceVersion !== this.maps.get(name)?.metadata.resourceVersion) {
      return answer(response, 409, { kind: 'Status', reason: 'Conflict', code: 409 });
    }
    const kept = this.#keep(next);
    this.written.push(kept);
    answer(response, 200, kept);
  }
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function forward(port: number, request: IncomingMessage, response: ServerResponse): void {
  const { method, url: path } = request;
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const onward = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.headers);
    response.flushHeaders(); // a watch says nothing for long
    answered.pipe(response);
  });
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
  request.pipe(onward);
}
