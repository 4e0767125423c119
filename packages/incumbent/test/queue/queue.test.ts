// A candidate in the queue whose store fails it: what it does, and what it leaves behind.
import { describe, expect, it } from 'vitest';
import type { EndMark, QueueSession, QueueStore } from '../../src/mechanisms/queue/store.ts';
import type { SimulatedQueueSession } from '../../src/testing/index.ts';
import { Stage, waitMs } from './support.ts';

type Method = 'look' | 'enter' | 'members';

/** Notes when the candidate asks the store, in ms from now. `says` changes methods of its store. */
function noting(
  stage: Stage,
  session: SimulatedQueueSession,
  more: (store: QueueStore) => Partial<QueueStore> = () => ({}),
) {
  const startMs = stage.clock.monotonicMs();
  const times: Record<Method, number[]> = { look: [], enter: [], members: [] };
  const note = (method: Method) => times[method].push(stage.clock.monotonicMs() - startMs);
  const open = session.open.bind(session);
  session.open = (name) => {
    const store = open(name);
    return {
      ...store,
      look: (...args) => {
        note('look');
        return store.look(...args);
      },
      enter: (...args) => {
        note('enter');
        return store.enter(...args);
      },
      ...more(store),
    };
  };
  return times;
}

/** Campaigns until the test is over. */
function campaigning(stage: Stage, session: SimulatedQueueSession, id: string) {
  const stop = new AbortController();
  const trouble: string[] = [];
  const election = stage.elect(session, id, { onTrouble: ({ what }) => trouble.push(what) });
  const campaign = election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  const end = async () => {
    stop.abort(new Error('enough'));
    await expect(stage.soon(campaign)).rejects.toThrow('enough');
  };
  return { trouble, campaign, end };
}

// R is 1 s, so the first pause is 250 ms, less a quarter of it. None is longer than R.
const pauses = [0, 187.5, 562.5, 1_312.5, 2_062.5];

describe('a candidate that the store refuses', () => {
  it('pauses twice as long after each failure, and tells of each', async () => {
    const stage = new Stage();
    const session = stage.store.connect();
    const { look } = noting(stage, session);
    session.outage = 'refuses';
    const { trouble, end } = campaigning(stage, session, 'a');
    await stage.clock.advance(2_100);
    expect(look).toEqual(pauses);
    expect(trouble).toEqual(pauses.map(() => 'campaigning'));
    await end();
  });

  it('begins with a short pause again when it was answered', async () => {
    const stage = new Stage();
    const first = await stage.soon(stage.candidate('a').election.campaign());
    const session = stage.store.connect();
    const { look } = noting(stage, session);
    session.next('read', { fail: 'before' }, 3);
    const { campaign } = campaigning(stage, session, 'b');
    await stage.clock.advance(5_000);
    // The third pause is over: it looks before it enters, and then whom it waits for.
    expect(look).toEqual([0, 187.5, 562.5, 1_312.5, 1_312.5]);
    look.length = 0;
    session.next('read', { fail: 'before' });
    await stage.soon(first[Symbol.asyncDispose]());
    await stage.clock.advance(1_000);
    const [failed, again] = look as [number, number];
    expect(again - failed).toBe(187.5);
    await (await stage.soon(campaign))[Symbol.asyncDispose]();
  });

  it.each([
    ['is there again', (session: SimulatedQueueSession) => session.restore()],
    ['has ended the session', (session: SimulatedQueueSession) => session.expire()],
  ])('tries again at once when the store %s', async (_, change) => {
    const stage = new Stage();
    const session = stage.store.connect();
    const { look } = noting(stage, session);
    session.suspend();
    const { end } = campaigning(stage, session, 'a');
    await stage.clock.advance(1_000);
    expect(look).toEqual([]);
    change(session);
    session.restore();
    await stage.clock.advance(0);
    expect(look[0]).toBe(1_000);
    await end().catch(() => {});
  });

  it('does not try sooner because the store is away', async () => {
    const stage = new Stage();
    const session = stage.store.connect();
    const { look } = noting(stage, session);
    session.outage = 'refuses';
    const { trouble, end } = campaigning(stage, session, 'a');
    await stage.clock.advance(100);
    expect(trouble).toEqual(['campaigning']);
    session.suspend();
    await stage.clock.advance(0);
    expect(trouble).toEqual(['campaigning']);
    expect(look).toEqual([0]);
    await end();
  });
});

it('a candidate whose place is deleted again and again pauses from the second time on', async () => {
  const stage = new Stage();
  const session = stage.store.connect();
  const { enter } = noting(stage, session, (store) => ({
    look: async (...args) => {
      for (const place of stage.store.places('jobs')) stage.store.deletePlace(place);
      return store.look(...args);
    },
  }));
  const { end } = campaigning(stage, session, 'a');
  await stage.clock.advance(2_100);
  expect(enter).toEqual([0, ...pauses]);
  await end();
});

