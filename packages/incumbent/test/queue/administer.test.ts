// The effect of an operator's request, the answer to the operator, and the refusals.
import { describe, expect, it } from 'vitest';
import { StoreUnsuitableError } from '../../src/base/errors.ts';
import type { AdminRequest } from '../../src/core/contest.ts';
import type { QueueStore } from '../../src/mechanisms/queue/store.ts';
import type { QueueRecord } from '../../src/record/queue-record.ts';
import { emptyQueueRecord } from '../../src/record/queue-record.ts';
import { drainLimit } from '../../src/record/record.ts';
import type { ContestantOptions } from './contestant.ts';
import { Contestant, Mark, never } from './contestant.ts';
import { Stage } from './support.ts';

const hourMs = 3_600_000;
const noHints = 1e9;
const vacate: AdminRequest = { kind: 'vacate', force: false };
const force: AdminRequest = { kind: 'vacate', force: true };
const ending: AdminRequest = { kind: 'end' };
const reopening: AdminRequest = { kind: 'reopen' };
const transferTo = (to: string): AdminRequest => ({ kind: 'transfer', to });
const end = { reason: 'resigned', hasLed: true, fromUnixMs: 1, toUnixMs: 2, unfenced: [] } as const;

/**
 * An operator, and the members of the queue in this order. The first leads. None of
 * them gets hints.
 */
async function stand(ids: readonly string[], options: ContestantOptions = {}, isMixed = false) {
  const stage = new Stage({ isMixed });
  const members: Contestant[] = [];
  for (const id of ids) {
    const member = new Contestant(stage, id);
    members.push(member);
    void member.campaign();
    await stage.clock.advance(0);
    member.session.hintMs = noHints;
  }
  const operator = new Contestant(stage, 'o', options);
  const ask = (request: AdminRequest) => operator.election.administer(request, never);
  const record = () => stage.store.record('jobs')!;
  const set = (fields: Partial<QueueRecord>) =>
    stage.store.put('jobs', {
      ...emptyQueueRecord('jobs', 'n'),
      ...stage.store.record('jobs'),
      ...fields,
    });
  const waiting = () => stage.store.waiting('jobs');
  const amends = () => operator.session.sent.get('amend') ?? 0;
  const now = () => stage.clock.wallMs();
  return { stage, members, operator, ask, record, set, waiting, amends, now };
}

