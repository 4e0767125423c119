/**
 * A stand-in for kube-apiserver in this process. It serves `coordination.k8s.io/v1` Leases over
 * HTTPS, as the published rules of the API have them (conflicts, resourceVersions, watches, Status
 * objects, RBAC).
 */
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import type { TestCertificates } from '@incumbent/zookeeper-testing';
import { createCertificates } from '@incumbent/zookeeper-testing';
import { bytesOf, HttpStandIn, reset, strike } from '../http-stand-in.ts';
import { makeServerDirectory } from '../local-server.ts';
import { Accounts } from './accounts.ts';
import type { ServedRequest } from './faults.ts';
import { Faults } from './faults.ts';
import { objectOf } from './lease-object.ts';
import type { Preconditions } from './lease-registry.ts';
import { LeaseRegistry } from './lease-registry.ts';
import { namespaceNotFound, StatusError } from './status.ts';
import { WatchStream } from './watch-stream.ts';

export interface FakeApiServerOptions {
  /** Default: HTTPS with certificates of its own, which also takes client certificates. */
  readonly plain?: boolean;
  /** Default `default` and `other`. */
  readonly namespaces?: readonly string[];
  /** Time between bookmarks, default 60 000 ms. */
  readonly bookmarkEveryMs?: number;
}

/** The user of `adminToken` may do everything; others get their rules from `accounts`. */
export const adminToken = 'the-admin-token';

/** A request, and how it was answered; 0: not at all. */
export interface LoggedRequest extends ServedRequest {
  readonly status: number;
}

export class FakeApiServer implements AsyncDisposable {
  readonly registry: LeaseRegistry;
  readonly accounts: Accounts = new Accounts();
  readonly faults: Faults = new Faults();
  readonly requests: LoggedRequest[] = [];
  readonly certificates: TestCertificates | undefined;
  readonly #directory: string;
  readonly #bookmarkEveryMs: number;
  readonly #watches = new Set<WatchStream>();
  readonly #http: HttpStandIn;

  private constructor(
    options: FakeApiServerOptions,
    directory: string,
    certificates: TestCertificates | undefined,
  ) {
    this.registry = new LeaseRegistry(options.namespaces ?? ['default', 'other']);
    this.#bookmarkEveryMs = options.bookmarkEveryMs ?? 60_000;
    this.#directory = directory;
    this.certificates = certificates;
    this.accounts.addToken(adminToken, 'admin');
    this.accounts.allow('admin', { verbs: ['*'] });
    const tls = certificates && {
      key: certificates.server.key.text,
      cert: certificates.server.certificate.text,
      ca: certificates.ca.text,
      requestCert: true,
      rejectUnauthorized: false,
    };
    this.#http = new HttpStandIn((request, response) => void this.#serve(request, response), tls);
  }

  static async start(options: FakeApiServerOptions = {}): Promise<FakeApiServer> {
    const directory = await makeServerDirectory('kubernetes');
    const certificates =
      options.plain === true ? undefined : await createCertificates(join(directory, 'tls'));
    const server = new FakeApiServer(options, directory, certificates);
    await server.listen();
    return server;
  }

  get port(): number {
    return this.#http.port;
  }

  get url(): string {
    return this.#http.url;
  }

  /** For `apiServer()`. */
  get access(): { readonly url: string; readonly token: string; readonly ca?: string } {
    const base = { url: this.url, token: adminToken };
    return this.certificates === undefined ? base : { ...base, ca: this.certificates.ca.text };
  }

  get watchCount(): number {
    return this.#watches.size;
  }

  count(verb: string): number {
    return this.requests.filter((each) => each.verb === verb).length;
  }

  /** After `stop`: on the same port, with the same Leases. */
  listen(): Promise<void> {
    return this.#http.listen();
  }

  /** As if killed: connections are reset, the Leases stay. */
  async stop(): Promise<void> {
    this.endWatches();
    await this.#http.stop();
  }

