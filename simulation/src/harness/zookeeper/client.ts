import { setMaxListeners } from 'node:events';
import type { Host, Owner } from '../host.ts';
import type { World } from '../world.ts';
import type { ClientLink, Message } from './connection.ts';
import { Connection } from './connection.ts';
import type { Answer, Ensemble, Request, Server, WatchKind } from './ensemble.ts';
import type { Node, Operation, Result, TreeEvent } from './tree.ts';

/** The error of a client of ZooKeeper: told by `code`. */
export class ClientError extends Error {
  override readonly name: string = 'ClientError';
  readonly code: string;
  readonly index: number | undefined;
  readonly retryable: boolean;

  constructor(code: string, message: string, index?: number, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.code = code;
    this.index = index;
    this.retryable = ['CONNECTION_LOSS', 'REQUEST_TIMEOUT', 'SESSION_EXPIRED'].includes(code);
  }
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export type ClientState = 'connecting' | 'connected' | 'suspended' | 'expired' | 'closed';

interface Call {
  readonly request: Request;
  readonly label: string;
  readonly settle: (answer: Answer, zxid: bigint) => void;
  readonly fail: (error: unknown) => void;
  isOver: boolean;
  sentMs: number;
  /** On its connection. */
  id: number;
}

type Tell = (event: { readonly type: string; readonly path: string }) => void;

export interface Who {
  readonly world: World;
  readonly host: Host;
  readonly owner: Owner;
  readonly link: ClientLink;
}

/** Parts of the session timeout. */
const pingAfter = 1 / 3;
const silentAfter = 0.6;
const expiredAfter = 0.95;

/**
 * A client of ZooKeeper as `@incumbent/zookeeper` is one: calls in order, sessions that outlive
 * connections, watches that are set again after a reconnect.
 */
export class SimulatedClient {
  readonly timeoutMs: number;
  /** Its paths are below this one, of which its callers know nothing; empty: none. */
  readonly chroot: string;
  /** Told of every request that is made, with full paths. */
  onRequest: (request: Request) => void = () => {};
  readonly #who: Who;
  readonly #ensemble: Ensemble;
  /** Judges the end of its session by its own clock, and not only by the servers' word. */
  readonly #judgesExpiry: boolean;
  readonly #listeners = new Set<(change: { readonly state: ClientState }) => void>();
  readonly #watches = new Map<string, Set<Tell>>();
  #state: ClientState = 'connecting';
  #session: bigint | undefined;
  #connection: Connection | undefined;
  #isAttached = false;
  #attemptUntilMs = 0;
  #nextAttemptMs = 0;
  #queue: Call[] = [];
  #inFlight: Call[] = [];
  #lastZxid = 0n;
  #lastSentMs = 0;
  #lastHeardMs = 0;
  /** When the latest request was sent that was answered. */
  #confirmedMs = 0;
  #candidates: Server[] = [];
  #isEnded = false;

  constructor(who: Who, ensemble: Ensemble, timeoutMs: number, chroot = '') {
    this.#who = who;
    this.#ensemble = ensemble;
    this.timeoutMs = timeoutMs;
    this.chroot = chroot;
    this.#judgesExpiry = who.link.random.chance(0.6);
    this.#look();
  }

  get state(): ClientState {
    this.#expireIfOverdue();
    return this.#state;
  }

  get session():
    | { readonly id: bigint; readonly timeoutMs: number; readonly readOnly: boolean }
    | undefined {
    if (this.#session === undefined) return undefined;
    return { id: this.#session, timeoutMs: this.timeoutMs, readOnly: false };
  }

  /** The session that its places live with; for the checks, which look from outside. */
  get sessionId(): bigint | undefined {
    return this.#session;
  }

  get server(): Server | undefined {
    return this.#isAttached ? this.#connection?.server : undefined;
  }

  /** How many callers wait to be told of this path, a full one. */
  watchers(path: string): number {
    let count = 0;
    for (const kind of ['data', 'exist'] as const) {
      count += this.#watches.get(`${kind} ${path}`)?.size ?? 0;
    }
    return count;
  }

  onState(listener: (change: { readonly state: ClientState }) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  connected(): Promise<void> {
    if (this.#state === 'connected') return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.onState(({ state }) => {
        if (state !== 'connected') return;
        stop();
        resolve();
      });
    });
  }