describe('vacate', () => {
  it('leaves a request for the leader, once', async () => {
    const { ask, record, waiting } = await stand(['a', 'b']);
    expect(await ask(vacate)).toMatchObject({ changed: true, view: { state: 'led' } });
    expect(record().holding).toMatchObject({ request: { kind: 'vacate' }, revoked: false });
    const before = record();
    expect(await ask(vacate)).toMatchObject({ changed: false });
    expect(record()).toBe(before);
    expect(waiting()).toEqual(['a', 'b']);
  });

  it('replaces what another operator has asked for', async () => {
    const { ask, record } = await stand(['a', 'b']);
    await ask(transferTo('b'));
    expect(await ask(vacate)).toMatchObject({ changed: true });
    expect(record().holding?.request).toMatchObject({ kind: 'vacate' });
  });

  it('by force takes the place away, also if it was asked for before', async () => {
    const { ask, record, waiting } = await stand(['a', 'b']);
    await ask(vacate);
    expect(await ask(force)).toMatchObject({ changed: true });
    expect(record().holding).toMatchObject({ request: { kind: 'vacate' }, revoked: true });
    expect(waiting()).toEqual(['b']);
  });

  it('changes nothing where nobody leads', async () => {
    const { ask, amends } = await stand([]);
    expect(await ask(vacate)).toEqual({
      changed: false,
      view: { state: 'vacant', sinceUnixMs: expect.any(Number) },
      asked: { state: 'vacant', sinceUnixMs: expect.any(Number) },
    });
    expect(await ask(force)).toMatchObject({ changed: false });
    expect(amends()).toBe(0);
  });

  it('does not lift a hold of one that may be alive, but by force it does, and says so', async () => {
    const { ask, record, set, now } = await stand(['a']);
    const held = { ms: hourMs, untilUnixMs: now() + hourMs };
    set({ holding: { ...record().holding!, held } });
    await expect(ask(vacate)).rejects.toThrow('and may be alive');
    const lifted = { by: 'a', untilUnixMs: held.untilUnixMs };
    expect(await ask(force)).toMatchObject({ changed: true, lifted });
    expect(record().holding).toMatchObject({ held: undefined, revoked: true });
  });

  it('lifts what one that is gone has left behind', async () => {
    const { stage, ask, record, set, now } = await stand(['a']);
    const held = { ms: hourMs, untilUnixMs: now() + hourMs };
    set({ holding: { ...record().holding!, held } });
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    const lifted = { by: 'a', untilUnixMs: held.untilUnixMs };
    expect(await ask(vacate)).toMatchObject({ changed: true, lifted });
    // The next leader still has to wait for it.
    expect(record().holding).toMatchObject({ candidate: { id: 'a' }, held: undefined });
    expect(await ask(vacate)).toMatchObject({ changed: false });
  });

  it('lifts a reservation, and not one that is over', async () => {
    const { ask, record, set, now } = await stand([]);
    const untilUnixMs = now() + hourMs;
    set({ reservation: { for: 'b', reserveMs: hourMs, untilUnixMs } });
    const result = await ask(vacate);
    expect(result).toMatchObject({ changed: true, lifted: { for: 'b', untilUnixMs } });
    expect(record().reservation).toBeUndefined();
    set({ reservation: { for: 'b', reserveMs: hourMs, untilUnixMs: now() } });
    expect(await ask(vacate)).toMatchObject({ changed: false });
  });

  it.each(['before', 'after'] as const)(
    'a lift without an answer (it fails %s it) is told: it may have been ours',
    async (when) => {
      const { stage, operator, ask, set, now } = await stand([]);
      set({ reservation: { for: 'b', reserveMs: hourMs, untilUnixMs: now() + hourMs } });
      operator.session.next('amend', { fail: when });
      const asking = ask(vacate);
      await stage.clock.advance(0);
      // Another operator lifts it as well, or it was done.
      set({ reservation: undefined });
      expect(await stage.soon(asking)).toMatchObject({ changed: true, lifted: { for: 'b' } });
      expect(operator.troubles).toEqual(['asking for vacate']);
    },
  );

  it('a lift that another was faster with is not told as ours', async () => {
    let isFirst = true;
    let put: () => void = () => {};
    const { stage, ask, set, now } = await stand([], {
      says: (store) => ({
        amend: async (change, signal) => {
          if (isFirst) put();
          isFirst = false;
          return store.amend(change, signal);
        },
      }),
    });
    set({ reservation: { for: 'b', reserveMs: hourMs, untilUnixMs: now() + hourMs } });
    put = () => set({ reservation: undefined });
    const result = await stage.soon(ask(vacate));
    expect(result.changed).toBe(false);
    expect(result.lifted).toBeUndefined();
  });

  it('one that knows nothing of our record is only driven out by force', async () => {
    const { stage, ask, waiting } = await stand([], {}, true);
    stage.store.enterForeign('jobs', 'theirs');
    await expect(ask(vacate)).rejects.toThrow('does not know this request');
    expect(waiting()).toEqual(['theirs']);
    expect(await ask(force)).toMatchObject({ changed: true });
    expect(waiting()).toEqual([]);
  });

  it('one of ours that is about to lead is left alone, also by force', async () => {
    const { stage, ask, waiting } = await stand(['a', 'b']);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    expect(await ask(force)).toMatchObject({ changed: false });
    expect(waiting()).toEqual(['b']);
  });
});

