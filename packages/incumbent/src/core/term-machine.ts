/**
 * What a term is, as a machine: its states, what happens to it, and what is to be done then. Pure: no clock, no I/O.
 * `held-term.ts` tells it what happens, and does what it says; `npm run explore` walks all of it.
 *
 * The order that it keeps: the end is decided → the work is told → the work settles, renewed meanwhile if the end
 * was voluntary, else until belief is over → belief ends → the seat is released, or left if the work goes on.
 */
import type { EndReason } from '../base/reasons.ts';
import { isVoluntary, takesSeatAway } from '../base/reasons.ts';
import type { TermState } from './term.ts';

/** Whether the last attempt to confirm it brought an answer. `told`: the seat has said that none may come. */
export type Doubt = 'none' | 'told' | 'failed';

export interface TermEnd {
  readonly reason: EndReason;
  readonly error?: unknown;
}

/** Before it is announced nobody knows of it, and it leads nobody. */
interface Known {
  readonly announced: boolean;
}

export type TermAt = Known &
  /**
   * From the win on: its seat is confirmed again and again. Left when its end is decided.
   */
  (
    | {
        readonly at: 'kept';
        readonly doubt: Doubt;
        readonly settled: boolean;
      }
    /**
     * A voluntary end is decided, and the work has been told: it goes on being confirmed until the work has settled,
     * was waited for long enough, or the seat is lost.
     */
    | {
        readonly at: 'stopping';
        readonly end: TermEnd;
      }
    /**
     * Confirmed no more: what is believed runs out. Left when the last confirmation is through, and either the work has
     * settled or belief is over.
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
    /** Nothing is believed any more, the work has settled: the seat is being given back, or left to run out. */
    | { readonly at: 'releasing'; readonly end: TermEnd }
    /** Nothing is believed any more, and the work goes on: the seat is being left to run out. */
    | { readonly at: 'abandoning'; readonly end: TermEnd; readonly settled: boolean }
    /** The seat has been left, and the work goes on. */
    | { readonly at: 'overrunning'; readonly end: TermEnd }
    /** All of it is over. */
    | { readonly at: 'ended'; readonly end: TermEnd; readonly released: boolean }
  );

export type TermEvent =
  /** A confirmation has arrived in time. */
  | { readonly on: 'confirmed' }
  /** An attempt to confirm it has failed, or had no answer. */
  | { readonly on: 'unconfirmed' }
  /** The seat says that no confirmation may come for a while. */
  | { readonly on: 'doubted' }
  /** The record says that it leads. */
  | { readonly on: 'announced' }
  /** Belief − G has come. */
  | { readonly on: 'margin-over' }
  | { readonly on: 'belief-over' }
  /** The seat is lost. `endsBelief`: nobody may believe in it any more, at once. */
  | { readonly on: 'lost'; readonly reason: EndReason; readonly endsBelief?: boolean }
  /** Somebody asks for its end. */
  | { readonly on: 'asked-to-stop'; readonly end: TermEnd }
  /** The work was told to stop for longer than it is renewed for. */
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
  /** Waits for the work as long as it is renewed for: `waited-enough` then. */
  | { readonly do: 'wait-for-work' }
  /** No further confirmation; the one that is under way is given up: `through` then. */
  | { readonly do: 'stop-keeping' }
  /** Belief is ended now, before its time. */
  | { readonly do: 'end-belief' }
  /** `left` then. */
  | { readonly do: 'release'; readonly reason: EndReason }
  /** The work runs on without a belief. */
  | { readonly do: 'tell-overrun'; readonly reason: EndReason }
  /** Leaves the seat to run out: `left` then. */
  | { readonly do: 'abandon' }
  /** Tells everybody who waits for its end. `overran`: the work has settled after belief was over. */
  | {
      readonly do: 'finish';
      readonly end: TermEnd;
      readonly released: boolean;
      readonly overran: boolean;
    };

export interface TermStep {
  readonly next: TermAt;
  /** In this order. */
  readonly effects: readonly TermEffect[];
}

export const firstTermAt: TermAt = {
  at: 'kept',
  announced: false,
  doubt: 'none',
  settled: false,
};

/** What is told of a term that is at this point, as long as its belief holds. */
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

/** Whether it is confirmed again and again. */
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

/** The end that was decided; the first one stays. */
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

/** A voluntary end, or another one that somebody asks for. */
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

/** State first, then the event: whoever hears of it finds everything decided. */
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

/** Whether it may be given back now, or has to be left. */
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

/** Whoever loses it so has no seat any more, and nobody may believe in it, at once. */
function endsBelief({ reason, endsBelief: now }: Extract<TermEvent, { on: 'lost' }>): boolean {
  // Who loses it to the end of the election, and is not just asked to go, has no place any more.
  return now === true || takesSeatAway(reason) || reason === 'election-ended';
}

function reasonOf(doubt: Doubt): EndReason {
  return doubt === 'failed' ? 'renewal-failed' : 'stalled';
}
