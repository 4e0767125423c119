/**
 * The state machine of a session: from a state and an event to the next state, and to the effects
 * that are due. Pure: no clock, no socket. `session-runner.ts` feeds it events, and `session.ts`
 * carries out its effects. `npm run explore` walks through all of it. Only this file decides what a
 * server is told before it serves, and in which order.
 */
import { ProtocolError } from '../errors.ts';
import type { State } from '../state.ts';
import type {
  Doubt,
  Granted,
  Introduced,
  Link,
  SessionAt,
  SessionEffect,
  SessionEvent,
} from './session-states.ts';

export interface SessionStep {
  readonly next: SessionAt;
  /** To be carried out in this order. */
  readonly effects: readonly SessionEffect[];
}

type Seeking = Extract<SessionAt, { at: 'seeking' }>;
type Serving = Extract<SessionAt, { at: 'serving' }>;

const noLink: Link = { at: 'none' };
const noDoubt: Doubt = { sinceMs: undefined, asks: false };

/** @param identity `known`: the session begins as one that another client has left */
export function firstSessionAt(identity: 'none' | 'known'): SessionAt {
  return {
    at: 'seeking',
    told: 'connecting',
    identity,
    link: noLink,
    doubt: noDoubt,
    ending: 'no',
  };
}

/** The state that listeners have heard last. */
export function toldAt(at: SessionAt): State {
  switch (at.at) {
    case 'seeking':
      return at.told;
    case 'serving':
      return at.readOnly ? 'read-only' : 'connected';
    case 'refused':
      return 'auth-failed';
    case 'closed':
      return 'closed';
  }
}

export function isFinal(at: SessionAt): boolean {
  return at.at === 'refused' || at.at === 'closed';
}

/**
 * Whether the server of the present connection has granted a session. From then on it sends
 * replies.
 */
export function isGranted(at: SessionAt): boolean {
  return at.at === 'serving' || (at.at === 'seeking' && 'readOnly' in at.link);
}

/** Whether the server of the present connection got our credentials and watches. */
export function isIntroduced(at: SessionAt): boolean {
  return at.at === 'serving' || (at.at === 'seeking' && 'unrestored' in at.link);
}

/**
 * Whether the present connection has all our watches. Then they were told of everything that it
 * shows.
 */
export function hasWatches(at: SessionAt): boolean {
  const place = at.at === 'seeking' ? at.link : at;
  return 'unrestored' in place && place.unrestored === 0;
}

/** Whether a server is being tried and does not serve yet. That time is limited. */
export function isTrying(at: SessionAt): boolean {
  return at.at === 'seeking' && at.link.at !== 'none' && at.link.at !== 'catching-up';
}

/** @param usesSasl the client proves its identity by SASL, before anything else is sent */
export function nextSessionAt(at: SessionAt, event: SessionEvent, usesSasl: boolean): SessionStep {
  switch (at.at) {
    case 'seeking':
      return whileSeeking(at, event, usesSasl);
    case 'serving':
      return whileServing(at, event);
    case 'refused':
      return event.on === 'close-asked' ? closed(at) : same(at);
    case 'closed':
      return same(at);
  }
}

function whileSeeking(at: Seeking, event: SessionEvent, usesSasl: boolean): SessionStep {
  switch (event.on) {
    case 'disconnected':
      return same({ ...at, link: noLink });
    case 'over':
      return over(at, event.error);
    case 'buried':
      return buried(at, event.error);
    case 'round-failed':
      return same({ ...at, doubt: doubtAfter(at, event) });
    case 'credentials-refused':
      return refused(at, event.error);
    case 'close-asked':
      if (event.keepSession || at.identity === 'none') return closed(at);
      return same({ ...at, ending: 'asked' });
    case 'waited-enough':
      return at.ending === 'no' ? same(at) : closed(at);
    case 'opening':
      return same({ ...at, link: { at: 'opening' } });
    case 'opened':
    case 'introduced':
    case 'granted':
    case 'not-granted':
    case 'sasl-done':
    case 'synced':
    case 'credentials-taken':
    case 'watches-restored':
    case 'caught-up':
      return onLink(at, event, usesSasl);
    case 'told':
    case 'close-answered':
    case 'close-failed':
      return same(at);
  }
}

/**
 * Events of a connection before it serves. An event that does not fit the connection's state is
 * ignored.
 */