describe('transfer', () => {
  it('names the candidate that is to have it, and sends away each one before that one, once', async () => {
    const { ask, record, waiting } = await stand(['a', 'b', 'c', 'd']);
    expect(await ask(transferTo('c'))).toMatchObject({ changed: true });
    expect(record().holding?.request).toMatchObject({ kind: 'transfer', to: 'c' });
    expect(waiting().slice(0, 2)).toEqual(['a', 'c']);
    const before = record();
    expect(await ask(transferTo('c'))).toMatchObject({ changed: false });
    expect(record()).toBe(before);
    expect(await ask(transferTo('d'))).toMatchObject({ changed: true });
    expect(record().holding?.request).toMatchObject({ to: 'd' });
    expect(waiting().slice(0, 2)).toEqual(['a', 'd']);
  });

  it('is asked for again where others have come before the one that was named', async () => {
    const { set, ask, record, waiting } = await stand(['a', 'b', 'c']);
    const request = { kind: 'transfer', to: 'c', nonce: 'earlier' } as const;
    set({ holding: { ...record().holding!, request } });
    expect(await ask(transferTo('c'))).toMatchObject({ changed: true });
    expect(waiting().slice(0, 2)).toEqual(['a', 'c']);
  });

  it.each([
    [['a'], 'a', '"a" leads election "jobs" already'],
    [['a'], 'x', '"x" is not waiting for this election, as a candidate whose health check fails is not; no candidate is'],
    [['a', 'b', 'c'], 'x', '"x" is not waiting for this election, as a candidate whose health check fails is not; waiting: "b", "c"'],
    [[], 'x', 'nobody leads election "jobs" by our record'],
  ])('among %s, to %s: refused', async (ids, to, why) => {
    const { ask, amends } = await stand(ids);
    await expect(ask(transferTo(to))).rejects.toThrow(why);
    expect(amends()).toBe(0);
  });

  it('is refused where one of theirs is in between, or has that name', async () => {
    const { stage, ask, set } = await stand([], {}, true);
    const a = new Contestant(stage, 'a');
    const first = a.campaign();
    await stage.clock.advance(5_000);
    const seat = (await first)!;
    await seat.confirm({ ...seat.state, announced: true }, never);
    stage.store.enterForeign('jobs', 'theirs');
    void new Contestant(stage, 'b').campaign();
    await stage.clock.advance(0);
    await expect(ask(transferTo('b'))).rejects.toThrow('"theirs" waits before "b"');
    await expect(ask(transferTo('theirs'))).rejects.toThrow('"theirs" is not waiting');
    set({});
  });
});

describe('drain', () => {
  const drain = (id: string, untilUnixMs: number): AdminRequest => ({
    kind: 'drain',
    id,
    untilUnixMs,
  });

  it('stands until then, is lifted, and says so only when it changes something', async () => {
    const { ask, record, now } = await stand(['a']);
    const untilUnixMs = now() + hourMs;
    expect(await ask(drain('x', untilUnixMs))).toMatchObject({ changed: true });
    expect(await ask(drain('x', untilUnixMs))).toMatchObject({ changed: false });
    expect(await ask(drain('y', untilUnixMs))).toMatchObject({ changed: true });
    expect(await ask(drain('x', untilUnixMs + 1))).toMatchObject({ changed: true });
    expect(record().drains).toEqual([
      { id: 'y', untilUnixMs },
      { id: 'x', untilUnixMs: untilUnixMs + 1 },
    ]);
    expect(record().holding?.candidate.id).toBe('a');
    expect(await ask(drain('x', now()))).toMatchObject({ changed: true });
    expect(await ask(drain('x', now()))).toMatchObject({ changed: false });
    expect(record().drains).toEqual([{ id: 'y', untilUnixMs }]);
  });

  it('that is over is lifted, and the candidate that is back keeps its place', async () => {
    const { ask, record, set, waiting, now } = await stand(['a', 'b']);
    set({ drains: [{ id: 'b', untilUnixMs: now() - 1 }] });
    expect(await ask(drain('b', now()))).toMatchObject({ changed: true });
    expect(record().drains).toEqual([]);
    expect(waiting()).toEqual(['a', 'b']);
  });

  it('takes the places of that candidate away, but for the leader’s', async () => {
    const { ask, waiting, now } = await stand(['a', 'b', 'a', 'c']);
    expect(await ask(drain('a', now() + hourMs))).toMatchObject({ changed: true });
    expect(waiting()).toEqual(['a', 'b', 'c']);
    // To lift a drain takes no place away.
    expect(await ask(drain('a', now()))).toMatchObject({ changed: true });
    expect(waiting()).toEqual(['a', 'b', 'c']);
  });

  it('takes no place away while nobody leads, and none of theirs', async () => {
    const { stage, ask, waiting, now } = await stand(['a', 'b']);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await ask(drain('b', now() + hourMs));
    expect(waiting()).toEqual(['b']);
    const other = await stand(['a']);
    other.stage.store.enterForeign('jobs', 'theirs');
    await other.ask(drain('theirs', other.now() + hourMs));
    expect(other.waiting()).toEqual(['a', 'theirs']);
  });

  it('is refused beyond the most that are kept, and then one can be lifted', async () => {
    const { ask, set, record, now } = await stand([]);
    const untilUnixMs = now() + hourMs;
    const drains = Array.from({ length: drainLimit }, (_, i) => ({ id: `x${i}`, untilUnixMs }));
    set({ drains: drains.slice(1) });
    expect(await ask(drain('x0', untilUnixMs))).toMatchObject({ changed: true });
    await expect(ask(drain('one more', untilUnixMs))).rejects.toThrow('lift one first');
    // Whom it knows already it can prolong.
    expect(await ask(drain('x5', untilUnixMs + 1))).toMatchObject({ changed: true });
    expect(await ask(drain('x7', now()))).toMatchObject({ changed: true });
    expect(record().drains).toHaveLength(drainLimit - 1);
    expect(record().drains.map(({ id }) => id)).not.toContain('x7');
  });
});

