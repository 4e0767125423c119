import type { Clock, GetReply, StateChange, ZooKeeper } from '@incumbent/zookeeper';
import { BadVersionError, NodeExistsError, NoNodeError } from '@incumbent/zookeeper';
import type { ZooKeeperClient } from '../../src/zookeeper-client.ts';
import { atRest } from './hand-clock.ts';

interface Znode {
  text: string;
  version: number;
  czxid: bigint;
  mzxid: bigint;
}

interface Confirmed {
  readonly path: string;
  readonly version: number;
}

/**
 * A confirmation that was asked for. The test answers it, or it is answered at once with
 * `confirmsAtOnce`.
 */
export interface Confirmation {
  readonly checks: readonly Confirmed[];
  readonly sentMs: number;
  /** Answers by the versions that the znodes have now. */
  answer(): void;
  fail(error: Error): void;
}

type State = StateChange['state'];

/**
 * A small part of ZooKeeper: znodes with versions, watches and confirmations. The test moves its
 * only clock, and can hold back every answer. The real one is tested in `test-integration`.
 */
export class FakeZooKeeper {
  state: State = 'connected';
  confirmsAtOnce = true;
  readonly confirmations: Confirmation[] = [];
  /** Every call that changes something, with its arguments. */
  readonly calls: { readonly name: string; readonly args: readonly unknown[] }[] = [];
  /** The test's own answer to a call, by its name: once, or always. */
  readonly instead = new Map<string, (...args: never[]) => unknown>();
  closed = 0;
  /** How many znodes are followed. */
  following = 0;
  readonly #clock: Clock;
  readonly #znodes = new Map<string, Znode>();
  readonly #states = new Set<(change: StateChange) => void>();
  readonly #news = new Set<() => void>();
  #zxid = 100n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For code that takes a client of ZooKeeper. */
  get client(): ZooKeeperClient & ZooKeeper {
    return this as unknown as ZooKeeperClient & ZooKeeper;
  }

  get listeners(): number {
    return this.#states.size;
  }

  text(path: string): string | undefined {
    return this.#znodes.get(path)?.text;
  }

  /** Writes several znodes in one transaction, so all have one zxid. */
  async put(texts: Readonly<Record<string, string>>): Promise<void> {
    this.write(texts);
    await atRest();
  }

  write(texts: Readonly<Record<string, string>>): void {
    this.#zxid += 1n;
    for (const [path, text] of Object.entries(texts)) {
      const old = this.#znodes.get(path);
      const version = old === undefined ? 0 : old.version + 1;
      this.#znodes.set(path, {
        ...{ text, version, mzxid: this.#zxid, czxid: old?.czxid ?? this.#zxid },
      });
    }
    this.#tell();
  }

  async remove(...paths: string[]): Promise<void> {
    this.#zxid += 1n;
    for (const path of paths) this.#znodes.delete(path);
    this.#tell();
    await atRest();
  }

  async become(state: State): Promise<void> {
    const previous = this.state;
    this.state = state;
    const change = { state, previous, atMs: 0, session: undefined, error: undefined };
    for (const listener of this.#states) listener(change);
    await atRest();
  }

  onState(listener: (change: StateChange) => void): () => void {
    this.#states.add(listener);
    return () => this.#states.delete(listener);
  }

  async *follow(
    path: string,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<GetReply | undefined> {
    this.following += 1;
    try {
      let last: bigint | null | undefined = null;
      while (!signal.aborted) {
        const refusal = this.instead.get(`follow ${path}`);
        if (refusal !== undefined) await refusal();
        const znode = this.#znodes.get(path);
        if (znode?.mzxid !== last) {
          last = znode?.mzxid;
          yield znode && replyOf(znode);
          continue;
        }
        await new Promise<void>((resolve) => {
          const wake = () => {
            this.#news.delete(wake);
            signal.removeEventListener('abort', wake);
            resolve();
          };
          this.#news.add(wake);
          signal.addEventListener('abort', wake);
        });
      }
    } finally {
      this.following -= 1;
    }
  }

  /** Makes all followers look again. */
  wake(): void {
    this.#tell();
  }

  confirm(checks: readonly Confirmed[], { signal }: { readonly signal: AbortSignal }) {
    const sentAt = { monotonicMs: this.#clock.monotonicMs(), wallMs: this.#clock.wallMs() };
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      signal.addEventListener('abort', onAbort);
      const forget = () => signal.removeEventListener('abort', onAbort);
      const confirmation: Confirmation = {
        checks,
        sentMs: sentAt.monotonicMs,
        answer: () => {
          const isWrong = checks.some(
            ({ path, version }) => this.#znodes.get(path)?.version !== version,
          );
          forget();
          if (isWrong) reject(new BadVersionError({ operation: 'confirm' } as never));
          else resolve({ zxid: this.#zxid, sentAt });
        },
        fail: (error) => {
          forget();
          reject(error);
        },
      };
      this.confirmations.push(confirmation);
      if (this.confirmsAtOnce) confirmation.answer();
    });
  }

  get lastConfirmation(): Confirmation {
    const last = this.confirmations.at(-1);
    if (last === undefined) throw new Error('nothing was to be confirmed');
    return last;
  }

  ensurePath(...args: unknown[]): Promise<unknown> {
    return this.#call('ensurePath', args, () => undefined);
  }

  create(path: string, text: string, options: { readonly sequential?: boolean } = {}) {
    return this.#call('create', [path, text, options], () => {
      if (this.#znodes.has(path)) throw new NodeExistsError({ operation: 'create' } as never);
      const made = options.sequential === true ? `${path}0000000001` : path;
      this.write({ [made]: text });
      return { path: made };
    });
  }

  set(path: string, text: string, options?: unknown) {
    return this.#call('set', [path, text, options], () => this.write({ [path]: text }));
  }

  get(path: string, options?: unknown) {
    return this.#call('get', [path, options], () => {
      const znode = this.#znodes.get(path);
      if (znode === undefined) throw new NoNodeError({ operation: 'get' } as never);
      return replyOf(znode);
    });
  }

  delete(path: string, options: { readonly version?: number } = {}) {
    return this.#call('delete', [path, options], () => {
      const znode = this.#znodes.get(path);
      if (znode === undefined) throw new NoNodeError({ operation: 'delete' } as never);
      if (options.version !== undefined && options.version !== znode.version) {
        throw new BadVersionError({ operation: 'delete' } as never);
      }
      this.#znodes.delete(path);
      this.#tell();
    });
  }

  /** Every child there belongs to a session. */
  getChildren(path: string) {
    return this.#call('getChildren', [path], () => {
      const below = [...this.#znodes.keys()].filter((each) => each.startsWith(`${path}/`));
      if (below.length === 0) throw new NoNodeError({ operation: 'getChildren' } as never);
      return { children: below.map((each) => each.slice(path.length + 1)) };
    });
  }

  async stat(): Promise<unknown> {
    return { stat: { ephemeralOwner: 1n } };
  }

  async close(): Promise<void> {
    this.closed += 1;
  }

  async #call(name: string, args: readonly unknown[], go: () => unknown): Promise<unknown> {
    this.calls.push({ name, args });
    const instead = this.instead.get(name);
    return instead === undefined ? go() : await instead(...(args as never[]));
  }

  #tell(): void {
    for (const wake of [...this.#news]) wake();
  }
}

function replyOf({ text, version, czxid, mzxid }: Znode): GetReply {
  return { text, stat: { version, czxid, mzxid } } as unknown as GetReply;
}
