import type { Clock, Instant } from 'incumbent';
import type { Owner } from '../harness/host.ts';
import type {
  CallOptions,
  ClientState,
  Content,
  SimulatedClient,
  SimulatedTransaction,
  Watch,
} from '../harness/zookeeper/client.ts';
import { ClientError } from '../harness/zookeeper/client.ts';
import type { Library } from './library.ts';

type Versioned = CallOptions & { readonly version?: number };
type Text = Content & { readonly text: string };
interface Children {
  readonly children: readonly string[];
  readonly stat: { readonly czxid: bigint; readonly pzxid: bigint };
}
type Signal = { readonly signal?: AbortSignal | undefined };

/**
 * The modelled client with the face of `@incumbent/zookeeper`: it throws the errors of that package, and
 * `follow` is the real one.
 */
export class ZooKeeperFace {
  readonly #client: SimulatedClient;
  readonly #library: Library;
  readonly #clock: Clock;
  readonly #owner: Owner;
  /**
   * Counted here, because the model does not: how often the children of a node were seen to change.
   */
  readonly #children = new Map<string, { readonly names: string; readonly changes: bigint }>();

  constructor(client: SimulatedClient, library: Library, clock: Clock, owner: Owner) {
    this.#client = client;
    this.#library = library;
    this.#clock = clock;
    this.#owner = owner;
  }

  get state(): ClientState {
    return this.#client.state;
  }

  get session(): SimulatedClient['session'] {
    return this.#client.session;
  }

  onState(listener: (change: { readonly state: ClientState }) => void): () => void {
    return this.#client.onState(listener);
  }