describe('end and reopen', () => {
  it('send waiting members away, leave the leader to go in order, and are done once', async () => {
    const { ask, record, waiting, amends } = await stand(['a', 'b', 'c']);
    expect(await ask(reopening)).toMatchObject({ changed: false });
    expect(await ask(ending)).toMatchObject({ changed: true });
    expect(waiting()).toEqual(['a']);
    expect(record()).toMatchObject({ ended: true, holding: { candidate: { id: 'a' } } });
    expect(await ask(ending)).toMatchObject({ changed: false });
    expect(amends()).toBe(1);
    expect(await ask(reopening)).toMatchObject({ changed: true });
    expect(record()).toMatchObject({ ended: false, holding: { candidate: { id: 'a' } } });
    expect(await ask(reopening)).toMatchObject({ changed: false });
  });

  it('an election that nobody has led ends as well, in its own record', async () => {
    const { ask, record } = await stand([]);
    expect(await ask(ending)).toMatchObject({ changed: true });
    expect(record()).toMatchObject({ election: 'jobs', ended: true, token: 0n });
    expect(await ask(ending)).toMatchObject({ changed: false });
  });

  it('an election that has no record yet is ended by the first one', async () => {
    // As a store says it that has nothing where the record would be.
    const says = (store: QueueStore): Partial<QueueStore> => ({
      read: async (signal) => {
        const { record, version } = await store.read(signal);
        return { record, version: record === undefined ? undefined : version };
      },
      amend: async ({ version, ...change }, signal) =>
        store.amend({ ...change, version: version ?? 0 }, signal),
    });
    const { ask, record } = await stand([], { says });
    expect(await ask(ending)).toMatchObject({ changed: true });
    expect(record().ended).toBe(true);
    expect(await ask(ending)).toMatchObject({ changed: false });
  });

  it('one that is over is ended again where a member has entered since', async () => {
    const { ask, set, waiting } = await stand(['a', 'b']);
    set({ ended: true });
    expect(await ask(ending)).toMatchObject({ changed: true });
    expect(waiting()).toEqual(['a']);
  });

  it('one of ours that is about to lead, and sees the record, keeps its place; theirs is left alone', async () => {
    const { stage, ask, waiting } = await stand(['a', 'b', 'c']);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    stage.store.enterForeign('jobs', 'theirs');
    await ask(ending);
    expect(waiting()).toEqual(['b', 'theirs']);
  });
});