function onLink(at: Seeking, event: SessionEvent, usesSasl: boolean): SessionStep {
  const { link } = at;
  if (event.on === 'watches-restored') return restored(at);
  switch (link.at) {
    case 'opening':
      if (event.on === 'opened') return greeted(at, usesSasl);
      break;
    case 'greeting':
    case 'greeting-at-once':
      if (event.on === 'granted') return granted(at, event, usesSasl);
      if (event.on === 'not-granted') return notGranted(at, event);
      if (event.on === 'introduced') {
        const { taken, watches } = event;
        const next: Link = { at: 'greeting-at-once', taken, unrestored: watches };
        return { next: { ...at, link: next }, effects: [{ do: 'let-reads-ride' }] };
      }
      // A server on Netty may answer the credentials, which are sent behind the handshake, before
      // the handshake itself.
      if (event.on === 'credentials-taken' && link.at === 'greeting-at-once') {
        return same({ ...at, link: { ...link, taken: true } });
      }
      break;
    case 'sasl':
      if (event.on === 'sasl-done') return afterSasl(at, link);
      break;
    case 'doubting':
      if (event.on === 'synced') {
        const step = introduce({ ...at, doubt: noDoubt }, link);
        const forget: SessionEffect = { do: 'forget-view', zxid: event.zxid };
        return event.behind ? after([forget], step) : step;
      }
      break;
    case 'introducing':
      if (event.on === 'introduced') {
        return presented(at, link.readOnly, event.taken, event.watches);
      }
      break;
    case 'authenticating':
      if (event.on === 'credentials-taken') {
        return presented(at, link.readOnly, true, link.unrestored);
      }
      break;
    case 'catching-up':
      if (event.on === 'caught-up') return serving(at, link);
      break;
    case 'none':
      break;
  }
  return same(at);
}

function greeted(at: Seeking, usesSasl: boolean): SessionStep {
  const doubts = at.doubt.asks;
  const greet: SessionEffect = { do: 'greet', attaches: at.identity === 'known', doubts };
  return {
    next: { ...at, link: { at: 'greeting' } },
    effects: usesSasl || doubts ? [greet] : [greet, { do: 'introduce' }],
  };
}

function granted(
  at: Seeking,
  { readOnly, isOurs }: Extract<SessionEvent, { on: 'granted' }>,
  usesSasl: boolean,
): SessionStep {
  const attaches = at.identity === 'known';
  if (attaches && !isOurs) return dropped(at, 'the server attached us to another session');
  const adopted: Seeking = { ...at, identity: readOnly && !attaches ? 'provisional' : 'known' };
  const adopt: SessionEffect = { do: 'adopt' };
  const { link } = at;
  if (link.at === 'greeting-at-once') {
    return after([adopt], presented(adopted, readOnly, link.taken, link.unrestored));
  }
  if (!usesSasl) return after([adopt], afterSasl(adopted, { readOnly }));
  return {
    next: { ...adopted, link: { at: 'sasl', readOnly } },
    effects: [adopt, { do: 'start-sasl' }],
  };
}

function notGranted(
  at: Seeking,
  { readOnly, error }: Extract<SessionEvent, { on: 'not-granted' }>,
): SessionStep {
  // A read-only server does not know the quorum's sessions, so this says nothing about ours.
  if (readOnly || at.identity !== 'known') return dropped(at, 'the server gives no session');
  return over(at, error);
}

/**
 * After a loss of data every server shuts us out, and so do servers that have lost their quorum. So
 * a server that accepts us now has to say how far its quorum has come. After a `sync` it has all
 * that the leader has. The view is forgotten only if that is less than what we have seen.
 */
function afterSasl(at: Seeking, { readOnly }: Granted): SessionStep {
  if (!at.doubt.asks) return introduce(at, { readOnly });
  if (readOnly) return dropped(at, 'a server without a quorum cannot say how far it has come');
  return {
    next: { ...at, link: { at: 'doubting', readOnly } },
    effects: [{ do: 'ask-sync' }],
  };
}

function introduce(at: Seeking, { readOnly }: Granted): SessionStep {
  return {
    next: { ...at, link: { at: 'introducing', readOnly } },
    effects: [{ do: 'introduce' }],
  };
}

/**
 * Servers refuse credentials within the same round trip, and before any other answer. So
 * `connected` means that they were accepted.
 */
function presented(
  at: Seeking,
  readOnly: boolean,
  taken: boolean,
  unrestored: number,
): SessionStep {
  if (!taken) return same({ ...at, link: { at: 'authenticating', readOnly, unrestored } });
  const { told } = at;
  const gap =
    told === 'connecting' ? undefined : told === 'suspended' ? 'reconnected' : ('expired' as const);
  return {
    next: { ...at, link: { at: 'catching-up', readOnly, unrestored } },
    // Done before the events of this connection are dispatched: listeners have to hear of the gap
    // first.
    effects: [
      { do: 'catch-up', gap },
      { do: 'go-on', event: { on: 'caught-up' } },
    ],
  };
}

function serving(at: Seeking, { readOnly, unrestored }: Granted & Introduced): SessionStep {
  const identity = at.identity === 'known' ? 'known' : 'provisional';
  const next: Serving = {
    ...{ at: 'serving', identity, readOnly, unrestored, isOpen: false },
    ending: at.ending,
  };
  // Listeners first: they may close the client, or take so long that the session expires.
  const effects: SessionEffect[] = [tell(next, undefined), { do: 'go-on', event: { on: 'told' } }];
  return { next, effects };
}

