/**
 * A term as a state machine: its states, its events, and the effects of each. Pure: no clock, no
 * I/O. `held-term.ts` reports the events and carries out the effects. `npm run explore` walks all
 * of it.
 *
 * The order that it keeps: the end is decided → the work is told → the work settles → belief ends →
 * the seat is released. A term with a voluntary end is renewed until its work settles. Any other
 * waits at most until belief is over. If the work then goes on, the seat is left to run out.
 */
import type { EndReason } from '../base/reasons.ts';
import { isVoluntary, takesSeatAway } from '../base/reasons.ts';
import type { TermState } from './term.ts';

/**
 * Whether the last attempt to confirm the term was answered. `told`: the seat has said that no
 * answer may come.
 */
export type Doubt = 'none' | 'told' | 'failed';

export interface TermEnd {
  readonly reason: EndReason;
  readonly error?: unknown;
}

/** Before a term is announced, no other process knows of it, and it leads no one. */
interface Known {
  readonly announced: boolean;
}

export type TermAt = Known &
  /** From the win on: the seat is confirmed again and again. Left when an end is decided. */
  (
    | {
        readonly at: 'kept';
        readonly doubt: Doubt;
        readonly settled: boolean;
      }
    /**
     * A voluntary end is decided, and the work has been told. The term goes on being confirmed.
     * Left when the work has settled, was waited for long enough, or the seat is lost.
     */
    | {
        readonly at: 'stopping';
        readonly end: TermEnd;
      }
    /**
     * The term is not confirmed any more, and belief runs out. Left when the last confirmation is
     * through, and either the work has settled or belief is over.
     */
    | {
        readonly at: 'lapsing';
        readonly end: TermEnd;
        readonly settled: boolean;
        /** Belief is over. */
        readonly over: boolean;
        /** No confirmation is on its way any more. */
        readonly through: boolean;
      }
    /**
     * Belief is over and the work has settled. The seat is being given back, or left to run out.
     */
    | { readonly at: 'releasing'; readonly end: TermEnd }
    /** Belief is over and the work goes on. The seat is being left to run out. */
    | { readonly at: 'abandoning'; readonly end: TermEnd; readonly settled: boolean }
    /** The seat has been left, and the work goes on. */
    | { readonly at: 'overrunning'; readonly end: TermEnd }
    /** All of it is over. */
    | { readonly at: 'ended'; readonly end: TermEnd; readonly released: boolean }
  );

export type TermEvent =
  /** A confirmation has arrived in time. */
  | { readonly on: 'confirmed' }
  /** An attempt to confirm the term has failed, or had no answer. */
  | { readonly on: 'unconfirmed' }
  /** The seat says that no confirmation may come for a while. */
  | { readonly on: 'doubted' }
  /** The record says that the term leads. */
  | { readonly on: 'announced' }
  /** Belief − G has come. */
  | { readonly on: 'margin-over' }
  | { readonly on: 'belief-over' }
  /** The seat is lost. `endsBelief`: belief must be over at once. */
  | { readonly on: 'lost'; readonly reason: EndReason; readonly endsBelief?: boolean }
  /** An end is asked for. */
  | { readonly on: 'asked-to-stop'; readonly end: TermEnd }
  /** The work was told to stop, and has taken longer than the term is renewed for. */
  | { readonly on: 'waited-enough' }
  /** The work has settled. */
  | { readonly on: 'settled' }
  /** The last confirmation is through. */
  | { readonly on: 'through' }
  /** The seat was given back, or left. */
  | { readonly on: 'left'; readonly released: boolean };

