// The rules of a session's state machine, one by one. `npm run explore` walks through all its
// states.
import { describe, expect, it } from 'vitest';
import {
  firstSessionAt,
  hasWatches,
  isGranted,
  isIntroduced,
  isTrying,
  nextSessionAt,
  toldAt,
} from '../src/session/session-machine.ts';
import type {
  Link,
  SessionAt,
  SessionEffect,
  SessionEvent,
} from '../src/session/session-states.ts';

interface Options {
  readonly usesSasl?: boolean;
  readonly watches?: number;
  readonly hasAuth?: boolean;
  readonly from?: SessionAt;
}

/**
 * Plays events as the session does: each written part has its event, and a `go-on` is the next
 * event.
 */
function played(events: readonly SessionEvent[], options: Options = {}) {
  const { usesSasl = false, watches = 0, hasAuth = false } = options;
  let at = options.from ?? firstSessionAt('none');
  const did: string[] = [];
  const queue = [...events];
  for (let event = queue.shift(); event !== undefined; event = queue.shift()) {
    const step = nextSessionAt(at, event, usesSasl);
    at = step.next;
    const follow: SessionEvent[] = [];
    for (const effect of step.effects) {
      if (effect.do === 'go-on') follow.push(effect.event);
      else did.push(nameOf(effect));
      if (effect.do === 'introduce') follow.push({ on: 'introduced', taken: !hasAuth, watches });
    }
    queue.unshift(...follow);
  }
  return { at, did };
}

function nameOf(effect: SessionEffect): string {
  if (effect.do === 'tell') return `tell ${effect.state}`;
  if (effect.do === 'catch-up' && effect.gap !== undefined) return `catch-up ${effect.gap}`;
  if (effect.do === 'greet') {
    return `greet${effect.attaches ? ' again' : ''}${effect.doubts ? ' in doubt' : ''}`;
  }
  if (effect.do === 'drop' && effect.isDone === true) return 'drop without a reset';
  return effect.do;
}

const granted: SessionEvent = { on: 'granted', readOnly: false, isOurs: true };
const connected: readonly SessionEvent[] = [{ on: 'opening' }, { on: 'opened' }, granted];
const gone: SessionEvent = { on: 'disconnected', error: new Error('gone') };
const over: SessionEvent = { on: 'over', error: new Error('over') };
const close: SessionEvent = { on: 'close-asked', keepSession: false };
const taken: SessionEvent = { on: 'credentials-taken' };

describe('a connection', () => {
  it('sends the credentials behind the handshake, tells listeners, and then opens', () => {
    expect(played(connected).did).toEqual([
      ...['greet', 'introduce', 'let-reads-ride', 'adopt', 'catch-up', 'tell connected', 'open'],
    ]);
  });

  it('opens once', () => {
    const again = played([...connected, { on: 'told' }]);
    expect(again.did.filter((each) => each === 'open')).toHaveLength(1);
  });

  it('waits until the credentials are taken', () => {
    const { at, did } = played(connected, { hasAuth: true });
    expect([toldAt(at), isGranted(at), isTrying(at), did.at(-1)]).toEqual([
      ...['connecting', true, true, 'adopt'],
    ]);
    expect(played([...connected, taken], { hasAuth: true }).did.at(-1)).toBe('open');
  });

  it('takes an answer to its credentials that comes before the one to the handshake', () => {
    const [opening, opened] = connected as [SessionEvent, SessionEvent];
    const { at } = played([opening, opened, taken, granted], { hasAuth: true });
    expect(toldAt(at)).toBe('connected');
  });

  it('proves its identity by SASL before it says anything else', () => {
    const begun = played(connected, { usesSasl: true });
    expect(begun.did).toEqual(['greet', 'adopt', 'start-sasl']);
    expect(isIntroduced(begun.at)).toBe(false);
    expect(played([...connected, { on: 'sasl-done' }], { usesSasl: true }).did.at(-1)).toBe('open');
  });

  it('has all watches when each packet of them is answered', () => {
    const restored: SessionEvent = { on: 'watches-restored' };
    const states = [0, 1, 2].map((answers) => {
      const answered = Array.from({ length: answers }, () => restored);
      return hasWatches(played([...connected, ...answered], { watches: 2 }).at);
    });
    expect(states).toEqual([false, false, true]);
  });

  it('has watches that the server restores before it has taken the credentials', () => {
    const restored: SessionEvent = { on: 'watches-restored' };
    const options = { hasAuth: true, watches: 1 };
    const waiting = played([...connected, restored], options).at;
    expect([hasWatches(waiting), isTrying(waiting), toldAt(waiting)]).toEqual([
      ...[true, true, 'connecting'],
    ]);
    const { at, did } = played([...connected, restored, taken], options);
    expect([hasWatches(at), toldAt(at), did.at(-1)]).toEqual([true, 'connected', 'open']);
  });

  it('is dropped when watches are confirmed unasked', () => {
    expect(played([...connected, { on: 'watches-restored' }]).did.at(-1)).toBe('drop');
  });

  it('is dropped when it is attached to another session than ours', () => {
    const other: SessionEvent = { on: 'granted', readOnly: false, isOurs: false };
    const { did } = played([{ on: 'opening' }, { on: 'opened' }, other], {
      from: firstSessionAt('known'),
    });
    expect(did).toEqual(['greet again', 'introduce', 'let-reads-ride', 'drop']);
  });
});