  /** Ends all watches: in order, or with a last word such as `410 Expired`. */
  endWatches(status?: StatusError): void {
    for (const watch of this.#watches) watch.end(status);
    this.#watches.clear();
  }

  async close(): Promise<void> {
    await this.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const target = targetOf(request.method ?? 'GET', url);
    const served: { -readonly [Field in keyof ServedRequest]: ServedRequest[Field] } = {
      verb: target?.verb ?? 'other',
      name: target?.name,
      user: undefined,
    };
    response.on('close', () => {
      this.requests.push({ ...served, status: response.headersSent ? response.statusCode : 0 });
    });
    let reply = (status: number, body: object) => answer(response, status, body);
    try {
      const body = await bodyOf(request);
      const action = this.faults.take(served);
      if (action?.kind === 'drop-reply') reply = () => reset(request.socket);
      if (action !== undefined && !(await strike(action, request, response))) return;
      const user = this.accounts.userOf(request.headers.authorization, commonNameOf(request));
      served.user = user;
      if (target === undefined) {
        reply(...this.#serveOthers(request, url, user, body));
        return;
      }
      this.accounts.require(user, target);
      if (target.verb === 'watch') {
        this.#watch(target, url.searchParams, response);
        return;
      }
      reply(...this.#serveLeases(target, url.searchParams, request, body));
    } catch (error) {
      const status =
        error instanceof StatusError
          ? error
          : new StatusError(500, 'InternalError', (error as Error).message);
      if (!response.headersSent) reply(status.code, status);
    }
  }

  #serveLeases(
    { verb, namespace, name }: Target,
    query: URLSearchParams,
    request: IncomingMessage,
    body: unknown,
  ): [number, object] {
    const { registry } = this;
    switch (verb) {
      case 'list': {
        const all = [...registry.list(namespace, name)].sort((a, b) =>
          a.metadata.name < b.metadata.name ? -1 : 1,
        );
        const after = Buffer.from(query.get('continue') ?? '', 'base64').toString();
        const isSelected = selectorOf(query.get('labelSelector') ?? '');
        const behind = all.filter(
          ({ metadata }) => metadata.name > after && isSelected(metadata.labels ?? {}),
        );
        const items = behind.slice(0, Number(query.get('limit') ?? behind.length));
        const next =
          items.length < behind.length
            ? { continue: Buffer.from(items.at(-1)?.metadata.name ?? '').toString('base64') }
            : {};
        return [
          200,
          {
            kind: 'LeaseList',
            apiVersion: 'coordination.k8s.io/v1',
            metadata: { resourceVersion: String(registry.revision), ...next },
            items,
          },
        ];
      }
      case 'create':
        return [201, registry.create(namespace, body)];
      case 'get':
        return [200, registry.get(namespace, name as string)];
      case 'update': {
        const isNew = registry.find(namespace, name as string) === undefined;
        return [isNew ? 201 : 200, registry.update(namespace, name as string, body)];
      }
      case 'patch': {
        const type = request.headers['content-type'] ?? '';
        if (!/^application\/(?:strategic-)?merge-patch\+json/.test(type)) {
          throw new StatusError(
            415,
            'UnsupportedMediaType',
            `the body of ${type} is not supported`,
          );
        }
        return [200, registry.patch(namespace, name as string, body)];
      }
      case 'delete': {
        const { preconditions } = objectOf(body) as { preconditions?: Preconditions };
        const { metadata } = registry.delete(namespace, name as string, preconditions);
        return [
          200,
          { kind: 'Status', apiVersion: 'v1', status: 'Success', details: { uid: metadata.uid } },
        ];
      }
      default:
        throw new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method');
    }
  }

  #serveOthers(
    request: IncomingMessage,
    { pathname }: URL,
    user: string,
    body: unknown,
  ): [number, object] {
    if (pathname === '/version')
      return [200, { major: '1', minor: '32', gitVersion: 'v1.32.0-fake' }];
    const namespace = /^\/api\/v1\/namespaces\/([^/]+)$/.exec(pathname)?.[1];
    if (namespace !== undefined) {
      if (!this.registry.namespaces.has(namespace)) throw namespaceNotFound(namespace);
      return [200, { kind: 'Namespace', apiVersion: 'v1', metadata: { name: namespace } }];
    }
    const reviews = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    if (pathname === reviews && request.method === 'POST') {
      const { resourceAttributes = {} } = objectOf(objectOf(body)['spec']);
      const { verb = '', namespace: of = '', name } = resourceAttributes as Record<string, string>;
      const allowed = this.accounts.isAllowed(user, { verb, namespace: of, name });
      return [201, { ...objectOf(body), status: { allowed } }];
    }
    throw new StatusError(404, 'NotFound', 'the server could not find the requested resource', {});
  }

  #watch(target: Target, query: URLSearchParams, response: ServerResponse): void {
    const stream = new WatchStream(this.registry, response, {
      namespace: target.namespace,
      name: target.name,
      resourceVersion: query.get('resourceVersion') ?? '',
      timeoutSeconds: Number(query.get('timeoutSeconds') ?? 1_800),
      bookmarkEveryMs:
        query.get('allowWatchBookmarks') === 'true' ? this.#bookmarkEveryMs : undefined,
    });
    this.#watches.add(stream);
    response.on('close', () => this.#watches.delete(stream));
    stream.start();
  }
}

interface Target {
  readonly verb: string;
  readonly namespace: string;
  readonly name: string | undefined;
}

/** The target of a request, as RBAC sees it; undefined: no Lease. */
function targetOf(method: string, { pathname, searchParams }: URL): Target | undefined {
  const pattern = /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/([^/]+)\/leases(?:\/([^/]+))?$/;
  const match = pattern.exec(pathname);
  if (match === null) return undefined;
  const [, namespace = '', name] = match;
  const isWatch = ['1', 'true'].includes(searchParams.get('watch') ?? '');
  if (name === undefined && method === 'GET') {
    // A selector for one name counts as that name.
    const selected = /^metadata\.name=(.+)$/.exec(searchParams.get('fieldSelector') ?? '')?.[1];
    return { verb: isWatch ? 'watch' : 'list', namespace, name: selected };
  }
  const verbs: Readonly<Record<string, string>> = {
    GET: 'get',
    POST: 'create',
    PUT: 'update',
    PATCH: 'patch',
    DELETE: 'delete',
  };
  return { verb: verbs[method] ?? 'other', namespace, name };
}

/** Of the selectors by label, `key in (value,value)` alone. Others select nothing. */
function selectorOf(text: string): (labels: Readonly<Record<string, string>>) => boolean {
  if (text === '') return () => true;
  const [, key = '', values = ''] = /^([^ ]+) in \(([^)]*)\)$/.exec(text) ?? [];
  return (labels) => values.split(',').includes(labels[key] ?? '');
}

function answer(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response
    .writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    })
    .end(text);
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const bytes = await bytesOf(request);
  return bytes.length === 0 ? undefined : JSON.parse(bytes.toString());
}

function commonNameOf({ socket }: IncomingMessage): string | undefined {
  const tls = socket as Partial<TLSSocket>;
  if (tls.authorized !== true) return undefined;
  const name = tls.getPeerCertificate?.().subject?.CN;
  return typeof name === 'string' ? name : undefined;
}