  /** Ends the session, or leaves that to the servers if they do not answer in time. */
  async close(): Promise<void> {
    if (this.#isEnded) return;
    const closing = this.#call({ kind: 'close' }, 'close', { timeoutMs: 800 });
    this.#isEnded = true;
    await closing.catch(() => {});
    this.#drop();
    this.#setState('closed');
    this.#failAll('CLOSED');
  }

  // --- calls ---

  async create(
    path: string,
    data: string | Uint8Array | null,
    options: CallOptions & { readonly ephemeral?: boolean; readonly sequential?: boolean } = {},
  ): Promise<{ readonly path: string; readonly stat: Stat | null }> {
    const operation = createOf(this.#full(path), data, options);
    const [result] = await this.#write([operation], false, options);
    return {
      path: this.#seen(result?.path ?? operation.path),
      stat: result === undefined ? null : statOf(result),
    };
  }

  async get(path: string, options: CallOptions = {}): Promise<Content> {
    const node = await this.#read({ kind: 'get', path: this.#full(path), watch: false }, options);
    if (node === undefined) throw refusal('NO_NODE', path);
    return contentOf(node);
  }

  async set(
    path: string,
    data: string | Uint8Array | null,
    options: CallOptions & { readonly version?: number } = {},
  ): Promise<{ readonly stat: Stat }> {
    const [result] = await this.#write(
      [
        {
          type: 'set',
          path: this.#full(path),
          data: toBytes(data),
          version: options.version ?? -1,
        },
      ],
      false,
      options,
    );
    return { stat: statOf(result as Result) };
  }

  async delete(
    path: string,
    options: CallOptions & { readonly version?: number } = {},
  ): Promise<void> {
    await this.#write(
      [{ type: 'delete', path: this.#full(path), version: options.version ?? -1 }],
      false,
      options,
    );
  }

  async stat(path: string, options: CallOptions = {}): Promise<{ readonly stat: Stat | null }> {
    const request = { kind: 'exists', path: this.#full(path), watch: false } as const;
    const node = await this.#read(request, options);
    return { stat: node === undefined ? null : statOfNode(node) };
  }

  async getChildren(
    path: string,
    options: CallOptions = {},
  ): Promise<{ readonly children: readonly string[] }> {
    const request = { kind: 'children', path: this.#full(path), watch: false } as const;
    const node = await this.#read(request, options);
    if (node === undefined) throw refusal('NO_NODE', path);
    return { children: this.#shuffled(node.children) };
  }

  async sync(_path: string, options: CallOptions = {}): Promise<void> {
    await this.#call({ kind: 'sync' }, 'sync', options);
  }

  async watch(seen: string, options: CallOptions = {}): Promise<Watch<Content | undefined>> {
    const path = this.#full(seen);
    for (;;) {
      const present = await this.#readAndWatch(
        { kind: 'get', path, watch: true },
        options,
        (node) => node && this.#watch('data', path, contentOf(node)),
      );
      if (present !== undefined) return present;
      const absent = await this.#readAndWatch(
        { kind: 'exists', path, watch: true },
        options,
        (node) => (node === undefined ? this.#watch('exist', path, undefined) : undefined),
      );
      if (absent !== undefined) return absent;
    }
  }

  async watchChildren(
    seen: string,
    options: CallOptions = {},
  ): Promise<Watch<{ readonly children: readonly string[] }>> {
    const path = this.#full(seen);
    const watch = await this.#readAndWatch(
      { kind: 'children', path, watch: true },
      options,
      (node) => node && this.#watch('child', path, { children: this.#shuffled(node.children) }),
    );
    if (watch === undefined) throw refusal('NO_NODE', path);
    return watch;
  }

  transaction(): SimulatedTransaction {
    return new SimulatedTransaction(async (operations, options) => {
      const full = operations.map((each) => ({ ...each, path: this.#full(each.path) }));
      const results = await this.#write(full, true, options);
      return results.map((each) => ({ ...each, path: this.#seen(each.path) }));
    });
  }

  async ensurePath(path: string, options: CallOptions = {}): Promise<void> {
    const parts = path.split('/').filter((part) => part !== '');
    for (let length = 1; length <= parts.length; length += 1) {
      const each = `/${parts.slice(0, length).join('/')}`;
      await this.create(each, null, options).catch((error: unknown) => {
        if (!(error instanceof ClientError) || error.code !== 'NODE_EXISTS') throw error;
      });
    }
  }

  async getAcl(
    path: string,
    options: CallOptions = {},
  ): Promise<{ readonly acl: readonly Acl[]; readonly stat: Stat }> {
    const { stat } = await this.get(path, options);
    return { acl: [{ perms: 31, scheme: 'world', id: 'anyone' }], stat };
  }

  async setAcl(): Promise<void> {}

  #full(path: string): string {
    if (this.chroot === '') return path;
    return path === '/' ? this.chroot : this.chroot + path;
  }

  #seen(path: string): string {
    return path.slice(this.chroot.length) || '/';
  }

  #shuffled(children: readonly string[]): readonly string[] {
    return this.#who.link.random.shuffle([...children]);
  }

  async #write(
    operations: readonly Operation[],
    isMulti: boolean,
    options: CallOptions,
  ): Promise<readonly Result[]> {
    const request = { kind: 'write', operations, isMulti } as const;
    return this.#call(
      request,
      isMulti ? 'multi' : (operations[0]?.type ?? ''),
      options,
      (answer) => {
        if (answer.outcome === 'ok') return answer.results;
        const path = operations[answer.outcome === 'refused' ? answer.index : 0]?.path ?? '';
        const cause = refusal(answer.code, path);
        if (!isMulti) throw cause;
        const index = answer.outcome === 'refused' ? answer.index : 0;
        throw new ClientError('TRANSACTION_FAILED', `operation ${index} was refused`, index, cause);
      },
    );
  }

  #read(request: Request, options: CallOptions): Promise<Node | undefined> {
    return this.#call(request, request.kind, options, nodeIn);
  }

  #readAndWatch<T>(
    request: Request,
    options: CallOptions,
    take: (node: Node | undefined) => T,
  ): Promise<T> {
    // While the answer is handled: the event may come right behind it.
    return this.#call(request, `watch ${request.kind}`, options, (answer) => take(nodeIn(answer)));
  }

  #watch<Value>(kind: WatchKind, path: string, value: Value): Watch<Value> {
    const key = `${kind} ${path}`;
    let told: Tell = () => {};
    const changed = new Promise<unknown>((resolve) => {
      told = resolve;
    });
    const listeners = this.#watches.get(key) ?? new Set<Tell>();
    this.#watches.set(key, listeners.add(told));
    const cancel = () => {
      if (!listeners.delete(told)) return;
      if (listeners.size === 0 && this.#watches.get(key) === listeners) this.#watches.delete(key);
      told({ type: 'lost', path });
    };
    return { value, changed, cancel };
  }

  #call<T = void>(
    request: Request,
    label: string,
    options: CallOptions,
    complete: (answer: Answer) => T = () => undefined as T,
  ): Promise<T> {
    const { signal, timeoutMs = this.timeoutMs } = options;
    const { host, owner } = this.#who;
    return new Promise<T>((resolve, reject) => {
      if (this.#isEnded) return reject(new ClientError('CLOSED', 'this client is closed'));
      if (signal?.aborted === true) return reject(signal.reason);
      const onAbort = () => call.fail(signal?.reason);
      const timer = host.setTimer(
        owner,
        () => call.fail(new ClientError('REQUEST_TIMEOUT', `${label}: no answer in time`)),
        timeoutMs,
      );
      const over = () => {
        call.isOver = true;
        timer.cancel();
        signal?.removeEventListener('abort', onAbort);
      };
      const call: Call = {
        request,
        label,
        isOver: false,
        sentMs: 0,
        id: 0,
        settle: (answer) => {
          if (call.isOver) return;
          over();
          try {
            if (answer.outcome === 'session' && request.kind !== 'write') {
              throw refusal(answer.code, '');
            }
            resolve(complete(answer));
          } catch (error) {
            reject(error);
          }
        },
        fail: (error) => {
          if (call.isOver) return;
          over();
          reject(error);
        },
      };
      // Many calls may share one.
      if (signal !== undefined) setMaxListeners(0, signal);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.onRequest(request);
      if (this.#state === 'connected') this.#send(call);
      else this.#queue.push(call);
    });
  }

  #send(call: Call): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    const { world, host, owner } = this.#who;
    call.sentMs = host.monotonicMs();
    this.#lastSentMs = call.sentMs;
    this.#inFlight.push(call);
    if (call.request.kind !== 'ping') {
      world.trace.add(host.presentMs, owner.name, `sends ${call.label}`, () =>
        describeRequest(call.request),
      );
    }
    call.id = connection.send(call.request);
  }

  // --- connections ---

  /** Looks after the connection, now and a little later again. */
  #look(): void {
    const { host, owner } = this.#who;
    if (this.#isEnded && this.#state === 'closed') return;
    host.setTimer(
      owner,
      () => {
        this.#judge();
        this.#look();
      },
      this.timeoutMs / 12,
    );
    if (this.#connection === undefined && host.monotonicMs() >= this.#nextAttemptMs) {
      this.#attempt();
    }
  }

  #judge(): void {
    const nowMs = this.#who.host.monotonicMs();
    this.#expireIfOverdue();
    if (this.#connection === undefined) return;
    if (!this.#isAttached) {
      if (nowMs >= this.#attemptUntilMs) this.#lose();
      return;
    }
    if (nowMs - this.#lastHeardMs >= silentAfter * this.timeoutMs) {
      this.#lose();
      return;
    }
    if (nowMs - this.#lastSentMs >= (pingAfter - 1 / 12) * this.timeoutMs) {
      this.#send({
        request: { kind: 'ping' },
        label: 'ping',
        settle: () => {},
        fail: () => {},
        isOver: true,
        sentMs: 0,
        id: 0,
      });
    }
  }

  #expireIfOverdue(): void {
    if (!this.#judgesExpiry || this.#session === undefined) return;
    const nowMs = this.#who.host.monotonicMs();
    if (nowMs - this.#confirmedMs >= expiredAfter * this.timeoutMs) this.#expire();
  }

  #attempt(): void {
    const { world, host, link, owner } = this.#who;
    if (this.#candidates.length === 0) {
      this.#candidates = link.random.shuffle([...this.#ensemble.servers]);
    }
    const server = this.#candidates.shift() as Server;
    const startMs = host.monotonicMs();
    this.#attemptUntilMs = startMs + this.timeoutMs / Math.max(2, this.#ensemble.plan.size);
    this.#isAttached = false;
    const connection = new Connection(
      world,
      { host, owner, link },
      server,
      this.timeoutMs,
      (message) => {
        if (this.#connection === connection) this.#receive(message, startMs);
      },
    );
    this.#connection = connection;
    connection.open(this.#session, this.#lastZxid);
  }

  #receive(message: Message, startMs: number): void {
    const { world, host, owner } = this.#who;
    this.#lastHeardMs = host.monotonicMs();
    switch (message.kind) {
      case 'closed':
        this.#lose();
        return;
      case 'welcome': {
        if (message.session === undefined) {
          this.#expire();
          return;
        }
        this.#expireIfOverdue();
        if (this.#session !== undefined && this.#session !== message.session) return;
        // Its session was given up while the answer was on its way.
        if (this.#connection === undefined) return;
        this.#session = message.session;
        this.#isAttached = true;
        this.#confirmedMs = startMs;
        this.#lastSentMs = startMs;
        world.trace.add(
          host.presentMs,
          owner.name,
          `is attached to ${this.#connection.server.name}`,
        );
        this.#introduce();
        this.#setState('connected');
        return;
      }
      case 'answer': {
        // In order, but for pings.
        const index = this.#inFlight.findIndex(({ id }) => id === message.id);
        const [call] = index < 0 ? [] : this.#inFlight.splice(index, 1);
        if (call === undefined) return;
        if (call.sentMs > this.#confirmedMs) this.#confirmedMs = call.sentMs;
        this.#see(message.zxid);
        call.settle(message.answer, message.zxid);
        return;
      }
      case 'event': {
        this.#see(message.zxid);
        this.#tell(message.event);
        return;
      }
      default:
        message satisfies never;
    }
  }

  #see(zxid: bigint): void {
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
  }

  /** Sends the watches first, and then the requests that have waited. */
  #introduce(): void {
    const watches = [...this.#watches.keys()].map((key) => {
      const space = key.indexOf(' ');
      return [key.slice(0, space) as WatchKind, key.slice(space + 1)] as const;
    });
    if (watches.length > 0) {
      this.#send({
        request: { kind: 'set-watches', zxid: this.#lastZxid, watches },
        label: 'setWatches',
        settle: () => {},
        fail: () => {},
        isOver: true,
        sentMs: 0,
        id: 0,
      });
    }
    for (const call of this.#queue.splice(0)) if (!call.isOver) this.#send(call);
  }

  #tell({ type, path }: TreeEvent): void {
    const kinds = type === 'children-changed' ? ['child'] : ['data', 'exist', 'child'];
    for (const kind of kinds) {
      if (kind === 'child' && type !== 'children-changed' && type !== 'deleted') continue;
      const key = `${kind} ${path}`;
      const listeners = this.#watches.get(key);
      if (listeners === undefined) continue;
      this.#watches.delete(key);
      for (const tell of listeners) tell({ type, path });
    }
  }

  #drop(): void {
    this.#connection?.drop();
    this.#connection = undefined;
    this.#isAttached = false;
  }