export type TermEffect =
  | { readonly do: 'show'; readonly state: TermState }
  /** Tells the work. */
  | { readonly do: 'stop-work'; readonly end: TermEnd }
  /** Waits for the work for as long as the term is renewed for it. Then reports `waited-enough`. */
  | { readonly do: 'wait-for-work' }
  /** No further confirmation. The one that is under way is given up, then `through` is reported. */
  | { readonly do: 'stop-keeping' }
  /** Ends belief now, before its time. */
  | { readonly do: 'end-belief' }
  /** Gives the seat back, then reports `left`. */
  | { readonly do: 'release'; readonly reason: EndReason }
  /** Reports that the work runs on without a belief. */
  | { readonly do: 'tell-overrun'; readonly reason: EndReason }
  /** Leaves the seat to run out, then reports `left`. */
  | { readonly do: 'abandon' }
  /** Tells all that wait for the end. `overran`: the work has settled after belief was over. */
  | {
      readonly do: 'finish';
      readonly end: TermEnd;
      readonly released: boolean;
      readonly overran: boolean;
    };

export interface TermStep {
  readonly next: TermAt;
  /** To be carried out in this order. */
  readonly effects: readonly TermEffect[];
}

export const firstTermAt: TermAt = {
  at: 'kept',
  announced: false,
  doubt: 'none',
  settled: false,
};

/** The state that users see while belief holds. */
export function shownAt(state: TermAt): TermState {
  switch (state.at) {
    case 'kept':
      return state.doubt === 'none' ? 'leading' : 'uncertain';
    case 'stopping':
    case 'lapsing':
      return 'stopping';
    case 'releasing':
    case 'abandoning':
    case 'overrunning':
    case 'ended':
      return 'ended';
  }
}

/** True while the term is confirmed again and again. */
export function isKept(state: TermAt): boolean {
  return state.at === 'kept' || state.at === 'stopping';
}

export function hasSettled(state: TermAt): boolean {
  switch (state.at) {
    case 'kept':
    case 'lapsing':
    case 'abandoning':
      return state.settled;
    case 'stopping':
    case 'overrunning':
      return false;
    case 'releasing':
    case 'ended':
      return true;
  }
}

/** The end that was decided. The first one stays. */
export function endOf(state: TermAt): TermEnd | undefined {
  return state.at === 'kept' ? undefined : state.end;
}

export function nextTermAt(state: TermAt, event: TermEvent): TermStep {
  switch (state.at) {
    case 'kept':
      return whileKept(state, event);
    case 'stopping':
      return whileStopping(state, event);
    case 'lapsing':
      return whileLapsing(state, event);
    case 'releasing':
      if (event.on !== 'left') return same(state);
      return finished(state, event.released);
    case 'abandoning': {
      if (event.on === 'settled') return same({ ...state, settled: true });
      if (event.on !== 'left') return same(state);
      const { end, announced } = state;
      return state.settled ? finished(state, false) : same({ at: 'overrunning', end, announced });
    }
    case 'overrunning':
      return event.on === 'settled' ? finished(state, false) : same(state);
    case 'ended':
      return same(state);
  }
}

type Kept = Extract<TermAt, { at: 'kept' }>;
type Stopping = Extract<TermAt, { at: 'stopping' }>;
type Lapsing = Extract<TermAt, { at: 'lapsing' }>;

function whileKept(state: Kept, event: TermEvent): TermStep {
  switch (event.on) {
    case 'confirmed':
      return told(state, { ...state, doubt: 'none' });
    case 'unconfirmed':
      return told(state, { ...state, doubt: 'failed' });
    case 'doubted':
      return told(state, state.doubt === 'none' ? { ...state, doubt: 'told' } : state);
    case 'announced':
      return same({ ...state, announced: true });
    case 'settled':
      return same({ ...state, settled: true });
    case 'asked-to-stop':
      return stopped(state, event.end);
    case 'margin-over':
      return lost(state, { reason: reasonOf(state.doubt) }, false);
    case 'lost':
      return lost(state, { reason: event.reason }, endsBelief(event));
    case 'belief-over':
    case 'left':
    case 'through':
    case 'waited-enough':
      return same(state);
  }
}

function whileStopping(state: Stopping, event: TermEvent): TermStep {
  switch (event.on) {
    case 'settled':
    case 'waited-enough':
      return lapse(state, state.end, { settled: event.on === 'settled' });
    case 'margin-over':
      return lapse(state, state.end, {});
    case 'lost':
      return lapse(state, state.end, { over: endsBelief(event) });
    case 'announced':
    case 'asked-to-stop':
    case 'belief-over':
    case 'confirmed':
    case 'doubted':
    case 'left':
    case 'through':
    case 'unconfirmed':
      return same(state);
  }
}