describe('an event that does not fit the state of the connection', () => {
  const error = new Error('none');
  const events: readonly SessionEvent[] = [
    { on: 'opened' },
    { on: 'introduced', taken: true, watches: 1 },
    granted,
    { on: 'not-granted', readOnly: false, error },
    { on: 'sasl-done' },
    { on: 'synced', behind: true, zxid: 1n },
    taken,
    { on: 'caught-up' },
  ];
  const readOnly = false;
  const unrestored = 0;
  it.each<[Link, readonly string[]]>([
    [{ at: 'none' }, []],
    [{ at: 'opening' }, ['opened']],
    [{ at: 'greeting' }, ['introduced', 'granted', 'not-granted']],
    [
      { at: 'greeting-at-once', taken: false, unrestored },
      ['introduced', 'granted', 'not-granted', 'credentials-taken'],
    ],
    [{ at: 'sasl', readOnly }, ['sasl-done']],
    [{ at: 'doubting', readOnly }, ['synced']],
    [{ at: 'introducing', readOnly }, ['introduced']],
    [{ at: 'authenticating', readOnly, unrestored }, ['credentials-taken']],
    [{ at: 'catching-up', readOnly, unrestored }, ['caught-up']],
  ])('is ignored: %o heeds %j', (link, heeded) => {
    const from = { ...firstSessionAt('none'), link } as SessionAt;
    const effective = events.filter((event) => {
      const { next, effects } = nextSessionAt(from, event, false);
      return next !== from || effects.length > 0;
    });
    expect(effective.map(({ on }) => on)).toEqual(heeded);
  });
});

describe('a session', () => {
  it('is attached to again after its connection was lost', () => {
    const { did } = played([...connected, gone, ...connected]);
    expect(did.slice(7)).toEqual([
      ...['tell suspended', 'greet again', 'introduce', 'let-reads-ride', 'adopt'],
      ...['catch-up reconnected', 'tell connected', 'open'],
    ]);
  });

  it('that is over loses its connection first, and is told last', () => {
    expect(played([...connected, over]).did.slice(7)).toEqual([
      ...['forget-session', 'drop', 'tell suspended', 'bury', 'tell expired', 'hurry'],
    ]);
  });

  it('that is over before listeners heard of it is not told: they have heard of an expiry', () => {
    const again = [...connected, over, ...connected, over];
    const { at, did } = played(again, { hasAuth: true, from: played(connected).at });
    expect(toldAt(at)).toBe('expired');
    expect(did.filter((each) => each === 'forget-session')).toHaveLength(2);
    expect(did.filter((each) => each === 'tell expired')).toHaveLength(1);
  });

  it('that a server without a quorum gave is asked of no other server', () => {
    const readOnly: SessionEvent = { on: 'granted', readOnly: true, isOurs: false };
    const { did } = played([
      { on: 'opening' },
      { on: 'opened' },
      readOnly,
      gone,
      { on: 'opening' },
      { on: 'opened' },
    ]);
    expect(did).toContain('search-read-write');
    expect(did.filter((each) => each.startsWith('greet'))).toEqual(['greet', 'greet']);
  });

  it('that a server does not know is over, unless that server has no quorum', () => {
    const error = new Error('none');
    const told = [false, true].map((readOnly) =>
      played([{ on: 'opening' }, { on: 'opened' }, { on: 'not-granted', readOnly, error }], {
        from: firstSessionAt('known'),
      }),
    );
    expect(told.map(({ at }) => toldAt(at))).toEqual(['expired', 'connecting']);
  });
});

