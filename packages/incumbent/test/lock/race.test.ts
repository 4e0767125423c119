import { describe } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { UncleanLeader } from '../../src/record/record.ts';
import type { Arena } from './support.ts';
import {
  aborted,
  background,
  beforeAnnouncement,
  breadcrumbPath,
  end,
  inArena,
  interrupted,
  lockPath,
  parent,
  until,
} from './support.ts';

/** How often the lock was made so far. */
function creates(arena: Arena): number {
  return arena.fake.requests.filter(
    ({ opcode, path }) => opcode.startsWith('create') && path === lockPath,
  ).length;
}

/** How often it was confirmed. */
function proofs(arena: Arena): number {
  return arena.fake.requests.filter(
    ({ opcode, paths }) => opcode === 'multi' && paths.length === 1 && paths[0] === lockPath,
  ).length;
}

const connectionLoss = -4;

describe('whose lock it is', () => {
  inArena(
    'when one of theirs becomes active after its lock was deleted by hand, ours is made anew',
    async ({ arena, expect }) => {
      const theirs = await arena.hadoop('theirs');
      await theirs.takeLock();
      await theirs.client.delete(lockPath);
      let hasBegun = false;
      const own = await arena.client();
      const client = interrupted(own, async () => {
        if (!hasBegun) return false;
        await until('the lock is made', () => arena.data(lockPath) === 'a');
        await theirs.writeBreadcrumb();
        return true;
      });
      const create = own.create.bind(own);
      own.create = (async (...call: Parameters<typeof create>) => {
        hasBegun = true;
        return create(...call);
      }) as typeof create;
      const { election } = await arena.member('a', { client });
      const term = await election.campaign();
      expect(creates(arena)).toBe(3);
      expect(term.predecessor).toMatchObject({ id: 'theirs' });
      expect(term.token).toBeGreaterThan(term.predecessor?.token ?? term.token);
      await end(term);
    },
  );

  inArena(
    'MB1, H5: a lock whose making was not answered is known to be ours',
    async ({ arena, expect }) => {
      const { election } = await arena.member('a');
      await election.init();
      const fault = arena.fake.faults.next({ opcode: 'create2', path: lockPath }, 'dropAfter');
      const term = await election.campaign();
      expect(fault.hits).toBe(1);
      expect(creates(arena)).toBe(1);
      expect(term.token).toBe(arena.fake.tree().get(lockPath)?.stat.czxid);
      expect(term.isLeading()).toBe(true);
      await end(term);
    },
  );

  inArena(
    'H5: a lock that was there before our first attempt is not',
    async ({ arena, expect }) => {
      const other = await arena.hadoop('b');
      await other.becomeActive();
      const { election } = await arena.member('a');
      await expect(election.campaign({ wait: 0 })).rejects.toMatchObject({ code: 'NOT_ELECTED' });
      expect(arena.data(lockPath)).toBe('b');
    },
  );

  inArena(
    'HB4: two candidates on one client with equal data do not take each other’s lock for theirs',
    async ({ arena, expect }) => {
      const client = await arena.client();
      const layout = { zookeeper: { activeData: 'same' }, client };
      const { election: a } = await arena.member('a', layout);
      const { election: b } = await arena.member('b', layout);
      const first = await a.campaign();
      await expect(b.campaign({ wait: 0 })).rejects.toMatchObject({ code: 'NOT_ELECTED' });
      const following = background(b.campaign());
      expect(first.isLeading()).toBe(true);
      await end(first);
      const second = await following;
      expect(second.token).toBeGreaterThan(first.token);
      expect(second.predecessor).toMatchObject({ id: 'a', clean: true });
      await end(second);
    },
  );

  inArena(
    'who has no answer yet does not take the lock of another on its client for its own',
    async ({ arena, expect }) => {
      const client = await arena.client();
      const { election: a } = await arena.member('a', { client });
      const { election: b } = await arena.member('b', { client });
      await a.init();
      // It was not done, but the caller cannot know: the connection seemed to be lost.
      arena.fake.faults.next(
        { opcode: 'create2', path: lockPath },
        { type: 'errorCode', code: connectionLoss },
      );
      const led: bigint[] = [];
      const campaigns = [a, b].map((each) =>
        background(
          each.campaign().then((term) => {
            led.push(term.token);
            return term;
          }),
        ),
      );
      const term = await Promise.race(campaigns);
      const before = creates(arena);
      await until('it was confirmed', () => proofs(arena) >= 2);
      expect(led).toEqual([term.token]);
      expect(creates(arena)).toBe(before);
      await end(term);
      const others = await Promise.all(campaigns);
      const other = others.find((one) => one !== term);
      expect(other?.token).toBeGreaterThan(term.token);
      await other?.[Symbol.asyncDispose]();
    },
  );

  inArena(
    'a lock of the same name that another made meanwhile is not ours',
    async ({ arena, expect }) => {
      const { election } = await arena.member('a');
      const term = await election.campaign();
      const thief = await arena.client();
      // At once: no watch of ours is told before another one has it.
      await thief
        .transaction()
        .delete(lockPath)
        .create(lockPath, 'thief', { ephemeral: true })
        .commit();
      await aborted(term.signal);
      expect(term.isLeading()).toBe(false);
      expect((await end(term)).reason).toBe('record-gone');
      expect(arena.data(lockPath), 'the thief’s lock is left alone').toBe('thief');
    },
  );

  inArena(
    'the same when no watch tells it: the next confirmation finds out',
    async ({ arena, expect }) => {
      const { election, client } = await arena.member('a');
      const term = await election.campaign();
      await until('it watches its lock', () =>
        arena.fake.watches(client.session?.id).some(({ path }) => path === lockPath),
      );
      await client.removeWatches(lockPath);
      const thief = await arena.client();
      const before = arena.fake.lastZxid;
      await thief
        .transaction()
        .delete(lockPath)
        .create(lockPath, 'thief', { ephemeral: true })
        .commit();
      await aborted(term.signal);
      expect(arena.fake.lastZxid).toBeGreaterThan(before);
      expect((await end(term)).reason).toBe('record-gone');
    },
  );

  inArena(
    'nothing is left behind by a campaign that was given up while its attempt had no answer',
    async ({ arena, expect }) => {
      const { election } = await arena.member('a');
      await election.init();
      const fault = arena.fake.faults.next({ opcode: 'create2', path: lockPath }, 'delay');
      const stop = new AbortController();
      const campaign = background(election.campaign({ signal: stop.signal }));
      await fault.struck;
      stop.abort(new Error('not any more'));
      fault.release();
      await expect(campaign).rejects.toThrow('not any more');
      await until('the lock is gone', () => arena.data(lockPath) === undefined);
      const { election: b } = await arena.member('b');
      await end(await b.campaign());
    },
  );

  inArena('nor by one whose attempt lands after it was given up', async ({ arena, expect }) => {
    const { election } = await arena.member('a');
    await election.init();
    const fault = arena.fake.faults.next({ opcode: 'create2', path: lockPath }, 'silence');
    const stop = new AbortController();
    const campaign = background(election.campaign({ signal: stop.signal }));
    await fault.struck;
    stop.abort(new Error('not any more'));
    await expect(campaign).rejects.toThrow('not any more');
    await until('the lock is gone', () => arena.data(lockPath) === undefined);
  });
});