  /** The connection is gone: what was under way may have been applied or not. */
  #lose(): void {
    const { world, host, owner, link } = this.#who;
    const wasAttached = this.#isAttached;
    this.#drop();
    const pauseMs = wasAttached ? 0 : this.timeoutMs * link.random.between(0.01, 0.05);
    this.#nextAttemptMs = host.monotonicMs() + pauseMs;
    if (wasAttached) {
      world.trace.add(host.presentMs, owner.name, 'loses its connection');
      const lost = this.#inFlight.splice(0);
      this.#setState('suspended');
      for (const call of lost) call.fail(new ClientError('CONNECTION_LOSS', `${call.label}: lost`));
    }
    this.#expireIfOverdue();
  }

  #expire(): void {
    const { world, host, owner } = this.#who;
    world.trace.add(host.presentMs, owner.name, `its session ${this.#session} has expired`);
    this.#session = undefined;
    this.#lastZxid = this.#lastZxid + 0n;
    this.#drop();
    this.#nextAttemptMs = host.monotonicMs();
    this.#failAll('SESSION_EXPIRED');
    const watches = [...this.#watches];
    this.#watches.clear();
    for (const [key, listeners] of watches) {
      for (const tell of listeners) tell({ type: 'lost', path: key.slice(key.indexOf(' ') + 1) });
    }
    this.#setState('expired');
  }

