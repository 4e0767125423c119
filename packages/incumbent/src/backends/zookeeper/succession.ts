import { StoreUnavailableError } from '../../base/errors.ts';
import type {
  Amendment,
  CommitResult,
  Entry,
  NextPlace,
  Place,
  Succession,
  Version,
  Watched,
} from '../../mechanisms/queue/store.ts';
import { encodeQueueRecord } from '../../record/queue-record.ts';
import type { NodeContent, ZooKeeperClient } from './client.ts';
import { codeOf, refusalOf } from './client.ts';
import { storeError } from './errors.ts';
import type { QueueLayout } from './layout.ts';
import { markIn } from './layout.ts';

const text = new TextDecoder();

export interface SuccessionSettings {
  readonly layout: QueueLayout;
  /** The election's node. */
  readonly path: string;
}

/** Which operation of `handOver` a refusal is about. */
const indexOf = { record: 0, place: 1, next: 2 } as const;

/** The hand-over to a named successor, in the layout `incumbent`. */
export class ZooKeeperSuccession implements Succession {
  readonly #client: ZooKeeperClient;
  readonly #onGone: (place: Place) => void;
  readonly #layout: QueueLayout;
  readonly #path: string;

  /** @param onGone told of our own places that were deleted here */
  constructor(
    client: ZooKeeperClient,
    { layout, path }: SuccessionSettings,
    onGone: (place: Place) => void,
  ) {
    this.#client = client;
    this.#onGone = onGone;
    this.#layout = layout;
    this.#path = path;
  }

  async watchNext(name: string, signal: AbortSignal): Promise<Watched<NextPlace | undefined>> {
    const { value, changed, cancel } = await this.#attempt(() =>
      this.#client.watch(name, { signal }),
    );
    return { value: value && nextFrom(name, value, this.#layout), changed, cancel };
  }

  async handOver(
    place: Place,
    next: NextPlace,
    { record, version }: Pick<Amendment, 'record' | 'version'>,
    signal: AbortSignal,
  ): Promise<CommitResult | { readonly outcome: 'unfit' }> {
    if (typeof version !== 'number') return { outcome: 'conflict' };
    // The record comes first. The next in line wakes up by the deletion, and reads what stands before it.
    const transaction = this.#client
      .transaction()
      .set(this.#path, encodeQueueRecord(record), version)
      .delete(place.name)
      .check(next.name, next.version);
    try {
      const { results } = await transaction.commit({ signal });
      this.#onGone(place);
      return { outcome: 'ok', version: results[indexOf.record]?.stat?.version };
    } catch (error) {
      const index = refusalOf(error)?.index;
      if (index === indexOf.record) return { outcome: 'conflict' };
      if (index === indexOf.place) {
        this.#onGone(place);
        return { outcome: 'gone' };
      }
      if (index === indexOf.next) return { outcome: 'unfit' };
      throw storeError(error, this.#path);
    }
  }

  async mark(
    place: Place,
    { candidate, mark }: Parameters<Succession['mark']>[1],
    isOurs: (nonce: string) => boolean,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      const { data, stat } = await this.#client.get(place.name, { signal });
      const found = markIn(data === null ? '' : text.decode(data));
      if (stat.czxid !== place.token || (found !== undefined && !isOurs(found.nonce))) return false;
      const next = this.#layout.dataOf(candidate, mark);
      await this.#client.set(place.name, next, { version: stat.version, signal });
      return true;
    } catch (error) {
      const code = codeOf(error);
      if (code === 'NO_NODE') return false;
      if (code === 'BAD_VERSION')
        throw new StoreUnavailableError('the place was written meanwhile');
      throw storeError(error, place.name);
    }
  }

  async withdraw(place: Place, version: Version, signal: AbortSignal): Promise<CommitResult> {
    if (typeof version !== 'number') return { outcome: 'gone' };
    try {
      await this.#client
        .transaction()
        .check(this.#path, version)
        .delete(place.name)
        .commit({ signal });
      this.#onGone(place);
      return { outcome: 'ok', version };
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal?.code === 'BAD_VERSION') return { outcome: 'conflict' };
      if (refusal?.code !== 'NO_NODE') throw storeError(error, place.name);
      this.#onGone(place);
      return { outcome: 'gone' };
    }
  }

  async touch({ name }: Place, { candidate }: Entry, signal: AbortSignal): Promise<void> {
    await this.#attempt(() => this.#client.set(name, this.#layout.dataOf(candidate), { signal }));
  }

  async #attempt<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      throw storeError(error, this.#path);
    }
  }
}

function nextFrom(name: string, { data, stat }: NodeContent, layout: QueueLayout): NextPlace {
  const said = data === null ? '' : text.decode(data);
  const { candidate } = layout.memberFrom(name.slice(name.lastIndexOf('/') + 1), said);
  // A node that belongs to no session would stay when its candidate has died.
  const mark = stat.ephemeralOwner === 0n ? undefined : markIn(said);
  return { name, token: stat.czxid, candidate, mark, version: stat.version };
}