describe('a doubt of what was seen', () => {
  const failRound = (nowMs: number, shutOut = true): SessionEvent => ({
    ...{ on: 'round-failed', shutOut, nowMs, timeoutMs: 10 },
  });
  const [opening, opened] = connected as [SessionEvent, SessionEvent];

  it('begins when every server of every round shuts an expired session out, for a timeout', () => {
    const { did } = played([...connected, over, failRound(0), failRound(10), opening, opened]);
    expect(did.at(-1)).toBe('greet in doubt');
  });

  it('does not begin while the session may live, nor when one round was another', () => {
    const suspended = played([...connected, gone, failRound(0), failRound(10), opening, opened]);
    const other = [failRound(0), failRound(5, false), failRound(10)];
    const expired = played([...connected, over, ...other, opening, opened]);
    for (const { did } of [suspended, expired]) expect(did).not.toContain('greet in doubt');
  });

  it('ends with the word of a quorum that has less', () => {
    const doubted = [...connected, over, failRound(0), failRound(10), ...connected];
    const forgets = (behind: boolean) =>
      played([...doubted, { on: 'synced', behind, zxid: 1n }]).did.includes('forget-view');
    expect([forgets(true), forgets(false)]).toEqual([true, false]);
  });
});

describe('a close', () => {
  it('is sent, and ends the client when it is answered', () => {
    const { at, did } = played([...connected, close, { on: 'close-answered' }]);
    expect(did.slice(7)).toEqual([
      ...['send-close', 'tell closed', 'drop without a reset', 'finish', 'hurry'],
    ]);
    expect(toldAt(at)).toBe('closed');
  });

  it('is sent again when its connection was lost', () => {
    const { did } = played([...connected, close, gone, ...connected]);
    expect(did.filter((each) => each === 'send-close')).toHaveLength(2);
    expect(did.at(-1)).toBe('send-close');
  });

  it('waits for a server, and for so long', () => {
    const asked = played([...connected, gone, close]);
    expect(toldAt(asked.at)).toBe('suspended');
    expect(toldAt(played([{ on: 'waited-enough' }], { from: asked.at }).at)).toBe('closed');
  });

  it('waits for nothing where there is no session, or it is to be kept', () => {
    expect(toldAt(played([close]).at)).toBe('closed');
    const kept = played([...connected, { on: 'close-asked', keepSession: true }]);
    expect(kept.did).not.toContain('send-close');
    expect(toldAt(kept.at)).toBe('closed');
    // Requests may be left to send. They must not reach the server after the client has failed them.
    expect(kept.did).toContain('drop');
  });

  it('that was not asked for is neither answered nor waited for', () => {
    const serving = played(connected).at;
    const seeking = played([...connected, gone]).at;
    for (const event of [{ on: 'close-answered' }, { on: 'waited-enough' }] as const) {
      for (const from of [serving, seeking]) {
        expect(played([event], { from })).toEqual({ at: from, did: [] });
      }
    }
  });

  it('of a session that is over meanwhile tells no listener of that', () => {
    const { did } = played([...connected, close, over]);
    expect(did).not.toContain('tell expired');
    expect(did.slice(-5)).toEqual(['bury', 'tell closed', 'drop', 'finish', 'hurry']);
  });

  it('follows refused credentials, if it was asked for', () => {
    const refused: SessionEvent = { on: 'credentials-refused', error: new Error('refused') };
    const { at, did } = played([...connected, refused]);
    expect([toldAt(at), did.slice(-3)]).toEqual(['auth-failed', ['drop', 'finish', 'hurry']]);
    expect(toldAt(played([...connected, gone, close, ...connected, refused]).at)).toBe('closed');
  });
});
