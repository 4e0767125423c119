import { StoreUnavailableError } from '../../base/errors.ts';
import type { KubernetesApi, Lease, WatchEvent } from './client.ts';
import { asLease, asStatus } from './client.ts';
import type { Refusals } from './errors.ts';

/** With more elections, one stream for the whole namespace is cheaper than one for each. */
const mostSingles = 8;
/** After so many reads, a stream that is not allowed is asked for again. */
const readsBetweenRefusals = 50;

export interface WatchListener {
  /** The Lease as it is now. Undefined: deleted. */
  onLease(lease: Lease | undefined): void;
  /** The Lease may have changed. */
  onUnknown(): void;
  onTrouble(error: unknown): void;
}

/** One watch request: of one Lease, or (`everyLease`) of all in the namespace. */
interface Stream {
  readonly abort: AbortController;
  isOpen: boolean;
  /** Something has come by the stream. */
  isProven: boolean;
}

const everyLease = '';

/**
 * Watches for all elections of a backend. A stream is opened for the first listener, from the
 * version that was just read, so nothing is lost in between. It may end for any reason, such as a
 * restarted server or a version that is too old. Then `ensure` opens it at the next read or write.
 * There is no timer, and no list request.
 */
export class LeaseWatches {
  readonly #api: KubernetesApi;
  readonly #path: string;
  readonly #refusals: Refusals;
  readonly #listeners = new Map<string, Set<WatchListener>>();
  readonly #streams = new Map<string, Stream>();
  /** How many more calls of `ensure` pass before a refused stream is asked for again. */
  readonly #refused = new Map<string, number>();
  /** Streams of which the listeners know that they do not work. */
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

  /** True while changes of this Lease are reported. */
  covers(name: string): boolean {
    return [name, everyLease].some((key) => {
      const stream = this.#streams.get(key);
      return stream?.isOpen === true && (stream.isProven || !this.#troubled.has(key));
    });
  }

  /**
   * Called with the version that was read or written. Opens a stream if there is a listener and
   * no stream yet.
   */
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

  /** @param current the election whose reading the stream follows upon */
  #opened(key: string, stream: Stream, current: string | undefined): void {
    if (stream.abort.signal.aborted) return;
    stream.isOpen = true;
    this.#refusals.allowed('watch');
    if (key === everyLease) {
      for (const single of this.#streams.keys()) if (single !== everyLease) this.#end(single);
    }
    // Changes since the other elections read were not reported. But a stream that only ever opens
    // must not make all of them read for ever.
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
   * A stream has ended, for whatever reason. Candidates that relied on it look for themselves, and
   * that opens another one. But they do not do so again and again where streams only ever open.
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

  /** Reports to one of the listeners. */
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