describe('where a mark tells others of the end', () => {
  /** @param isForeign the node of the election holds data that is not ours */
  async function marked(ids: readonly string[], isForeign: boolean, version?: 'none') {
    const mark = new Mark();
    const order: string[] = [];
    const says = (store: QueueStore): Partial<QueueStore> => ({
      endMark: {
        isSet: mark.isSet,
        watch: mark.watch.bind(mark),
        set: async () => {
          order.push('begin to set');
          await Promise.resolve();
          order.push('set');
        },
        clear: async () => {
          order.push('begin to clear');
          await Promise.resolve();
          order.push('cleared');
        },
      },
      read: async (signal) => {
        const reading = await store.read(signal);
        if (version === 'none') return { record: undefined, version: undefined };
        return isForeign ? { record: undefined, version: 7, isForeign } : reading;
      },
      remove: async (name, signal) => {
        order.push('begin to remove');
        await store.remove(name, signal);
        order.push('removed');
      },
      amend: async ({ endMark, ...change }, signal) => {
        if (endMark !== undefined) order.push(`amend and ${endMark}`);
        return store.amend(change, signal);
      },
    });
    const stage = await stand(ids, { says });
    return { ...stage, mark, order };
  }

  it('it is set with the record, and taken back with it', async () => {
    const { ask, mark, order, record, waiting, stage } = await marked(['a', 'b'], false);
    stage.store.enterForeign('jobs', 'theirs');
    expect(await ask(ending)).toMatchObject({ changed: true });
    expect(record().ended).toBe(true);
    // They know of the end, so their places go as well.
    expect(waiting()).toEqual(['a']);
    mark.isThere = true;
    expect(await ask(ending)).toMatchObject({ changed: false });
    expect(await ask(reopening)).toMatchObject({ changed: true });
    expect(record().ended).toBe(false);
    mark.isThere = false;
    expect(await ask(reopening)).toMatchObject({ changed: false });
    expect(order).toEqual(['amend and set', 'amend and clear']);
  });

  it('one of theirs that leads by its place alone is sent away as well', async () => {
    const { stage, ask, set, waiting } = await marked([], false);
    set({});
    stage.store.enterForeign('jobs', 'theirs');
    stage.store.enterForeign('jobs', 'behind');
    expect(await ask(ending)).toMatchObject({ changed: true });
    expect(waiting()).toEqual([]);
  });

  it('only the missing part is written', async () => {
    const { ask, mark, order, record, set } = await marked([], false);
    set({ ended: true });
    expect(await ask(ending)).toMatchObject({ changed: true });
    mark.isThere = true;
    set({ ended: false });
    expect(await ask(reopening)).toMatchObject({ changed: true });
    expect(order).toEqual(['amend and set', 'amend and clear']);
    expect(record().ended).toBe(false);
    // The mark alone is there.
    expect(await ask(ending)).toMatchObject({ changed: true });
    expect(record().ended).toBe(true);
    expect(order).toHaveLength(2);
  });

  it('other requests have nothing to do with it', async () => {
    const { ask, mark, order } = await marked(['a'], false);
    mark.isThere = true;
    expect(await ask(vacate)).toMatchObject({ changed: true });
    expect(order).toEqual([]);
  });

  it('an election that is not there is over', async () => {
    const { ask, amends, order } = await marked([], false, 'none');
    expect(await ask(ending)).toMatchObject({ changed: false, view: { state: 'vacant' } });
    expect(amends()).toBe(0);
    expect(order).toEqual([]);
  });

  it('beside foreign data the mark says it all, and then all places go, the last one first', async () => {
    const { stage, ask, order, waiting } = await marked(['a', 'b'], true);
    const before = stage.store.record('jobs');
    expect(await ask(ending)).toMatchObject({ changed: true });
    expect(order).toEqual([
      'begin to set',
      'set',
      ...['begin to remove', 'removed', 'begin to remove', 'removed'],
    ]);
    expect(waiting()).toEqual([]);
    expect(stage.store.record('jobs')).toBe(before);
  });

  it('and is taken back alone', async () => {
    const { ask, order, waiting, amends } = await marked(['a', 'b'], true);
    expect(await ask(reopening)).toMatchObject({ changed: true });
    expect(order).toEqual(['begin to clear', 'cleared']);
    expect(waiting()).toEqual(['a', 'b']);
    expect(amends()).toBe(0);
  });

  it('any other request is refused there', async () => {
    const { ask } = await marked(['a', 'b'], true);
    const drain = { kind: 'drain', id: 'x', untilUnixMs: 1e15 } as const;
    for (const request of [vacate, force, transferTo('b'), drain]) {
      await expect(ask(request)).rejects.toThrow('holds data that is not ours');
    }
  });
});

