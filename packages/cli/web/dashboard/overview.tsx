import { computed, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ShownElection } from '../../src/dashboard/shown.ts';
import { span } from '../shared/words.ts';
import { byName, elections, hrefOf, nowUnixMs, stateOf, stores } from './model.ts';
import { TermLine } from './term-line.tsx';

const windows = [
  { words: '10 min', ms: 600_000 },
  { words: '1 h', ms: 3_600_000 },
  { words: '24 h', ms: 86_400_000 },
  { words: '7 d', ms: 604_800_000 },
  { words: '90 d', ms: 7_776_000_000 },
];
export const windowMs = signal(3_600_000);

export function windowWords(): string {
  return windows.find(({ ms }) => ms === windowMs.value)?.words ?? '';
}

type Key = 'election' | 'state' | 'leader' | 'since' | 'waiting';
const sortedBy = signal<{ readonly key: Key; readonly isDown: boolean }>({
  key: 'election',
  isDown: false,
});
const text = signal('');
const only = signal<'all' | 'led' | 'vacant' | 'other'>('all');

const comparisons: Readonly<Record<Key, (a: ShownElection, b: ShownElection) => number>> = {
  election: () => 0,
  state: (a, b) => urgency(a) - urgency(b),
  leader: (a, b) => byName.compare(a.leader?.id ?? '', b.leader?.id ?? ''),
  since: (a, b) => (b.sinceUnixMs ?? 0) - (a.sinceUnixMs ?? 0),
  waiting: (a, b) => (a.waiting?.length ?? -1) - (b.waiting?.length ?? -1),
};

/** The least first. */
function urgency(shown: ShownElection): number {
  return ['unknown', 'vacant', 'led', 'ended'].indexOf(shown.state);
}

const rows = computed(() => {
  const wanted = text.value.trim().toLowerCase();
  const { key, isDown } = sortedBy.value;
  const compare = comparisons[key];
  const found = elections.value.filter(
    (shown) =>
      (only.value === 'all' || groupOf(shown) === only.value) &&
      (wanted === '' ||
        shown.election.toLowerCase().includes(wanted) ||
        (shown.leader?.id.toLowerCase().includes(wanted) ?? false)),
  );
  found.sort(
    (a, b) => compare(a, b) || byName.compare(a.election, b.election) || a.store - b.store,
  );
  return isDown ? found.reverse() : found;
});

function groupOf({ state }: ShownElection): 'led' | 'vacant' | 'other' {
  return state === 'led' || state === 'vacant' ? state : 'other';
}

const counts = computed(() => {
  const found = { all: elections.value.length, led: 0, vacant: 0, other: 0 };
  for (const shown of elections.value) found[groupOf(shown)] += 1;
  return found;
});

/** Only the rows that are seen are drawn: a page of a thousand elections scrolls as one of ten. */
const rowHeight = signal(44);
const scrolled = signal(0);
const height = signal(800);
const more = 6;

function Rows() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = () => {
      height.value = element.clientHeight;
      rowHeight.value = matchMedia('(max-width: 46rem)').matches ? 92 : 44;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    // Where the reader was, after a look at one election.
    element.scrollTop = scrolled.peek();
    return () => observer.disconnect();
  }, []);
  const all = rows.value;
  const first = Math.max(0, Math.floor(scrolled.value / rowHeight.value) - more);
  const count = Math.ceil(height.value / rowHeight.value) + 2 * more;
  const seen = all.slice(first, first + count);
  return (
    <div
      class="rows"
      ref={box}
      role="rowgroup"
      // The arrow keys scroll it.
      tabIndex={0}
      onScroll={({ currentTarget }) => {
        scrolled.value = currentTarget.scrollTop;
      }}
    >
      <Spacer px={first * rowHeight.value} />
      {seen.map((shown, at) => (
        <Row key={`${shown.store} ${shown.election}`} shown={shown} index={first + at + 2} />
      ))}
      <Spacer px={Math.max(0, all.length - first - seen.length) * rowHeight.value} />
    </div>
  );
}

/** The policy of the page lets no style stand in HTML, but scripts may set it. */
function Spacer({ px }: { readonly px: number }) {
  return (
    <div
      aria-hidden="true"
      ref={(element) => {
        if (element !== null) element.style.height = `${px}px`;
      }}
    />
  );
}

