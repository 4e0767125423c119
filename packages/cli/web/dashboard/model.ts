/** The elections and shards of all stores, as the page has heard of them. */
import type { ReadonlySignal, Signal } from '@preact/signals';
import { computed, signal } from '@preact/signals';
import type {
  ShownElection,
  ShownPage,
  ShownShards,
  ShownStore,
} from '../../src/dashboard/shown.ts';
import { live, names } from '../shared/live.ts';

export const page: Signal<ShownPage | undefined> = live<ShownPage>('page');

export const stores: ReadonlySignal<readonly ShownStore[]> = computed(() =>
  names.value
    .filter((name) => name.startsWith('store:'))
    .flatMap((name) => live<ShownStore>(name).value ?? []),
);

export const elections: ReadonlySignal<readonly ShownElection[]> = computed(() =>
  names.value
    .filter((name) => name.startsWith('election:'))
    .flatMap((name) => live<ShownElection>(name).value ?? []),
);

export const shardSets: ReadonlySignal<readonly ShownShards[]> = computed(() =>
  names.value
    .filter((name) => name.startsWith('shards:'))
    .flatMap((name) => live<ShownShards>(name).value ?? []),
);

/** Our clock may be another one than that of the command. */
const aheadMs = signal(0);
let told = 0;
computed(() => stores.value.map(({ nowUnixMs }) => nowUnixMs)).subscribe((times) => {
  const newest = Math.max(0, ...times);
  if (newest <= told) return;
  told = newest;
  aheadMs.value = Date.now() - newest;
});

/** Now, by the clock of the command; a new value each second. */
export const nowUnixMs: Signal<number> = signal(Date.now());
setInterval(() => {
  nowUnixMs.value = Date.now() - aheadMs.peek();
}, 1_000);

export type Tone = 'good' | 'warn' | 'bad' | 'quiet';

export function stateOf({ state, ready }: ShownElection): {
  readonly tone: Tone;
  readonly words: string;
} {
  switch (state) {
    case 'led':
      return ready ? { tone: 'good', words: 'led' } : { tone: 'warn', words: 'led, not ready' };
    case 'vacant':
      return { tone: 'bad', words: 'no leader' };
    case 'unknown':
      return { tone: 'bad', words: 'unknown' };
    case 'ended':
      return { tone: 'quiet', words: 'ended' };
    default:
      return state satisfies never;
  }
}

/** `orders-2` before `orders-10`. */
export const byName: Intl.Collator = new Intl.Collator('en', { numeric: true });

/** One of eight colours, the same wherever that candidate is shown. */
export function colourOf(id: string): number {
  let hash = 0;
  for (const character of id) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) | 0;
  return Math.abs(hash) % 8;
}

export function hrefOf({ store, election }: Pick<ShownElection, 'store' | 'election'>): string {
  return `#/${store}/${encodeURIComponent(election)}`;
}

export function hrefOfShards({ store, name }: Pick<ShownShards, 'store' | 'name'>): string {
  return `#/shards/${store}/${encodeURIComponent(name)}`;
}

export type Place =
  | { readonly page: 'elections' }
  | { readonly page: 'election'; readonly store: number; readonly election: string }
  | { readonly page: 'shards' }
  | { readonly page: 'set'; readonly store: number; readonly name: string };

/** The place that the address names. */
export const place: Signal<Place> = signal(readPlace());
addEventListener('hashchange', () => {
  place.value = readPlace();
});

function readPlace(): Place {
  const { hash } = location;
  if (hash === '#/shards') return { page: 'shards' };
  const [, kind, store, encoded] = /^#\/(shards\/)?(\d+)\/(.+)$/.exec(hash) ?? [];
  if (encoded === undefined) return { page: 'elections' };
  try {
    const name = decodeURIComponent(encoded);
    if (kind !== undefined) return { page: 'set', store: Number(store), name };
    return { page: 'election', store: Number(store), election: name };
  } catch {
    // Somebody has written the address by hand.
    return { page: 'elections' };
  }
}
