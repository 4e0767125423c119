/** `incumbent demo --web`: five candidates, one seat, and buttons that do to them what production does. */
import { signal } from '@preact/signals';
import { render } from 'preact';
import type { Act, Snapshot } from '../../src/demo/snapshot.ts';
import { connect, connection, live } from '../shared/live.ts';
import { act, maySteer } from '../shared/steer.ts';
import { LogTape } from './log-tape.tsx';
import { Timeline } from './timeline.tsx';

type Lane = Snapshot['lanes'][number];

const stage = live<Snapshot>('stage');
const refusal = signal('');

const conditionWords: Readonly<Record<Lane['condition'], string>> = {
  starts: 'starts',
  waits: 'waits',
  frozen: 'frozen',
  gone: 'gone',
};

function stateOf({ condition, leads }: Lane): { readonly tone: string; readonly words: string } {
  if (condition === 'gone' || condition === 'frozen') {
    return { tone: condition, words: conditionWords[condition] };
  }
  return leads
    ? { tone: 'leads', words: 'leads' }
    : { tone: condition, words: conditionWords[condition] };
}

interface Button {
  readonly act: Act;
  readonly word: string;
  readonly about: string;
}

const kill: Button = {
  act: 'kill',
  word: 'Kill',
  about: 'SIGKILL to its supervisor, which can say nothing any more',
};
const start: Button = { act: 'start', word: 'Start', about: 'again, under the same name' };
const freeze: Button = {
  act: 'freeze',
  word: 'Freeze',
  about: 'SIGSTOP: it stands still, and believes what it believed',
};
const thaw: Button = {
  act: 'thaw',
  word: 'Thaw',
  about: 'SIGCONT: it goes on as if no time had passed',
};
const resign: Button = {
  act: 'resign',
  word: 'Resign',
  about: 'asks the leader to give the seat up, in order',
};

/** Three places: a button does not move when another one takes the place beside it. */
function buttonsOf({ condition, leads }: Lane): readonly (Button & { readonly isOn: boolean })[] {
  const isGone = condition === 'gone';
  return [
    { ...(isGone ? start : kill), isOn: true },
    { ...(condition === 'frozen' ? thaw : freeze), isOn: !isGone },
    { ...resign, isOn: leads && condition === 'waits' },
  ];
}

function Controls({ lane }: { readonly lane: Lane }) {
  return (
    <fieldset class="controls">
      <legend class="hidden">{lane.id}: what to do to it</legend>
      {buttonsOf(lane).map(({ act: name, word, about, isOn }, place) => (
        <button
          key={place}
          type="button"
          class={name}
          title={about}
          aria-label={`${word} ${lane.id}: ${about}`}
          disabled={!maySteer || !isOn}
          onClick={() => {
            refusal.value = '';
            act({ act: name, candidate: lane.id }).catch((error: Error) => {
              refusal.value = error.message;
            });
          }}
        >
          {word}
        </button>
      ))}
    </fieldset>
  );
}

function Candidate({ lane, at }: { readonly lane: Lane; readonly at: Snapshot }) {
  const { tone, words } = stateOf(lane);
  return (
    <li class={`candidate ${tone}`} data-candidate={lane.id} data-state={tone}>
      <h2>
        <span class="dot" aria-hidden="true" /> {lane.id}
      </h2>
      <span class={`state ${tone}`}>{words}</span>
      <Timeline lane={lane} nowMs={at.nowMs} windowMs={at.windowMs} />
      <Controls lane={lane} />
    </li>
  );
}

function Verdict({ at }: { readonly at: Snapshot }) {
  const isGood = at.overlaps === 0 && at.violations.length === 0;
  return (
    <section
      class={`verdict ${isGood ? 'good' : 'bad'}`}
      aria-label="The verdict of the fenced log"
    >
      <p class="number" data-overlaps={at.overlaps}>
        <strong>{at.overlaps}</strong> moments with two leaders
      </p>
      <p class="number">
        <strong>{at.terms}</strong> terms
      </p>
      <p class="number">
        <strong>{at.effects.toLocaleString('en')}</strong> effects in the log
      </p>
      {at.violations.length > 0 && (
        <ul class="violations">
          {at.violations.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Notes({ at }: { readonly at: Snapshot }) {
  return (
    <section class="notes" aria-labelledby="notes-title">
      <h2 id="notes-title">What happened</h2>
      <ol reversed aria-live="polite" aria-relevant="additions">
        {[...at.notes].reverse().map((note) => (
          <li key={`${note.atMs} ${note.what}`} class={note.mark ?? ''}>
            <time>{(note.atMs / 1000).toFixed(1)} s</time>
            <span>
              {note.what}
              {note.outcome !== undefined && <em> → {note.outcome}</em>}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Banner() {
  const { value } = connection;
  if (value.state !== 'lost') return null;
  return (
    <p class="banner" role="alert">
      The demo has ended, or cannot be reached. This was its state at{' '}
      {value.since.toLocaleTimeString()}.
    </p>
  );
}

function Page() {
  const at = stage.value;
  if (at === undefined) return <p class="quiet">connecting…</p>;
  return (
    <main>
      <header>
        <h1>incumbent demo</h1>
        <p class="quiet">
          Five processes of this machine want one seat, with a lease of 3 s. Only the program of the
          leader runs. Each thing that it does is a line in one log.
        </p>
      </header>
      <Banner />
      <Verdict at={at} />
      {!maySteer && (
        <p class="banner" role="note">
          This page only shows. Open the address that the command has printed, with all behind its
          #, to press the buttons.
        </p>
      )}
      <p class="refusal" role="status">
        {refusal.value}
      </p>
      <ul class="candidates" aria-label="Candidates">
        {at.lanes.map((lane) => (
          <Candidate key={lane.id} lane={lane} at={at} />
        ))}
      </ul>
      <div class="below">
        <LogTape at={at} />
        <Notes at={at} />
      </div>
    </main>
  );
}

const root = document.getElementById('page');
if (root !== null) {
  root.textContent = '';
  render(<Page />, root);
}
connect();
