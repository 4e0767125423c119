/** The elections of all stores, as the page has heard of them. */
import type { ReadonlySignal, Signal } from '@preact/signals';
import { computed, signal } from '@preact/signals';
import type { ShownElection, ShownPage, ShownStore } from '../../src/dashboard/shown.ts';
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

/** One of eight colours, the same wherever that candidate is shown. */
export function colourOf(id: string): number {
  let hash = 0;
  for (const character of id) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) | 0;
  return Math.abs(hash) % 8;
}

export function hrefOf({ store, election }: Pick<ShownElection, 'store' | 'election'>): string {
  return `#/${store}/${encodeURIComponent(election)}`;
}

/** The election that the address names; undefined: the overview. */
export const chosen: Signal<{ readonly store: number; readonly election: string } | undefined> =
  signal(readPlace());
addEventListener('hashchange', () => {
  chosen.value = readPlace();
});

function readPlace(): { readonly store: number; readonly election: string } | undefined {
  const match = /^#\/(\d+)\/(.+)$/.exec(location.hash);
  if (match === null) return undefined;
  try {
    return { store: Number(match[1]), election: decodeURIComponent(match[2] ?? '') };
  } catch {
    // Somebody has written the address by hand.
    return undefined;
  }
}