  #failAll(code: string): void {
    const calls = [...this.#inFlight.splice(0), ...this.#queue.splice(0)];
    for (const call of calls) call.fail(new ClientError(code, `${call.label}: ${code}`));
  }

  #setState(state: ClientState): void {
    if (this.#state === state || this.#state === 'closed') return;
    this.#state = state;
    for (const listener of [...this.#listeners]) listener({ state });
  }
}

export class SimulatedTransaction {
  readonly #commit: (
    operations: readonly Operation[],
    options: CallOptions,
  ) => Promise<readonly Result[]>;
  readonly #operations: Operation[] = [];

  constructor(
    commit: (operations: readonly Operation[], options: CallOptions) => Promise<readonly Result[]>,
  ) {
    this.#commit = commit;
  }

  create(
    path: string,
    data: string | Uint8Array | null,
    options: { readonly ephemeral?: boolean; readonly sequential?: boolean } = {},
  ): this {
    this.#operations.push(createOf(path, data, options));
    return this;
  }

  set(path: string, data: string | Uint8Array | null, version = -1): this {
    this.#operations.push({ type: 'set', path, data: toBytes(data), version });
    return this;
  }

  delete(path: string, version = -1): this {
    this.#operations.push({ type: 'delete', path, version });
    return this;
  }

  check(path: string, version = -1): this {
    this.#operations.push({ type: 'check', path, version });
    return this;
  }

  async commit(options: CallOptions = {}): Promise<{
    readonly results: readonly {
      readonly type: string;
      readonly path: string;
      readonly stat?: Stat | null;
    }[];
  }> {
    const results = await this.#commit(this.#operations, options);
    return {
      results: results.map((result) => ({
        type: result.type,
        path: result.path,
        ...(result.type === 'set' ? { stat: statOf(result) } : {}),
        ...(result.type === 'create' ? { stat: null } : {}),
      })),
    };
  }
}

export interface Acl {
  readonly perms: number;
  readonly scheme: string;
  readonly id: string;
}

export interface Stat {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly version: number;
  readonly mtime: number;
  readonly ephemeralOwner: bigint;
  readonly numChildren: number;
  readonly pzxid: bigint;
  readonly cversion: number;
}

export interface Content {
  readonly data: Uint8Array | null;
  readonly stat: Stat;
}

export interface Watch<Value> {
  readonly value: Value;
  readonly changed: Promise<unknown>;
  cancel(): void;
}

function createOf(
  path: string,
  data: string | Uint8Array | null,
  { ephemeral = false, sequential = false }: { ephemeral?: boolean; sequential?: boolean },
): Operation {
  return { type: 'create', path, data: toBytes(data), ephemeral, sequential };
}

function nodeIn(answer: Answer): Node | undefined {
  return answer.outcome === 'ok' ? answer.results[0]?.node : undefined;
}

function contentOf(node: Node): Content {
  return { data: node.data, stat: statOfNode(node) };
}

function statOf({ node }: Result): Stat {
  return statOfNode(node as Node);
}

function statOfNode(node: Node): Stat {
  const { czxid, mzxid, pzxid, version, mtime, owner, children, sequence } = node;
  const numChildren = children.length;
  // As servers tell it: both the creations and the deletions.
  const cversion = (2 * sequence - numChildren) | 0;
  return { czxid, mzxid, pzxid, version, cversion, mtime, ephemeralOwner: owner, numChildren };
}

function toBytes(data: string | Uint8Array | null): Uint8Array | null {
  return typeof data === 'string' ? new TextEncoder().encode(data) : data;
}

function refusal(code: string, path: string): ClientError {
  return new ClientError(code, `${code} ${path}`);
}

export function describeRequest(request: Request): string {
  if (request.kind === 'write') {
    return request.operations.map((operation) => `${operation.type} ${operation.path}`).join('; ');
  }
  return 'path' in request ? request.path : '';
}
