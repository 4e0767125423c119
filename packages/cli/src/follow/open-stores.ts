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
    refuseTwice(store.url, stores);
    stores.push(store);
  }
  return stores;
}

/** @throws UsageError for a store that is among those before it */
export function refuseTwice(url: string, before: readonly { readonly url: string }[]): void {
  if (before.some((other) => other.url === url)) {
    throw new UsageError(`--store ${url} is given twice`);
  }
}
