/** `incumbent dashboard`: every election of one or several stores, and their shards, live. */
import { computed, effect, signal } from '@preact/signals';
import { render } from 'preact';
import { connect, connection } from '../shared/live.ts';
import { clockTime, grouped } from '../shared/words.ts';
import { ElectionPage } from './election.tsx';
import type { Place as PlaceShown } from './model.ts';
import { elections, place, shardSets, stateOf, stores } from './model.ts';
import { Overview } from './overview.tsx';
import { ShardSetPage } from './shard-set.tsx';
import { ShardsPage, wordsOf } from './shards.tsx';

function Banners() {
  const { value } = connection;
  return (
    <>
      {value.state === 'lost' && (
        <p class="banner" role="alert">
          The dashboard cannot be reached. All of this is as it was at{' '}
          {value.since.toLocaleTimeString()}.
        </p>
      )}
      {stores.value
        .filter(({ error }) => error !== null)
        .map(({ index, url, error, seenUnixMs }) => (
          <p key={index} class="banner" role="alert">
            {url}: {error}.{' '}
            {seenUnixMs === null
              ? 'It has not been read yet.'
              : `Its elections are as they were at ${clockTime(seenUnixMs)}.`}
          </p>
        ))}
    </>
  );
}

/** For screen readers: elections that have lost or found a leader, a few words at a time. */
const said = signal('');
const states = computed(
  () => new Map(elections.value.map((shown) => [`${shown.store} ${shown.election}`, shown])),
);
let before = states.peek();
effect(() => {
  const now = states.value;
  const changed = [...now].filter(([key, shown]) => {
    const old = before.get(key);
    return old !== undefined && stateOf(old).words !== stateOf(shown).words;
  });
  before = now;
  if (changed.length === 0) return;
  said.value =
    changed.length > 3
      ? `${changed.length} elections have changed`
      : changed.map(([, shown]) => `${shown.election}: ${stateOf(shown).words}`).join(', ');
});

/** The same for sets of shards. */
const sets = computed(
  () => new Map(shardSets.value.map((shown) => [`${shown.store} ${shown.name}`, wordsOf(shown)])),
);
let setsBefore = sets.peek();
effect(() => {
  const now = sets.value;
  const changed = [...now].filter(([key, words]) => {
    const old = setsBefore.get(key);
    return old !== undefined && old !== words;
  });
  setsBefore = now;
  if (changed.length > 0) said.value = changed.map(([, words]) => words).join(', ');
});

function Navigation({ page }: { readonly page: PlaceShown['page'] }) {
  const all = shardSets.value;
  const isOfShards = page === 'shards' || page === 'set';
  if (all.length === 0 && !isOfShards) return null;
  const lacks = all.reduce((sum, { unowned }) => sum + unowned, 0);
  return (
    <nav aria-label="Pages">
      <a href="#/" {...(!isOfShards && { 'aria-current': 'page' })}>
        Elections <strong>{elections.value.length}</strong>
      </a>
      <a href="#/shards" {...(isOfShards && { 'aria-current': 'page' })}>
        Shards <strong>{all.length}</strong>
        {lacks > 0 && <span class="tone bad"> {grouped(lacks)} without an owner</span>}
      </a>
    </nav>
  );
}

function Place() {
  const { value } = place;
  switch (value.page) {
    case 'elections':
      return (
        <>
          <h1 class="hidden">Elections</h1>
          <Overview />
        </>
      );
    case 'election':
      return <ElectionPage key={`${value.store} ${value.election}`} {...value} />;
    case 'shards':
      return <ShardsPage />;
    case 'set':
      return <ShardSetPage key={`${value.store} ${value.name}`} {...value} />;
    default:
      return value satisfies never;
  }
}

function Page() {
  return (
    <main>
      <header>
        <p class="title">
          <strong>incumbent</strong>{' '}
          <span class="quiet">
            {stores.value.map(({ url }) => url).join(', ') || 'connecting…'}
          </span>
        </p>
        <Navigation page={place.value.page} />
      </header>
      <Banners />
      <p class="hidden" aria-live="polite">
        {said.value}
      </p>
      <Place />
    </main>
  );
}

const root = document.getElementById('page');
if (root !== null) {
  root.textContent = '';
  render(<Page />, root);
}
connect();