const schemeOf = (store: number) => stores.value[store]?.url.split(':', 1)[0];

function Row({ shown, index }: { readonly shown: ShownElection; readonly index: number }) {
  const { tone, words } = stateOf(shown);
  const { leader, sinceUnixMs, waiting, election, store } = shown;
  const now = nowUnixMs.value;
  return (
    <div
      class="row"
      role="row"
      aria-rowindex={index}
      data-election={election}
      data-state={shown.state}
    >
      <Cell name="election">
        <a href={hrefOf(shown)}>{election}</a>
        {stores.value.length > 1 && <small class="quiet"> {schemeOf(store)}</small>}
      </Cell>
      <Cell name="state">
        <span class={`tone ${tone}`}>{words}</span>
      </Cell>
      <Cell name="leader">{leader?.id ?? <span class="quiet">{shown.why ?? ''}</span>}</Cell>
      <Cell name="since">{sinceUnixMs === null ? '' : span(now - sinceUnixMs)}</Cell>
      <Cell name="waiting">{waiting === null ? '?' : waiting.length}</Cell>
      <Cell name="line">
        <TermLine shown={shown} nowUnixMs={now} windowMs={windowMs.value} />
      </Cell>
    </div>
  );
}

function Cell({
  name,
  children,
}: {
  readonly name: string;
  readonly children: preact.ComponentChildren;
}) {
  return (
    <div class={`cell ${name}`} role="cell">
      {children}
    </div>
  );
}

function Heading({ by, children }: { readonly by: Key; readonly children: string }) {
  const { key, isDown } = sortedBy.value;
  const isSorted = key === by;
  return (
    <div
      class={`cell ${by}`}
      role="columnheader"
      aria-sort={isSorted ? (isDown ? 'descending' : 'ascending') : 'none'}
    >
      <button
        type="button"
        class="sort"
        onClick={() => {
          sortedBy.value = { key: by, isDown: isSorted && !isDown };
        }}
      >
        {children}
        <span aria-hidden="true">{isSorted ? (isDown ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </div>
  );
}

function Filters() {
  const found = counts.value;
  const groups = [
    ['all', 'all'],
    ['led', 'led'],
    ['vacant', 'no leader'],
    ['other', 'other'],
  ] as const;
  return (
    <search class="filters">
      <label>
        Filter{' '}
        <input
          type="search"
          placeholder="name or leader"
          value={text.value}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
          }}
        />
      </label>
      <fieldset>
        <legend class="hidden">Which elections</legend>
        {groups.map(([group, words]) => (
          <button
            key={group}
            type="button"
            aria-pressed={only.value === group}
            class={group === 'vacant' && found.vacant > 0 ? 'chip bad' : 'chip'}
            onClick={() => {
              only.value = group;
            }}
          >
            {words} <strong>{found[group]}</strong>
          </button>
        ))}
      </fieldset>
      <WindowChoice />
    </search>
  );
}

export function WindowChoice() {
  return (
    <fieldset>
      <legend class="hidden">How far back the lines go</legend>
      {windows.map(({ words, ms }) => (
        <button
          key={ms}
          type="button"
          class="chip"
          aria-pressed={windowMs.value === ms}
          onClick={() => {
            windowMs.value = ms;
          }}
        >
          {words}
        </button>
      ))}
    </fieldset>
  );
}

export function Overview() {
  const all = rows.value;
  return (
    <section class="overview" aria-label="Elections">
      <Filters />
      <div class="table" role="table" aria-label="Elections" aria-rowcount={all.length + 1}>
        <div class="heads" role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1}>
            <Heading by="election">Election</Heading>
            <Heading by="state">State</Heading>
            <Heading by="leader">Leader</Heading>
            <Heading by="since">For</Heading>
            <Heading by="waiting">Waiting</Heading>
            <div class="cell line" role="columnheader">
              Terms
            </div>
          </div>
        </div>
        {all.length === 0 ? <Nothing /> : <Rows />}
      </div>
    </section>
  );
}

function Nothing() {
  const isFiltered = elections.value.length > 0;
  return (
    <div role="rowgroup">
      <div role="row">
        <div role="cell" class="nothing quiet">
          {isFiltered ? 'No election is such.' : 'These stores hold no election yet.'}
        </div>
      </div>
    </div>
  );
}