function whileLapsing(state: Lapsing, event: TermEvent): TermStep {
  switch (event.on) {
    case 'settled':
      return closed({ ...state, settled: true }, []);
    case 'belief-over':
      return closed({ ...state, over: true }, []);
    case 'through':
      return closed({ ...state, through: true }, []);
    case 'lost':
      if (!endsBelief(event)) return same(state);
      return closed({ ...state, over: true }, [{ do: 'end-belief' }]);
    case 'announced':
    case 'asked-to-stop':
    case 'confirmed':
    case 'doubted':
    case 'left':
    case 'margin-over':
    case 'unconfirmed':
    case 'waited-enough':
      return same(state);
  }
}

/** A voluntary end, or another one that was asked for. */
function stopped(state: Kept, end: TermEnd): TermStep {
  const tell = tellWork(end);
  if (!isVoluntary(end.reason) || state.settled) {
    const step = lapse(state, end, { settled: state.settled });
    return { ...step, effects: [...tell, ...step.effects] };
  }
  const next: Stopping = { at: 'stopping', end, announced: state.announced };
  return { next, effects: [...tell, { do: 'wait-for-work' }] };
}

/** The seat is lost, which decides the end. */
function lost(state: Kept, end: TermEnd, over: boolean): TermStep {
  const step = lapse(state, end, { settled: state.settled, over });
  return { ...step, effects: [...step.effects, ...tellWork(end)] };
}

/** The state comes before the event, so a listener finds everything decided. */
function tellWork(end: TermEnd): readonly TermEffect[] {
  return [
    { do: 'show', state: 'stopping' },
    { do: 'stop-work', end },
  ];
}

function lapse(
  { announced }: TermAt,
  end: TermEnd,
  { settled = false, over = false }: { readonly settled?: boolean; readonly over?: boolean },
): TermStep {
  const next: Lapsing = { at: 'lapsing', end, announced, settled, over, through: false };
  const ending: readonly TermEffect[] = over ? [{ do: 'end-belief' }] : [];
  return { next, effects: [...ending, { do: 'stop-keeping' }] };
}

/** Decides whether the seat can be given back now, or has to be left. */
function closed(state: Lapsing, before: readonly TermEffect[]): TermStep {
  const { end, announced, settled, over, through } = state;
  if (!through || !(settled || over)) return { next: state, effects: before };
  const { reason } = end;
  const closing: TermEffect[] = [...before, { do: 'end-belief' }, { do: 'show', state: 'ended' }];
  if (settled) {
    const next: TermAt = { at: 'releasing', end, announced };
    return { next, effects: [...closing, { do: 'release', reason }] };
  }
  const effects: TermEffect[] = [...closing, { do: 'tell-overrun', reason }, { do: 'abandon' }];
  return { next: { at: 'abandoning', end, announced, settled: false }, effects };
}

function finished(
  { at, end, announced }: Extract<TermAt, { readonly end: TermEnd }>,
  released: boolean,
): TermStep {
  const overran = at !== 'releasing';
  return {
    next: { at: 'ended', end, announced, released },
    effects: [{ do: 'finish', end, released, overran }],
  };
}

function same(next: TermAt): TermStep {
  return { next, effects: [] };
}

function told(before: TermAt, next: TermAt): TermStep {
  const state = shownAt(next);
  return { next, effects: shownAt(before) === state ? [] : [{ do: 'show', state }] };
}

/** True when this loss means that the leader has no seat any more. Belief must then end at once. */
function endsBelief({ reason, endsBelief: now }: Extract<TermEvent, { on: 'lost' }>): boolean {
  // A term that is lost because the election has ended has no place any more.
  return now === true || takesSeatAway(reason) || reason === 'election-ended';
}

function reasonOf(doubt: Doubt): EndReason {
  return doubt === 'failed' ? 'renewal-failed' : 'stalled';
}