  connected({ signal }: Signal = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason);
      const onAbort = () => reject(signal?.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      void this.#client.connected().then(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
    });
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  create(
    path: string,
    data: string | null,
    options: CallOptions & object = {},
  ): ReturnType<SimulatedClient['create']> {
    return this.#told('create', path, this.#client.create(path, data, options));
  }

  async get(path: string, options: CallOptions = {}): Promise<Text> {
    return withText(await this.#told('getData', path, this.#client.get(path, options)));
  }

  set(path: string, data: string, options: Versioned = {}): ReturnType<SimulatedClient['set']> {
    return this.#told('setData', path, this.#client.set(path, data, options));
  }

  delete(path: string, options: Versioned = {}): Promise<void> {
    return this.#told('delete', path, this.#client.delete(path, options));
  }

  stat(path: string, options: CallOptions = {}): ReturnType<SimulatedClient['stat']> {
    return this.#told('exists', path, this.#client.stat(path, options));
  }

  async getChildren(path: string, options: CallOptions = {}): Promise<Children> {
    const { children } = await this.#told(
      'getChildren',
      path,
      this.#client.getChildren(path, options),
    );
    return { children, stat: this.#statOf(path, children) };
  }

  sync(path: string, options: CallOptions = {}): Promise<void> {
    return this.#told('sync', path, this.#client.sync(path, options));
  }

  async watch(path: string, options: CallOptions = {}): Promise<Watch<Text | undefined>> {
    const watch = await this.#told('getData', path, this.#client.watch(path, options));
    return { ...watch, value: watch.value && withText(watch.value) };
  }

  async watchChildren(path: string, options: CallOptions = {}): Promise<Watch<Children>> {
    const watch = await this.#told('getChildren', path, this.#client.watchChildren(path, options));
    const { children } = watch.value;
    return { ...watch, value: { children, stat: this.#statOf(path, children) } };
  }

  follow(path: string, { signal }: Signal = {}): ReturnType<Library['follow']> {
    return this.#library.follow(this as never, this.#clock, path, signal);
  }

  followChildren(path: string, { signal }: Signal = {}): ReturnType<Library['followChildren']> {
    return this.#library.followChildren(this as never, this.#clock, path, signal);
  }

  transaction(): TransactionFace {
    return new TransactionFace(this.#client.transaction(), (commit, operations) =>
      this.#told('multi', undefined, commit, operations),
    );
  }

  async confirm(
    nodes: readonly { readonly path: string; readonly version: number }[],
    options: CallOptions = {},
  ): Promise<{ readonly zxid: bigint; readonly sentAt: Instant }> {
    const transaction = this.transaction();
    for (const { path, version } of nodes) transaction.check(path, version);
    // A request that waits for a connection is sent later: the belief is shorter than it could be.
    const sentAt = { monotonicMs: this.#clock.monotonicMs(), wallMs: this.#clock.wallMs() };
    await transaction.commit(options);
    return { zxid: 0n, sentAt };
  }

  async ensurePath(path: string, options: CallOptions = {}): Promise<void> {
    await this.#told('create', path, this.#client.ensurePath(path, options));
  }

  getAcl(path: string, options: CallOptions = {}): ReturnType<SimulatedClient['getAcl']> {
    return this.#told('getACL', path, this.#client.getAcl(path, options));
  }

  setAcl(): Promise<void> {
    return this.#client.setAcl();
  }

  #statOf(path: string, children: readonly string[]): Children['stat'] {
    const names = [...children].sort().join(' ');
    const before = this.#children.get(path);
    const changes = before?.names === names ? before.changes : (before?.changes ?? 0n) + 1n;
    this.#children.set(path, { names, changes });
    return { czxid: 0n, pzxid: changes };
  }

  async #told<T>(
    operation: string,
    path: string | undefined,
    call: Promise<T>,
    operations = 1,
  ): Promise<T> {
    try {
      return await call;
    } catch (error) {
      if (!(error instanceof ClientError) || !this.#owner.alive) throw error;
      throw this.#errorOf(error, operation, path, operations);
    }
  }

  #errorOf(
    error: ClientError,
    operation: string,
    path: string | undefined,
    operations: number,
  ): Error {
    const { errors, TransactionError } = this.#library;
    const context = { operation, path };
    switch (error.code) {
      case 'NO_NODE':
        return new errors.NoNodeError(context);
      case 'NODE_EXISTS':
        return new errors.NodeExistsError(context);
      case 'BAD_VERSION':
        return new errors.BadVersionError(context);
      case 'CONNECTION_LOSS':
        return new errors.ConnectionLossError(true, context);
      case 'REQUEST_TIMEOUT':
        return new errors.RequestTimeoutError(this.#client.timeoutMs, true, context);
      case 'CLOSED':
        return new errors.ClosedError(context);
      case 'SESSION_EXPIRED':
        return errors.sessionExpired(context);
      case 'SESSION_MOVED':
        return new errors.SessionError('SESSION_MOVED', error.message, context, true);
      case 'TRANSACTION_FAILED': {
        const cause = error.cause as ClientError;
        const refused = cause.message.slice(cause.code.length + 1);
        const outcomes = Array.from({ length: operations }, () => 'not-tried' as const);
        const failed = this.#errorOf(cause, 'multi', refused, operations);
        return new TransactionError(
          { index: error.index ?? 0, error: failed as never },
          outcomes,
          0n,
        );
      }
      default:
        return new errors.ServerError(context);
    }
  }
}

type Told = <T>(commit: Promise<T>, operations: number) => Promise<T>;

class TransactionFace {
  readonly #transaction: SimulatedTransaction;
  readonly #told: Told;
  #operations = 0;

  constructor(transaction: SimulatedTransaction, told: Told) {
    this.#transaction = transaction;
    this.#told = told;
  }

  create(path: string, data: string | null, options: object = {}): this {
    this.#transaction.create(path, data, options);
    return this.#counted();
  }

  set(path: string, data: string | null, version = -1): this {
    this.#transaction.set(path, data, version);
    return this.#counted();
  }

  delete(path: string, version = -1): this {
    this.#transaction.delete(path, version);
    return this.#counted();
  }

  check(path: string, version = -1): this {
    this.#transaction.check(path, version);
    return this.#counted();
  }

  commit(options: CallOptions = {}): ReturnType<SimulatedTransaction['commit']> {
    return this.#told(this.#transaction.commit(options), this.#operations);
  }

  #counted(): this {
    this.#operations += 1;
    return this;
  }
}

const decoder = new TextDecoder();

function withText(content: Content): Text {
  const { data } = content;
  return { ...content, text: data === null ? '' : decoder.decode(data) };
}