it('a candidate that waits behind another is not woken by a connection that comes back', async () => {
  const stage = new Stage();
  const first = await stage.soon(stage.candidate('a').election.campaign());
  const session = stage.store.connect();
  const { look } = noting(stage, session);
  session.next('read', { fail: 'before' });
  const { end } = campaigning(stage, session, 'b');
  await stage.clock.advance(1_000);
  expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
  const looks = look.length;
  session.suspend();
  session.restore();
  await stage.clock.advance(1_000);
  expect(look).toHaveLength(looks);
  // Its watch is there still.
  await stage.soon(first[Symbol.asyncDispose]());
  await stage.clock.advance(10);
  expect(look.length).toBeGreaterThan(looks);
  await end().catch(() => {});
});

describe('a candidate that leaves the queue', () => {
  /** Everything that a candidate listens to, and has not given up. */
  async function listening() {
    const stage = new Stage();
    const first = await stage.soon(stage.candidate('a').election.campaign());
    const session = stage.store.connect();
    let live = 0;
    const counted = <Args extends unknown[], W extends { cancel(): void }>(
      watch: (...args: Args) => Promise<W>,
    ) => {
      return async (...args: Args): Promise<W> => {
        const watched = await watch(...args);
        let isLive = true;
        live += 1;
        return {
          ...watched,
          cancel() {
            if (isLive) live -= 1;
            isLive = false;
            watched.cancel();
          },
        };
      };
    };
    const events: { onEvent: QueueSession['onEvent'] } = session.session;
    const { onEvent } = events;
    events.onEvent = (listener) => {
      const forget = onEvent(listener);
      live += 1;
      return () => {
        live -= 1;
        forget();
      };
    };
    noting(stage, session, (store) => ({ watchPlace: counted(store.watchPlace) }));
    return { stage, first, session, live: () => live };
  }

  it('listens to nothing any more', async () => {
    const { stage, first, session, live } = await listening();
    const { end } = campaigning(stage, session, 'b');
    await stage.clock.advance(10);
    // To the session, to its own place and to the one before it.
    expect(live()).toBe(3);
    // Now and then it looks whether a notification was lost.
    await stage.clock.advance(100_000);
    expect(live()).toBe(3);
    await end();
    expect(live()).toBe(0);
    await stage.soon(first[Symbol.asyncDispose]());
  });

  it('also when it has led', async () => {
    const { stage, first, session, live } = await listening();
    const { campaign } = campaigning(stage, session, 'b');
    await stage.clock.advance(10);
    await stage.soon(first[Symbol.asyncDispose]());
    const term = await stage.soon(campaign);
    await stage.soon(term[Symbol.asyncDispose]());
    await stage.clock.advance(10);
    expect(live()).toBe(0);
  });

  it('is heard of when its place is given up, and not before', async () => {
    const stage = new Stage();
    const first = await stage.soon(stage.candidate('a').election.campaign());
    const { session, election } = stage.candidate('b');
    const stop = new AbortController();
    let isOver = false;
    const campaign = election.campaign({ signal: stop.signal }).catch(() => {
      isOver = true;
    });
    await stage.clock.advance(10);
    session.hold('leave');
    stop.abort();
    await stage.clock.advance(500);
    expect(isOver).toBe(false);
    session.release('leave');
    await campaign;
    expect(stage.store.waiting('jobs')).toEqual(['a']);
    await stage.soon(first[Symbol.asyncDispose]());
  });

  it('because it is drained does not enter again before it has left', async () => {
    const stage = new Stage();
    const [a, operator] = [stage.candidate('a'), stage.candidate('o')];
    const first = await stage.soon(a.election.campaign());
    const session = stage.store.connect();
    const { enter } = noting(stage, session);
    const { campaign } = campaigning(stage, session, 'b');
    await stage.clock.advance(10);
    session.hold('leave');
    await operator.election.drain('b', new Date(stage.clock.wallMs() + 300));
    // It looks when the one before it has gone.
    await stage.soon(first[Symbol.asyncDispose]());
    await stage.clock.advance(600);
    expect(enter).toHaveLength(1);
    session.release('leave');
    const term = await stage.soon(campaign);
    expect(enter).toHaveLength(2);
    await stage.soon(term[Symbol.asyncDispose]());
  });
});