describe('sessions', () => {
  inArena(
    'one that ends while waiting: the candidate waits on in the next one',
    async ({ arena, expect }) => {
      const { election: a } = await arena.member('a');
      const { election: b, client } = await arena.member('b');
      const first = await a.campaign();
      const following = background(b.campaign());
      const id = client.session?.id as bigint;
      await until('b waits', () => arena.fake.watches(id).some(({ path }) => path === lockPath));
      arena.fake.expireSession(id);
      await until('b waits again', () => {
        const now = client.session?.id;
        return now !== undefined && now !== id && arena.fake.watches(now).length > 0;
      });
      await end(first);
      const second = await following;
      expect(arena.fake.tree().get(lockPath)?.stat.ephemeralOwner).toBe(client.session?.id);
      await end(second);
    },
  );

  inArena(
    'H9, H13: one that ends while leading ends the term; the next one is a new term',
    async ({ arena, expect }) => {
      const { election, client } = await arena.member('a');
      const term = await election.campaign();
      arena.fake.expireSession(client.session?.id as bigint);
      await aborted(term.signal);
      expect(term.isLeading()).toBe(false);
      expect(await end(term)).toMatchObject({ reason: 'session-expired', released: false });
      // Its own breadcrumb stands: no other member wrote it, and this very candidate has stopped.
      expect(arena.data(breadcrumbPath)).toBe('a');
      const again = await election.campaign();
      expect(again.token).toBeGreaterThan(term.token);
      expect(again.predecessor).toMatchObject({ id: 'a', clean: true });
      await end(again);
    },
  );

  inArena(
    'H9: a connection that comes back leaves the term as it was',
    async ({ arena, expect }) => {
      const { election } = await arena.member('a');
      const term = await election.campaign();
      const before = proofs(arena);
      arena.fake.dropConnections();
      await until('it is uncertain', () => term.state === 'uncertain');
      await until('it is confirmed again', () => term.state === 'leading');
      expect(proofs(arena)).toBeGreaterThan(before);
      expect(term.isLeading()).toBe(true);
      await end(term);
    },
  );

  inArena('HB1: with step-down a lost connection ends the term', async ({ arena, expect }) => {
    const { election } = await arena.member('a', { zookeeper: { onDisconnect: 'step-down' } });
    const term = await election.campaign();
    arena.fake.dropConnections();
    await aborted(term.signal);
    expect((await end(term)).reason).toBe('disconnected');
  });

  inArena(
    'M5, MB2: who never hears that its session is over stops believing all the same',
    async ({ arena, expect }) => {
      const { election } = await arena.member('a');
      const term = await election.campaign();
      const silentSinceMs = systemClock.monotonicMs();
      arena.fake.silence();
      await aborted(term.signal);
      for (;;) {
        const tookMs = systemClock.monotonicMs() - silentSinceMs;
        if (!term.isLeading()) break;
        expect(tookMs).toBeLessThanOrEqual(election.timing.beliefMs);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      arena.fake.unsilence();
      await end(term);
    },
  );

  inArena('MB3: a wall clock that is set back does not prolong that', async ({ arena }) => {
    const clock = new SteppedClock();
    const { election } = await arena.member('a', { clock });
    const term = await election.campaign();
    arena.fake.silence();
    clock.stepMs = -3_600_000;
    await aborted(term.signal);
    await until('it stops believing', () => !term.isLeading());
    arena.fake.unsilence();
    await end(term);
  });

  inArena('and one that is set forward ends it at once', async ({ arena, expect }) => {
    const clock = new SteppedClock();
    const { election } = await arena.member('a', { clock });
    const term = await election.campaign();
    clock.stepMs = 3_600_000;
    expect(term.isLeading()).toBe(false);
    await aborted(term.signal);
    await end(term);
  });
});

describe('following a leader', () => {
  inArena(
    'H7: the one before is fenced, with its data, before the breadcrumb is ours',
    async ({ arena, expect }) => {
      const nn2 = await arena.hadoop('nn-2');
      await nn2.becomeActive();
      const fenced: [UncleanLeader, string | undefined][] = [];
      const { election } = await arena.member('nn-1');
      const following = background(
        election.campaign({
          onUnclean: (leader) => void fenced.push([leader, arena.data(breadcrumbPath)]),
        }),
      );
      await nn2.crash();
      const term = await following;
      expect(fenced).toHaveLength(1);
      const [leader, breadcrumb] = fenced[0] as (typeof fenced)[0];
      expect(leader.id).toBe('nn-2');
      expect(leader.token).toBeLessThan(term.token);
      expect(breadcrumb, 'as long as it is being fenced').toBe('nn-2');
      expect(arena.data(breadcrumbPath)).toBe('nn-1');
      expect(term.predecessor).toMatchObject({ id: 'nn-2', clean: false });
      await end(term);
    },
  );

  inArena('H10: who quits clean is neither fenced nor waited for', async ({ arena, expect }) => {
    const nn2 = await arena.hadoop('nn-2');
    await nn2.becomeActive();
    const fenced: string[] = [];
    const clock = new SteppedClock();
    const { election } = await arena.member('nn-1', { clock });
    const following = background(
      election.campaign({ onUnclean: ({ id }) => void fenced.push(id) }),
    );
    await nn2.quit();
    const term = await following;
    expect(waits(clock, election.timing.beliefMs)).toEqual([]);
    expect(fenced).toEqual([]);
    await end(term);
  });

  inArena(
    'who ended unclean is waited for: its belief is over before the next term begins',
    async ({ arena, expect }) => {
      const { election: a, client } = await arena.member('a');
      const clock = new SteppedClock();
      const { election: b } = await arena.member('b', { clock });
      const first = await a.campaign();
      const following = background(b.campaign());
      const id = client.session?.id as bigint;
      // Cut off, so that it hears nothing of the end of its session.
      arena.fake.faults.next({ predicate: ({ sessionId }) => sessionId === id }, 'silence');
      arena.fake.expireSession(id);
      const gone = systemClock.monotonicMs();
      const second = await following;
      const tookMs = systemClock.monotonicMs() - gone;
      expect(tookMs).toBeGreaterThanOrEqual((a.timing.beliefMs * 1.05) / 0.95 - 1);
      // More than one where the machine is so busy that it looks again.
      expect(waits(clock, a.timing.beliefMs)).not.toHaveLength(0);
      expect(first.isLeading()).toBe(false);
      expect(second.predecessor).toMatchObject({ id: 'a', clean: false });
      await end(second);
    },
  );

  inArena('also when an operator deletes its lock by hand', async ({ arena, expect }) => {
    const { election: a, client } = await arena.member('a');
    const { election: b } = await arena.member('b');
    const first = await a.campaign();
    const following = background(b.campaign());
    arena.fake.faults.next(
      { predicate: ({ sessionId }) => sessionId === client.session?.id },
      'silence',
    );
    const operator = await arena.client();
    await operator.delete(lockPath);
    const second = await following;
    expect(first.isLeading()).toBe(false);
    await end(second);
  });

  inArena(
    'and when the breadcrumb is deleted with it: then it counts as fenced, but is waited for',
    async ({ arena, expect }) => {
      const { election: a, client } = await arena.member('a');
      const { election: b } = await arena.member('b');
      const first = await a.campaign();
      const fenced: string[] = [];
      const following = background(b.campaign({ onUnclean: ({ id }) => void fenced.push(id) }));
      arena.fake.faults.next(
        { predicate: ({ sessionId }) => sessionId === client.session?.id },
        'silence',
      );
      const operator = await arena.client();
      await operator.transaction().delete(breadcrumbPath).delete(lockPath).commit();
      const second = await following;
      expect(first.isLeading()).toBe(false);
      expect(fenced).toEqual([]);
      await end(second);
    },
  );

  inArena('and when all of the election is deleted', async ({ arena, expect }) => {
    const { election: a, client } = await arena.member('a');
    const clock = new SteppedClock();
    const { election: b, client: other } = await arena.member('b', { clock });
    const first = await a.campaign();
    const following = background(b.campaign());
    await until('b waits', () =>
      arena.fake.watches(other.session?.id).some(({ path }) => path === lockPath),
    );
    arena.fake.faults.next(
      { predicate: ({ sessionId }) => sessionId === client.session?.id },
      'silence',
    );
    const operator = await arena.client();
    await operator.transaction().delete(breadcrumbPath).delete(lockPath).delete(parent).commit();
    const second = await following;
    expect(first.isLeading()).toBe(false);
    expect(waits(clock, b.timing.beliefMs)).toHaveLength(1);
    await end(second);
  });

  inArena('or only the record is emptied with it', async ({ arena, expect }) => {
    const { election: a, client } = await arena.member('a');
    const clock = new SteppedClock();
    const { election: b, client: other } = await arena.member('b', { clock });
    const first = await a.campaign();
    const following = background(b.campaign());
    await until('b waits', () =>
      arena.fake.watches(other.session?.id).some(({ path }) => path === lockPath),
    );
    arena.fake.faults.next(
      { predicate: ({ sessionId }) => sessionId === client.session?.id },
      'silence',
    );
    const operator = await arena.client();
    await operator.transaction().delete(breadcrumbPath).set(parent, '').delete(lockPath).commit();
    const second = await following;
    expect(first.isLeading()).toBe(false);
    expect(waits(clock, b.timing.beliefMs)).toHaveLength(1);
    await end(second);
  });

  inArena('HB4: equal data does not make a breadcrumb ours', async ({ arena, expect }) => {
    const earlier = await arena.hadoop('nn-1');
    await earlier.becomeActive();
    await earlier.crash();
    const fenced: string[] = [];
    const { election } = await arena.member('nn-1');
    const term = await election.campaign({ onUnclean: ({ id }) => void fenced.push(id) });
    expect(fenced).toEqual(['nn-1']);
    await end(term);
  });

  inArena('HB3: an announcement whose answer was lost is found', async ({ arena, expect }) => {
    const { election } = await arena.member('a');
    await election.init();
    const fault = arena.fake.faults.next({ opcode: 'multi', path: breadcrumbPath }, 'dropAfter');
    const term = await election.campaign();
    expect(fault.hits).toBe(1);
    expect(arena.fake.tree().get(breadcrumbPath)?.stat.version).toBe(0);
    expect(term.guard.version).toBe(0);
    expect(await end(term)).toMatchObject({ released: true });
    expect(arena.data(breadcrumbPath)).toBeUndefined();
  });

  inArena('one that met another one’s lock is taken back', async ({ arena, expect }) => {
    const thief = await arena.client();
    const client = beforeAnnouncement(await arena.client(), () =>
      thief.transaction().delete(lockPath).create(lockPath, 'b', { ephemeral: true }).commit(),
    );
    const { election } = await arena.member('a', { client });
    await expect(election.campaign({ wait: 0 })).rejects.toMatchObject({ code: 'NOT_ELECTED' });
    // Otherwise the next leader would fence, and wait for, a leader that never led.
    await until('it is taken back', () => arena.data(breadcrumbPath) === undefined);
    expect(JSON.parse(arena.data(parent) ?? '')).not.toHaveProperty('leadership.candidate');
  });

  inArena('so is a release whose answer was lost', async ({ arena, expect }) => {
    const { election } = await arena.member('a');
    const term = await election.campaign();
    const fault = arena.fake.faults.next({ opcode: 'multi', path: breadcrumbPath }, 'dropAfter');
    expect(await end(term)).toMatchObject({ reason: 'resigned', released: true });
    expect(fault.hits).toBe(1);
    expect(arena.data(lockPath)).toBeUndefined();
  });

  inArena('HB2: confirmations go on while a hook runs', async ({ arena, expect }) => {
    const nn2 = await arena.hadoop('nn-2');
    await nn2.becomeActive();
    await nn2.crash();
    const { election } = await arena.member('nn-1');
    const term = await election.campaign({
      async onUnclean() {
        const before = arena.fake.requests.length;
        const proofs = () =>
          arena.fake.requests
            .slice(before)
            .filter(({ opcode, path }) => opcode === 'multi' && path === lockPath);
        await until('two more confirmations', () => proofs().length >= 2);
      },
    });
    expect(term.isLeading()).toBe(true);
    await end(term);
  });

  inArena(
    'HB2: a hook that outlives the belief fails the takeover, and is told to stop',
    async ({ arena, expect }) => {
      const nn2 = await arena.hadoop('nn-2');
      await nn2.becomeActive();
      await nn2.crash();
      const { election } = await arena.member('nn-1');
      let began = 0;
      const stop = new AbortController();
      const campaign = background(
        election.campaign({
          signal: stop.signal,
          async onUnclean(_, { signal }) {
            began += 1;
            arena.fake.silence();
            await aborted(signal);
            stop.abort(new Error('seen'));
          },
        }),
      );
      await expect(campaign).rejects.toThrow('seen');
      expect(began).toBe(1);
      arena.fake.unsilence();
      await until('the lock is given back', () => arena.data(lockPath) === undefined);
      expect(arena.data(breadcrumbPath), 'it is still to be fenced').toBe('nn-2');
    },
  );

  inArena('H8: who failed to take over stays out for a second', async ({ arena, expect }) => {
    const nn2 = await arena.hadoop('nn-2');
    await nn2.becomeActive();
    await nn2.crash();
    const options = { zookeeper: { predecessorWait: 'off' } } as const;
    const { election: a } = await arena.member('a', options);
    // By the clock that it stays out by: that of the fake goes in ticks, and lags behind when it stalls.
    const attempts: number[] = [];
    const term = await a.campaign({
      onUnclean() {
        attempts.push(systemClock.monotonicMs());
        if (attempts.length === 1) throw new Error('cannot fence it');
      },
    });
    const [first = 0, second = 0] = attempts;
    expect(second - first).toBeGreaterThanOrEqual(1_000);
    await end(term);
  });

  inArena('M3: every winner waits for delayAfterWin', async ({ arena, expect }) => {
    const { election } = await arena.member('a', { zookeeper: { delayAfterWin: 700 } });
    await election.init();
    const before = systemClock.monotonicMs();
    const term = await election.campaign();
    expect(systemClock.monotonicMs() - before).toBeGreaterThanOrEqual(700);
    await end(term);
  });

  inArena(
    'M1, M2: with poll nobody is told, and the lock is looked at so often',
    async ({ arena, expect }) => {
      const { election: a } = await arena.member('a');
      const { election: b, client } = await arena.member('b', { zookeeper: { poll: 50 } });
      const first = await a.campaign();
      const following = background(b.campaign());
      const looks = () =>
        arena.fake.requests.filter(
          ({ sessionId, path }) => sessionId === client.session?.id && path === lockPath,
        ).length;
      await until('it has looked three times', () => looks() >= 3);
      expect(arena.fake.watches(client.session?.id)).toEqual([]);
      await end(first);
      const second = await following;
      expect(second.token).toBeGreaterThan(first.token);
      await end(second);
    },
  );

  inArena('a notification that was lost is healed by the next look', async ({ arena }) => {
    const { election: a } = await arena.member('a');
    const { election: b, client } = await arena.member('b', { zookeeper: { recheck: 200 } });
    const first = await a.campaign();
    const following = background(b.campaign());
    await until('b watches', () =>
      arena.fake.watches(client.session?.id).some(({ path }) => path === lockPath),
    );
    await end(first);
    const second = await following;
    await end(second);
  });
});

describe('the guard', () => {
  inArena(
    'refuses what is sent for a term that another has followed',
    async ({ arena, expect }) => {
      const { election: a, client } = await arena.member('a');
      const first = await a.campaign();
      const { guard } = first;
      const mine = await arena.client();
      const write = (text: string) =>
        mine.transaction().check(guard.path, guard.version).set('/file', text).commit();
      await mine.create('/file', '');
      await write('one');
      arena.fake.expireSession(client.session?.id as bigint);
      await end(first);
      const { election: b } = await arena.member('b');
      const second = await b.campaign();
      await expect(write('two')).rejects.toMatchObject({ code: 'TRANSACTION_FAILED' });
      expect(arena.data('/file')).toBe('one');
      await end(second);
      await expect(write('two')).rejects.toMatchObject({ code: 'TRANSACTION_FAILED' });
    },
  );
});

/**
 * Waits for the end of a belief. They are longer than that by the drift of two clocks, and shorter
 * by the time that a busy machine has taken since the look. (A leader looks at its margin before
 * 0.8 of it.)
 */
function waits({ delaysMs }: SteppedClock, beliefMs: number): readonly number[] {
  return delaysMs.filter((ms) => ms > 0.85 * beliefMs && ms < 1.2 * beliefMs);
}

class SteppedClock implements Clock {
  stepMs = 0;
  readonly delaysMs: number[] = [];

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  wallMs(): number {
    return systemClock.wallMs() + this.stepMs;
  }

  setTimer(...timer: Parameters<Clock['setTimer']>): ReturnType<Clock['setTimer']> {
    this.delaysMs.push(timer[1]);
    return systemClock.setTimer(...timer);
  }
}
