import type { Context, OpenStore } from '../context.ts';
import { UsageError } from '../failure.ts';

/**
 * Opens the stores of a command that only reads, one after the other.
 * @param urls undefined or empty: the store that commands use without `--store`
 */
export async function openStores(
  urls: readonly string[] | undefined,
  timeoutMs: number,
  { openStore, signal }: Pick<Context, 'openStore' | 'signal'>,
): Promise<readonly OpenStore[]> {
  const given = urls === undefined || urls.length === 0 ? [undefined] : urls;
  const stores: OpenStore[] = [];
  for (const url of given) {
    const needs = { timeoutMs, timeoutName: '--timeout', signal, asksOnly: true } as const;
    const store = await openStore(url, needs);
    if (stores.some((other) => other.url === store.url)) {
      throw new UsageError(`--store ${store.url} is given twice`);
    }
    stores.push(store);
  }
  return stores;
}