it('a candidate that waits behind a leader that is gone is told which one is about to lead', async () => {
  const stage = new Stage();
  const [a, b, c] = [stage.candidate('a'), stage.candidate('b'), stage.candidate('c')];
  await stage.soon(a.election.campaign());
  const second = b.election.campaign();
  await stage.clock.advance(10);
  a.session.outage = 'silent';
  stage.store.deletePlace(stage.store.places('jobs')[0] as string);
  // It waits for the belief of the first one: the record names that one still.
  await stage.clock.advance(1_000);
  await expect(stage.soon(c.election.campaign({ wait: 0 }))).rejects.toMatchObject({
    why: { kind: 'led', id: 'b' },
  });
  await stage.clock.advance(waitMs);
  await (await second)[Symbol.asyncDispose]();
});

it('a candidate whose watch on its own place has ended watches it again', async () => {
  const stage = new Stage();
  const first = await stage.soon(stage.candidate('a').election.campaign());
  const session = stage.store.connect();
  let endWatch: (() => void) | undefined;
  const { enter } = noting(stage, session, (store) => ({
    watchPlace: async (name, signal) => {
      const watched = await store.watchPlace(name, signal);
      if (endWatch !== undefined || name !== stage.store.places('jobs')[1]) return watched;
      const changed = new Promise<void>((resolve) => {
        endWatch = resolve;
      });
      return { ...watched, changed };
    },
  }));
  const { end } = campaigning(stage, session, 'b');
  await stage.clock.advance(10);
  endWatch?.();
  await stage.clock.advance(10);
  expect(enter).toHaveLength(1);
  stage.store.deletePlace(stage.store.places('jobs')[1] as string);
  await stage.clock.advance(10);
  expect(enter).toHaveLength(2);
  await end();
  await stage.soon(first[Symbol.asyncDispose]());
});

it('a candidate that finds its own place gone while it is to wait enters again', async () => {
  const stage = new Stage();
  const first = await stage.soon(stage.candidate('a').election.campaign());
  const session = stage.store.connect();
  let isDeleted = false;
  const { enter } = noting(stage, session, (store) => ({
    watchPlace: async (name, signal) => {
      // Between its look at the queue and its watch.
      if (!isDeleted && name === stage.store.places('jobs')[1]) {
        isDeleted = true;
        stage.store.deletePlace(name);
      }
      return store.watchPlace(name, signal);
    },
  }));
  const { end } = campaigning(stage, session, 'b');
  await stage.clock.advance(10);
  expect(isDeleted).toBe(true);
  expect(enter).toEqual([0, 0]);
  expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
  await end();
  await stage.soon(first[Symbol.asyncDispose]());
});

describe('every winner', () => {
  it('waits so long where the store says so, counted from when it is the first', async () => {
    const stage = new Stage({ settings: { delayAfterWinMs: 700 } });
    const { clock } = stage;
    const startMs = clock.monotonicMs();
    const first = await stage.soon(stage.candidate('a').election.campaign());
    expect(clock.monotonicMs() - startMs).toBe(700);
    await clock.advance(5_000);
    const next = stage.candidate('b').election.campaign();
    await clock.advance(10);
    const waited = stage.handOver(first, next);
    void first[Symbol.asyncDispose]();
    expect(await waited).toBe(700);
    await stage.soon((await next)[Symbol.asyncDispose]());
  });

  it('waits for nobody where the store says so', async () => {
    const stage = new Stage({ settings: { waitsForPredecessor: false } });
    const [a, b] = [stage.candidate('a'), stage.candidate('b')];
    const first = await stage.soon(a.election.campaign());
    const next = b.election.campaign();
    await stage.clock.advance(10);
    // Its own belief is over when it hears of it.
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(10);
    expect((await next).isLeading()).toBe(true);
    expect(first.isLeading()).toBe(false);
    await stage.soon((await next)[Symbol.asyncDispose]());
  });
});

