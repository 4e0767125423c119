import { StoreUnavailableError } from '../../base/errors.ts';
import type { KubernetesApi, Lease, WatchEvent } from './client.ts';
import { asLease, asStatus } from './client.ts';
import type { Refusals } from './errors.ts';

/** Beyond so many elections one stream for the whole namespace is cheaper than one for each. */
const mostSingles = 8;
/** A stream that is not allowed is asked for again after so many reads. */
const readsBetweenRefusals = 50;

export interface WatchListener {
  /** What the Lease has become; undefined: deleted. */
  onLease(lease: Lease | undefined): void;
  /** It may have changed. */
  onUnknown(): void;
  onTrouble(error: unknown): void;
}

/** One watch request: of one Lease, or (`everyLease`) of all in the namespace. */
interface Stream {
  readonly abort: AbortController;
  isOpen: boolean;
  /** Something has come by it. */
  isProven: boolean;
}

const everyLease = '';

/**
 * Watches for all elections of a backend. A stream is opened when somebody listens, from the version
 * that was just read, so nothing is lost in between; and after it has ended, however that came about
 * (a restarted server, a version that is too old), by `ensure` at the next read or write. No timer, no list.
 */
export class LeaseWatches {
  readonly #api: KubernetesApi;
  readonly #path: string;
  readonly #refusals: Refusals;
  readonly #listeners = new Map<string, Set<WatchListener>>();
  readonly #streams = new Map<string, Stream>();
  /** How many more calls of `ensure` pass before a refused stream is asked for again. */
  readonly #refused = new Map<string, number>();
  /** Of which stream the listeners know that it does not work. */
  readonly #troubled = new Set<string>();

  constructor(api: KubernetesApi, namespace: string, refusals: Refusals) {
    this.#api = api;
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    this.#refusals = refusals;
  }

  /** @returns a function that ends it */
  add(name: string, listener: WatchListener): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(name) !== listeners) return;
      this.#listeners.delete(name);
      this.#end(name);
      if (this.#listeners.size === 0) this.#end(everyLease);
    };
  }

  /** True while changes of this Lease are told. */
  covers(name: string): boolean {
    return [name, everyLease].some((key) => {
      const stream = this.#streams.get(key);
      return stream?.isOpen === true && (stream.isProven || !this.#troubled.has(key));
    });
  }

  /** Called with the version that was read or written: opens a stream if somebody listens and there is none. */
  ensure(name: string, version: string | undefined): void {
    if (!this.#listeners.has(name)) return;
    if (this.#streams.has(everyLease)) return;
    const wantsAll = this.#listeners.size > mostSingles && this.#mayAsk(everyLease);
    const key = wantsAll ? everyLease : name;
    if (this.#streams.has(key)) return;
    if (!wantsAll && !this.#mayAsk(name)) return;
    const stream: Stream = { abort: new AbortController(), isOpen: false, isProven: false };
    this.#streams.set(key, stream);
    void this.#run(key, stream, name, version);
  }

  #mayAsk(key: string): boolean {
    const left = this.#refused.get(key) ?? 0;
    if (left === 0) return true;
    this.#refused.set(key, left - 1);
    return false;
  }

  async #run(
    key: string,
    stream: Stream,
    opener: string,
    version: string | undefined,
  ): Promise<void> {
    try {
      const refusal = await this.#api.watch({
        path: this.#watchPath(key, version),
        signal: stream.abort.signal,
        onOpen: () => this.#opened(key, stream, version === undefined ? undefined : opener),
        onEvent: (event) => this.#tell(key, stream, event),
      });
      if (refusal !== undefined) {
        if ([401, 403, 404, 405].includes(refusal.status)) {
          this.#refused.set(key, readsBetweenRefusals);
        }
        throw this.#refusals.error('watch', refusal);
      }
      this.#ended(key, stream);
    } catch (error) {
      this.#ended(key, stream, error);
    }
  }

  #watchPath(key: string, version: string | undefined): string {
    const query = new URLSearchParams({ watch: '1', allowWatchBookmarks: 'true' });
    if (key !== everyLease) query.set('fieldSelector', `metadata.name=${key}`);
    if (version !== undefined) query.set('resourceVersion', version);
    return `${this.#path}?${query}`;
  }

  /** @param current whose reading the stream follows upon */
  #opened(key: string, stream: Stream, current: string | undefined): void {
    if (stream.abort.signal.aborted) return;
    stream.isOpen = true;
    this.#refusals.allowed('watch');
    if (key === everyLease) {
      for (const single of this.#streams.keys()) if (single !== everyLease) this.#end(single);
    }
    // What happened since the others read was told to nobody. A stream that only ever opens must not
    // set everybody reading for ever.
    if (!this.#troubled.has(key)) this.#raise(key, current);
  }

  #tell(key: string, stream: Stream, { type, object }: WatchEvent): void {
    if (stream.abort.signal.aborted) return;
    if (type === 'ERROR') {
      const status = asStatus(object);
      const why = `watching Leases: ${status?.message ?? 'the server gave up'}`;
      // A version that was too old is no trouble: the next read has a newer one.
      this.#ended(key, stream, status?.code === 410 ? undefined : new StoreUnavailableError(why));
      return;
    }
    if (!stream.isProven) {
      stream.isProven = true;
      if (this.#troubled.delete(key)) this.#raise(key, undefined);
    }
    if (type === 'BOOKMARK') return;
    const lease = asLease(object);
    const name = lease?.metadata.name;
    if (lease === undefined || name === undefined) return;
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      listener.onLease(type === 'DELETED' ? undefined : lease);
    }
  }

  /**
   * However a stream ended. Whoever relied on it looks for itself, and opens another one by that; but
   * not again and again where streams only ever open.
   */
  #ended(key: string, stream: Stream, error?: unknown): void {
    if (this.#streams.get(key) !== stream) return;
    this.#end(key);
    const isNews = stream.isProven || !this.#troubled.has(key);
    if (error !== undefined || !stream.isProven) this.#troubled.add(key);
    if (!isNews) return;
    if (error !== undefined) this.#complain(key, error);
    if (stream.isOpen) this.#raise(key, undefined);
  }

  #end(key: string): void {
    const stream = this.#streams.get(key);
    if (stream === undefined) return;
    this.#streams.delete(key);
    stream.abort.abort();
  }

  /** To one of those who listen. */
  #complain(key: string, error: unknown): void {
    const names = key === everyLease ? [...this.#listeners.keys()] : [key];
    for (const name of names) {
      const [listener] = this.#listeners.get(name) ?? [];
      if (listener === undefined) continue;
      listener.onTrouble(error);
      return;
    }
  }

  #raise(key: string, except: string | undefined): void {
    const names = key === everyLease ? [...this.#listeners.keys()] : [key];
    for (const name of names) {
      if (name === except) continue;
      for (const listener of [...(this.#listeners.get(name) ?? [])]) listener.onUnknown();
    }
  }
}
