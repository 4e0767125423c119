// The rules in the life of a term, one by one. `npm run explore` walks all of it.
import { describe, expect, it } from 'vitest';
import type { TermAt, TermEffect, TermEvent } from '../src/core/term-machine.ts';
import {
  endOf,
  firstTermAt,
  hasSettled,
  isKept,
  nextTermAt,
  shownAt,
} from '../src/core/term-machine.ts';

/** Plays events from the win on. */
function played(...events: readonly TermEvent[]): { state: TermAt; did: string[] } {
  let state = firstTermAt;
  const effects: TermEffect[] = [];
  for (const event of events) {
    const step = nextTermAt(state, event);
    state = step.next;
    effects.push(...step.effects);
  }
  const did = effects.map((effect) => (effect.do === 'show' ? `show ${effect.state}` : effect.do));
  return { state, did };
}

const asked: TermEvent = { on: 'asked-to-stop', end: { reason: 'resigned' } };
const announced: TermEvent = { on: 'announced' };
const settled: TermEvent = { on: 'settled' };
const through: TermEvent = { on: 'through' };
const beliefOver: TermEvent = { on: 'belief-over' };
const superseded: TermEvent = { on: 'lost', reason: 'superseded' };

describe('an end that is asked for', () => {
  it('is told first; the seat is given back when the work has settled and nothing is on its way', () => {
    const { state, did } = played(announced, asked, settled, through);
    expect(did).toEqual([
      ...['show stopping', 'stop-work', 'wait-for-work', 'stop-keeping'],
      ...['end-belief', 'show ended', 'release'],
    ]);
    expect(state.at).toBe('releasing');
  });

  it('leaves the term confirmed while the work goes on', () => {
    expect(isKept(played(announced, asked).state)).toBe(true);
    expect(isKept(played(announced, asked, { on: 'waited-enough' }).state)).toBe(false);
  });

  it('waits for nobody where the work has settled before', () => {
    expect(played(announced, settled, asked).did).toEqual([
      'show stopping',
      'stop-work',
      'stop-keeping',
    ]);
  });
});

describe('a seat that is lost', () => {
  it('is believed in no longer when another candidate has it', () => {
    expect(played(announced, superseded).did).toEqual([
      'end-belief',
      'stop-keeping',
      'show stopping',
      'stop-work',
    ]);
  });

  it('is believed in until belief is over when no answer came', () => {
    const { did, state } = played(announced, { on: 'margin-over' });
    expect(did).toEqual(['stop-keeping', 'show stopping', 'stop-work']);
    expect(endOf(state)?.reason).toBe('stalled');
  });

  it('was not confirmed in time when an attempt had failed, and else the process stood still', () => {
    const reason = (...events: TermEvent[]) =>
      endOf(played(...events, { on: 'margin-over' }).state)?.reason;
    expect(reason({ on: 'unconfirmed' })).toBe('renewal-failed');
    expect(reason({ on: 'doubted' })).toBe('stalled');
    expect(reason({ on: 'unconfirmed' }, { on: 'doubted' })).toBe('renewal-failed');
    expect(reason({ on: 'unconfirmed' }, { on: 'confirmed' })).toBe('stalled');
  });

  it('ends belief also of a term that lapses already', () => {
    const { did } = played(announced, { on: 'margin-over' }, superseded);
    expect(did.at(-1)).toBe('end-belief');
  });

  it('is left at once if the term lapses already: the belief that has ended does not run out', () => {
    const { did, state } = played(announced, { on: 'margin-over' }, superseded, through);
    expect(did.slice(-2)).toEqual(['tell-overrun', 'abandon']);
    expect(state.at).toBe('abandoning');
  });

  it('with the end of the election, it is not believed in either', () => {
    expect(played(announced, { on: 'lost', reason: 'election-ended' }).did[0]).toBe('end-belief');
    expect(played(announced, { on: 'lost', reason: 'vacated' }).did[0]).toBe('stop-keeping');
    const now: TermEvent = { on: 'lost', reason: 'vacated', endsBelief: true };
    expect(played(announced, now).did[0]).toBe('end-belief');
  });
});

it('the first reason stays', () => {
  for (const later of [superseded, { on: 'margin-over' } as const, asked]) {
    const { state } = played(announced, asked, later, settled, through);
    expect(endOf(state)?.reason).toBe('resigned');
  }
});

describe('work that runs on', () => {
  const overrun = [announced, { on: 'margin-over' } as const, beliefOver, through];

  it('is reported, and its seat is left to run out', () => {
    expect(played(...overrun).did.slice(-2)).toEqual(['tell-overrun', 'abandon']);
  });

  it('ends the term when it settles at last, whenever the seat was left', () => {
    const left: TermEvent = { on: 'left', released: false };
    for (const events of [
      [left, settled],
      [settled, left],
    ]) {
      const { state, did } = played(...overrun, ...events);
      expect(state).toMatchObject({ at: 'ended', released: false });
      expect(did.filter((what) => what === 'finish')).toHaveLength(1);
    }
    expect(played(...overrun, left).state.at).toBe('overrunning');
  });

  it('that settles before the last confirmation is through gives its seat back', () => {
    const events = [announced, { on: 'margin-over' } as const, beliefOver, settled, through];
    expect(played(...events).state.at).toBe('releasing');
  });
});

describe('the shown states of a term', () => {
  it('changes once for each doubt, and not while it stops', () => {
    const doubts: TermEvent[] = [{ on: 'doubted' }, { on: 'unconfirmed' }, { on: 'confirmed' }];
    const { did } = played(announced, ...doubts, asked, { on: 'unconfirmed' }, { on: 'confirmed' });
    expect(did.filter((what) => what.startsWith('show'))).toEqual([
      'show uncertain',
      'show leading',
      'show stopping',
    ]);
  });

  it('is that it has ended once its seat is being given back', () => {
    expect(shownAt(played(announced, asked, settled, through).state)).toBe('ended');
  });
});

it('a term that was announced was, to the end', () => {
  for (const events of [[asked], [asked, settled, through], [superseded, beliefOver, through]]) {
    expect(played(announced, ...events).state.announced).toBe(true);
    expect(played(...events).state.announced).toBe(false);
  }
});

it('nothing that comes after the end changes anything', () => {
  const { state } = played(announced, asked, settled, through, { on: 'left', released: true });
  expect(hasSettled(state)).toBe(true);
  for (const event of [asked, settled, through, beliefOver, superseded, announced]) {
    expect(nextTermAt(state, event)).toEqual({ next: state, effects: [] });
  }
});
