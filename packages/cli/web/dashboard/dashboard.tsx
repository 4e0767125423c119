/** `incumbent dashboard`: every election of one or several stores, live. */
import { computed, effect, signal } from '@preact/signals';
import { render } from 'preact';
import { connect, connection } from '../shared/live.ts';
import { clockTime } from '../shared/words.ts';
import { ElectionPage } from './election.tsx';
import { chosen, elections, stateOf, stores } from './model.ts';
import { Overview } from './overview.tsx';

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

function Page() {
  const place = chosen.value;
  return (
    <main>
      <header>
        <p class="title">
          <strong>incumbent</strong>{' '}
          <span class="quiet">
            {stores.value.map(({ url }) => url).join(', ') || 'connecting…'}
          </span>
        </p>
      </header>
      <Banners />
      <p class="hidden" aria-live="polite">
        {said.value}
      </p>
      {place === undefined ? (
        <>
          <h1 class="hidden">Elections</h1>
          <Overview />
        </>
      ) : (
        <ElectionPage key={`${place.store} ${place.election}`} {...place} />
      )}
    </main>
  );
}

const root = document.getElementById('page');
if (root !== null) {
  root.textContent = '';
  render(<Page />, root);
}
connect();