describe('where a mark ends the election', () => {
  /** A mark that is set by hand. */
  function marked(hasRecord = true) {
    const stage = new Stage();
    const session = stage.store.connect();
    let isSet = false;
    let tell: (isSet: boolean) => void = () => {};
    let watches = 0;
    const endMark: EndMark = {
      isSet: async () => isSet,
      watch: async () => {
        watches += 1;
        const changed = new Promise<boolean>((resolve) => {
          tell = resolve;
        });
        return {
          value: isSet,
          changed,
          cancel: () => {
            watches -= 1;
          },
        };
      },
      set: async () => {},
      clear: async () => {},
    };
    const times = noting(stage, session, (store) => ({
      endMark,
      // There is no record yet, or none any more.
      ...(hasRecord
        ? {}
        : {
            look: async (signal) => {
              const { names } = await store.look(signal);
              return { names, reading: { record: undefined, version: undefined } };
            },
          }),
    }));
    return {
      stage,
      session,
      times,
      watches: () => watches,
      put: () => {
        isSet = true;
      },
      tell: (seen: boolean) => tell(seen),
    };
  }

  const ended = { code: 'ELECTION_ENDED' };

  it('nobody enters who finds it', async () => {
    const { stage, session, times, put } = marked();
    put();
    const campaign = stage.elect(session, 'a').campaign();
    await expect(stage.soon(campaign)).rejects.toMatchObject(ended);
    expect(times.enter).toEqual([]);
  });

  it('a candidate that hears of it leaves, although it is gone again by then', async () => {
    const { stage, session, watches, tell } = marked();
    const first = await stage.soon(stage.candidate('a').election.campaign());
    const campaign = stage.elect(session, 'b').campaign();
    campaign.catch(() => {});
    await stage.clock.advance(10);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    expect(watches()).toBe(1);
    tell(true);
    await expect(stage.soon(campaign)).rejects.toMatchObject(ended);
    expect(stage.store.waiting('jobs')).toEqual(['a']);
    await stage.soon(first[Symbol.asyncDispose]());
  });

  it('a candidate that hears of a change, and of no end, watches again and waits on', async () => {
    const { stage, session, watches, tell } = marked();
    const first = await stage.soon(stage.candidate('a').election.campaign());
    const { campaign } = campaigning(stage, session, 'b');
    await stage.clock.advance(10);
    tell(false);
    await stage.clock.advance(10);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    expect(watches()).toBe(2);
    await stage.soon(first[Symbol.asyncDispose]());
    await (await stage.soon(campaign))[Symbol.asyncDispose]();
  });

  it('an election without a record has not begun for who enters, and is over for who was in', async () => {
    const { stage, session } = marked(false);
    const first = await stage.soon(stage.candidate('a').election.campaign());
    const campaign = stage.elect(session, 'b').campaign();
    campaign.catch(() => {});
    await stage.clock.advance(10);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    stage.store.deletePlace(stage.store.places('jobs')[1] as string);
    await expect(stage.soon(campaign)).rejects.toMatchObject(ended);
    await stage.soon(first[Symbol.asyncDispose]());
  });

  it.each([false, true])(
    'an operator sets it and takes it back (it is set: %s)',
    async (wasSet) => {
      const { stage, session, put } = marked();
      await stage.soon(stage.candidate('a').election.lead(() => {}));
      if (wasSet) put();
      const asked: unknown[] = [];
      const open = session.open.bind(session);
      session.open = (name) => {
        const store = open(name);
        return {
          ...store,
          amend: (change, signal) => {
            asked.push(change.endMark);
            return store.amend(change, signal);
          },
        };
      };
      const operator = stage.elect(session, 'o');
      expect(await stage.soon(operator.end())).toMatchObject({ changed: true });
      expect(stage.store.record('jobs')?.ended).toBe(true);
      expect(await stage.soon(operator.reopen())).toMatchObject({ changed: true });
      expect(stage.store.record('jobs')?.ended).toBe(false);
      // A mark that is as it should be is not asked for.
      expect(asked).toEqual(wasSet ? [undefined, 'clear'] : ['set', undefined]);
    },
  );

  it('it is all that an operator leaves where the record is foreign', async () => {
    const stage = new Stage();
    const session = stage.store.connect();
    const done: string[] = [];
    const open = session.open.bind(session);
    const note = (what: string) => async () => {
      await stage.clock.sleep(5);
      done.push(what);
    };
    session.open = (name) => {
      const store = open(name);
      return {
        ...store,
        read: async () => ({ record: undefined, version: 1, isForeign: true }),
        endMark: {
          isSet: async () => false,
          watch: () => Promise.reject(new Error('not watched')),
          set: note('set'),
          clear: note('clear'),
        },
      };
    };
    stage.store.enterForeign('jobs', 'x');
    const operator = stage.elect(session, 'o');
    expect(await stage.soon(operator.reopen())).toMatchObject({ changed: true });
    expect(done).toEqual(['clear']);
    expect(stage.store.waiting('jobs')).toEqual(['x']);
    expect(await stage.soon(operator.end())).toMatchObject({ changed: true });
    expect(done).toEqual(['clear', 'set']);
    expect(stage.store.waiting('jobs')).toEqual([]);
  });

  it('it is watched as long as a candidate waits', async () => {
    const { stage, session, watches } = marked();
    const first = await stage.soon(stage.candidate('a').election.campaign());
    const { end } = campaigning(stage, session, 'b');
    await stage.clock.advance(10);
    expect(watches()).toBe(1);
    await end();
    expect(watches()).toBe(0);
    await stage.soon(first[Symbol.asyncDispose]());
  });
});