function whileServing(at: Serving, event: SessionEvent): SessionStep {
  switch (event.on) {
    case 'told': {
      if (at.isOpen) return same(at);
      const search: SessionEffect[] = at.readOnly ? [{ do: 'search-read-write' }] : [];
      if (at.ending === 'asked') return after(search, sendClose(at));
      return { next: { ...at, isOpen: true }, effects: [{ do: 'open' }, ...search] };
    }
    case 'watches-restored':
      return restored(at);
    case 'disconnected': {
      const next = suspended(at);
      return { next, effects: [tell(next, event.error)] };
    }
    case 'over':
      return over(at, event.error);
    case 'credentials-refused':
      return refused(at, event.error);
    case 'close-asked':
      if (event.keepSession) return closed(at);
      return at.ending === 'no' ? sendClose(at) : same(at);
    case 'close-answered':
    case 'waited-enough':
      return at.ending === 'no' ? same(at) : closed(at);
    case 'close-failed':
      return same(at.ending === 'sent' ? { ...at, ending: 'asked' } : at);
    case 'opening':
    case 'opened':
    case 'introduced':
    case 'granted':
    case 'not-granted':
    case 'sasl-done':
    case 'synced':
    case 'credentials-taken':
    case 'caught-up':
    case 'buried':
    case 'round-failed':
      return same(at);
  }
}

function sendClose(at: Serving): SessionStep {
  return { next: { ...at, isOpen: true, ending: 'sent' }, effects: [{ do: 'send-close' }] };
}

function restored(at: Seeking | Serving): SessionStep {
  const place = at.at === 'seeking' ? at.link : at;
  if (!('unrestored' in place) || place.unrestored === 0) {
    return dropped(at, 'watches were confirmed unasked');
  }
  const fewer = { ...place, unrestored: place.unrestored - 1 };
  return same((at.at === 'seeking' ? { ...at, link: fewer } : fewer) as SessionAt);
}

/** The session may live on. A close that was sent is sent again, if there is time. */
function suspended({ identity, ending }: Serving): Seeking {
  return {
    ...{ at: 'seeking', told: 'suspended', identity, link: noLink, doubt: noDoubt },
    ending: ending === 'sent' ? 'asked' : ending,
  };
}

/** Nothing of the session may reach a server any more, so its connection goes first. */
function over(at: Seeking | Serving, error: Error): SessionStep {
  if (at.identity === 'none') return same(at);
  const gone: SessionEffect[] = [{ do: 'forget-session' }, { do: 'drop', error }];
  const away = at.at === 'serving' ? suspended(at) : at;
  const next: Seeking = { ...away, identity: 'none', link: noLink };
  if (at.at === 'seeking') return after(gone, buried(next, error));
  // Listeners first hear that the connection is lost. They may close the client.
  const goOn: SessionEffect = { do: 'go-on', event: { on: 'buried', error } };
  return { next, effects: [...gone, tell(next, error), goOn] };
}

function buried(at: Seeking, error: Error): SessionStep {
  const bury: SessionEffect = { do: 'bury', error };
  if (at.ending !== 'no') return after([bury], closed(at));
  const next: Seeking = { ...at, told: 'expired' };
  // Last, because calls of listeners belong to the next session.
  const telling: SessionEffect[] = at.told === 'expired' ? [] : [tell(next, error)];
  return { next, effects: [bury, ...telling, { do: 'hurry' }] };
}

/**
 * After a loss of the servers' data every server shuts us out, as if it lagged behind. If all
 * servers do only that for another timeout after the session has expired, they are asked without
 * the zxid that we have seen.
 */
function doubtAfter(
  { told, doubt }: Seeking,
  { shutOut, nowMs, timeoutMs }: Extract<SessionEvent, { on: 'round-failed' }>,
): Doubt {
  if (told !== 'expired' || !shutOut) return noDoubt;
  const sinceMs = doubt.sinceMs ?? nowMs;
  return { sinceMs, asks: nowMs - sinceMs >= timeoutMs };
}

function dropped(at: Seeking | Serving, why: string): SessionStep {
  // The end of the connection follows as an event of its own.
  return { next: at, effects: [{ do: 'drop', error: new ProtocolError(why) }] };
}

function refused(at: Seeking | Serving, error: Error): SessionStep {
  const step = ended({ at: 'refused' }, { error });
  if (at.ending === 'no') return step;
  const close: SessionEffect = {
    do: 'go-on',
    event: { on: 'close-asked', keepSession: true },
  };
  return { ...step, effects: [...step.effects, close] };
}

function closed(at: SessionAt): SessionStep {
  return ended({ at: 'closed' }, { isDone: 'ending' in at && at.ending === 'sent' });
}

function ended(
  next: Extract<SessionAt, { at: 'refused' | 'closed' }>,
  { error, isDone = false }: { readonly error?: Error; readonly isDone?: boolean },
): SessionStep {
  const state = next.at === 'closed' ? 'closed' : 'auth-failed';
  return {
    next,
    effects: [
      { do: 'tell', state, error },
      { do: 'drop', error, isDone },
      { do: 'finish' },
      { do: 'hurry' },
    ],
  };
}

function tell(next: SessionAt, error: Error | undefined): SessionEffect {
  return { do: 'tell', state: toldAt(next), error };
}

function same(next: SessionAt): SessionStep {
  return { next, effects: [] };
}

function after(effects: readonly SessionEffect[], step: SessionStep): SessionStep {
  return { ...step, effects: [...effects, ...step.effects] };
}