it.each([vacate, ending, reopening])(
  'where no mark is known, nothing is asked beside foreign data: %o',
  async (request) => {
    const { ask } = await stand([], {
      says: () => ({ read: async () => ({ record: undefined, version: 7, isForeign: true }) }),
    });
    await expect(ask(request)).rejects.toThrow('holds data that is not ours');
  },
);

describe('a request', () => {
  it('is made after all that was done before it', async () => {
    const { stage, operator, ask } = await stand([]);
    operator.session.lag();
    await new Contestant(stage, 'a').win();
    expect(await ask(vacate)).toMatchObject({ changed: true });
  });

  it('that has no answer is looked for before it is made again', async () => {
    const { stage, operator, ask, amends, record } = await stand(['a']);
    operator.session.next('amend', { fail: 'after' });
    const asking = ask(vacate);
    await stage.clock.advance(0);
    const before = record();
    expect(await stage.soon(asking)).toMatchObject({ changed: true });
    expect(amends()).toBe(1);
    expect(record()).toBe(before);
    expect(operator.troubles).toEqual(['asking for vacate']);
  });

  it('is made twenty times where others write faster, after pauses', async () => {
    const times: number[] = [];
    const { stage, ask } = await stand(['a'], {
      says: () => ({
        amend: async () => {
          times.push(stage.clock.monotonicMs());
          return { outcome: 'conflict' };
        },
      }),
    });
    const asking = stage.soon(ask(vacate));
    await expect(asking).rejects.toThrow('could not be recorded in 20 attempts');
    // Half of 100 ms.
    expect(times).toEqual(Array.from({ length: 20 }, (_, index) => index * 50));
  });

  it('is given up when waiting cannot cure it, or nobody wants it any more', async () => {
    const denied = await stand(['a'], {
      says: () => ({
        amend: async () => {
          throw new StoreUnsuitableError('no right');
        },
      }),
    });
    await expect(denied.ask(vacate)).rejects.toThrow('no right');
    expect(denied.operator.troubles).toEqual([]);

    const { stage, operator } = await stand(['a']);
    operator.session.next('amend', { lose: 'request' });
    const stop = new AbortController();
    const asking = operator.election.administer(vacate, stop.signal);
    asking.catch(() => {});
    await stage.clock.advance(10);
    stop.abort(new Error('enough'));
    await expect(asking).rejects.toThrow('enough');
    expect(operator.troubles).toEqual([]);
  });

  it('is not meant for a leader that comes later', async () => {
    const { stage, members, operator, ask, record } = await stand(['a']);
    operator.session.next('amend', { fail: 'before' });
    const asking = ask(vacate);
    await stage.clock.advance(0);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    expect(await stage.soon(asking)).toMatchObject({ changed: true });
    expect(record().holding?.request).toBeUndefined();
    expect(members).toHaveLength(1);
    // Nor one that was made while there was no leader.
    const other = await stand([]);
    other.set({ reservation: { for: 'x', reserveMs: hourMs, untilUnixMs: other.now() + hourMs } });
    other.operator.session.next('amend', { fail: 'before' });
    const lifting = other.ask(vacate);
    await other.stage.clock.advance(0);
    const x = new Contestant(other.stage, 'x');
    const seat = await x.win();
    expect(await other.stage.soon(lifting)).toMatchObject({ changed: true });
    expect(other.record()).toMatchObject({ token: seat.token });
    expect(other.record().holding?.request).toBeUndefined();
    await seat.release(end, never);
  });
});

it('an operator that takes back an end of which only the mark is left writes a record of that election', async () => {
  const mark = new Mark();
  mark.isThere = true;
  const { stage, ask } = await stand([], { says: () => ({ endMark: mark }) });
  expect(await ask(reopening)).toMatchObject({ changed: true });
  expect(stage.store.record('jobs')).toMatchObject({ election: 'jobs', token: 0n, ended: false });
});
