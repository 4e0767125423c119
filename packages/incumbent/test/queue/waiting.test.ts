// The leader that a candidate in the queue waits for, for how long, and what it notices meanwhile.
import { describe, expect, it } from 'vitest';
import type { SimulatedQueueSession } from '../../src/testing/index.ts';
import { beliefMs, Stage, waitMs } from './support.ts';

/** The leader hears and says nothing any more, and its place is deleted. */
function cutOff(stage: Stage, session: SimulatedQueueSession): void {
  session.outage = 'silent';
  stage.store.deletePlace(stage.store.places('jobs')[0] as string);
}

describe('whoever follows an unclean leader', () => {
  it('waits for that one, also if it has seen the one before it gone', async () => {
    const stage = new Stage();
    const [a, b, c] = [stage.candidate('a'), stage.candidate('b'), stage.candidate('c')];
    await stage.soon(a.election.campaign());
    const second = b.election.campaign();
    await stage.clock.advance(10);
    cutOff(stage, a.session);
    await stage.clock.advance(10);
    // It looks while the first is gone and the second is not announced, and then not for long.
    const third = c.election.campaign();
    const leading = await stage.soon(second);
    await stage.clock.advance(3 * waitMs);
    cutOff(stage, b.session);
    expect(await stage.handOver(leading, third)).toBeGreaterThanOrEqual(waitMs);
    await stage.soon((await third)[Symbol.asyncDispose]());
  });

  it('waits all of its belief, and not a tenth of a renewal less', async () => {
    const stage = new Stage();
    const [a, b] = [stage.candidate('a'), stage.candidate('b')];
    const first = await stage.soon(a.election.campaign());
    const next = b.election.campaign();
    await stage.clock.advance(10);
    cutOff(stage, a.session);
    const waitedMs = await stage.handOver(first, next);
    expect(waitedMs).toBeGreaterThanOrEqual(waitMs);
    // And not longer.
    expect(waitedMs).toBeLessThan(waitMs + 20);
    await stage.soon((await next)[Symbol.asyncDispose]());
  });

  it('waits, also if an operator has written a record anew after the leader’s was deleted', async () => {
    const stage = new Stage();
    const [a, b, operator] = [stage.candidate('a'), stage.candidate('b'), stage.candidate('o')];
    const first = await stage.soon(a.election.campaign());
    const next = b.election.campaign();
    await stage.clock.advance(10);
    a.session.outage = 'silent';
    stage.store.put('jobs', undefined);
    await operator.election.drain('x', new Date(stage.clock.wallMs() + 3_600_000));
    expect(stage.store.record('jobs')).toMatchObject({ token: 0n, holding: undefined });
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    expect(await stage.handOver(first, next)).toBeGreaterThanOrEqual(waitMs);
    await stage.soon((await next)[Symbol.asyncDispose]());
  });

  it('waits as long as that one believed, although an operator’s record says nothing of it', async () => {
    const stage = new Stage();
    const a = stage.candidate('a');
    const [b, operator] = [stage.candidate('b'), stage.candidate('o')];
    const first = await stage.soon(a.election.campaign());
    // Its belief is longer than ours, by the record.
    const record = stage.store.record('jobs')!;
    stage.store.put('jobs', { ...record, beliefMs: 2 * beliefMs });
    const next = b.election.campaign();
    await stage.clock.advance(10);
    a.session.outage = 'silent';
    stage.store.put('jobs', undefined);
    await operator.election.drain('x', new Date(stage.clock.wallMs() + 3_600_000));
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    expect(await stage.handOver(first, next)).toBeGreaterThanOrEqual(2 * waitMs);
    await stage.soon((await next)[Symbol.asyncDispose]());
  });

  it('fences and waits for another process that had its own name', async () => {
    const stage = new Stage();
    const [a, again] = [stage.candidate('host-1'), stage.candidate('host-1')];
    const first = await stage.soon(a.election.campaign());
    const fenced: bigint[] = [];
    const next = again.election.campaign({ onUnclean: ({ token }) => void fenced.push(token) });
    await stage.clock.advance(10);
    cutOff(stage, a.session);
    expect(await stage.handOver(first, next)).toBeGreaterThanOrEqual(waitMs);
    const second = await next;
    expect(fenced).toEqual([first.token]);
    expect(second.predecessor).toMatchObject({ id: 'host-1', clean: false });
    await stage.soon(second[Symbol.asyncDispose]());
  });
});

describe('a candidate whose place is deleted', () => {
  it('enters again at once, while it waits behind another', async () => {
    const stage = new Stage();
    const [a, b] = [stage.candidate('a'), stage.candidate('b')];
    const first = await stage.soon(a.election.campaign());
    const next = b.election.campaign();
    await stage.clock.advance(10);
    const [, place] = stage.store.places('jobs') as [string, string];
    stage.store.deletePlace(place);
    await stage.clock.advance(10);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    expect(stage.store.places('jobs')).not.toContain(place);
    await stage.soon(first[Symbol.asyncDispose]());
    await stage.soon((await next)[Symbol.asyncDispose]());
  });

  it('enters again at once, while the seat is reserved for nobody', async () => {
    const stage = new Stage();
    const [a, b] = [stage.candidate('a'), stage.candidate('b')];
    const stop = new AbortController();
    const job = a.election.lead(() => 'done', { holdAtLeast: '1m', signal: stop.signal });
    await stage.clock.advance(10);
    stop.abort();
    expect(await stage.soon(job)).toBe('done');
    const next = b.election.campaign();
    await stage.clock.advance(10);
    const [place] = stage.store.places('jobs') as [string];
    stage.store.deletePlace(place);
    await stage.clock.advance(10);
    expect(stage.store.waiting('jobs')).toEqual(['b']);
    expect(stage.store.places('jobs')).not.toContain(place);
    await stage.clock.advance(60_000);
    await stage.soon((await next)[Symbol.asyncDispose]());
  });

  it('pauses before it enters once more, if it is deleted again and again', async () => {
    const stage = new Stage();
    const session = stage.store.connect();
    let entered = 0;
    const open = session.open.bind(session);
    session.open = (name) => {
      const store = open(name);
      const enter: typeof store.enter = async (...args) => {
        const place = await store.enter(...args);
        entered += 1;
        // A bound, so that a hot loop ends.
        if (entered <= 1_000) stage.store.deletePlace(place.name);
        return place;
      };
      return { ...store, enter };
    };
    const election = stage.elect(session, 'a');
    const stop = new AbortController();
    const campaign = election.campaign({ signal: stop.signal });
    campaign.catch(() => {});
    await stage.clock.advance(10_000);
    expect(entered).toBeGreaterThan(2);
    expect(entered).toBeLessThan(40);
    stop.abort(new Error('enough'));
    await expect(stage.soon(campaign)).rejects.toThrow('enough');
  });
});

it('a leader whose place is deleted stops at once, and not at its next renewal', async () => {
  const stage = new Stage();
  const a = stage.candidate('a');
  const term = await stage.soon(a.election.campaign());
  stage.store.deletePlace(stage.store.places('jobs')[0] as string);
  await stage.clock.advance(10);
  expect(term.signal.aborted).toBe(true);
  expect(term.isLeading()).toBe(false);
  await stage.soon(term[Symbol.asyncDispose]());
  expect(await term.ended).toMatchObject({ reason: 'record-gone', released: false });
});

it('a candidate that gives up leaves no place behind', async () => {
  const stage = new Stage();
  const [a, b] = [stage.candidate('a'), stage.candidate('b')];
  const first = await stage.soon(a.election.campaign());
  const stop = new AbortController();
  const campaign = b.election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await stage.clock.advance(10);
  stop.abort(new Error('not any more'));
  await expect(stage.soon(campaign)).rejects.toThrow('not any more');
  expect(stage.store.waiting('jobs')).toEqual(['a']);
  await stage.soon(first[Symbol.asyncDispose]());
});

it('nor does one that gives up while it has no answer to its entering', async () => {
  const stage = new Stage();
  const [a, b] = [stage.candidate('a'), stage.candidate('b')];
  const first = await stage.soon(a.election.campaign());
  b.session.next('enter', { lose: 'reply' });
  const stop = new AbortController();
  const campaign = b.election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await stage.clock.advance(10);
  expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
  stop.abort(new Error('not any more'));
  await expect(stage.soon(campaign)).rejects.toThrow('not any more');
  expect(stage.store.waiting('jobs')).toEqual(['a']);
  await stage.soon(first[Symbol.asyncDispose]());
});

it('close waits for a seat that is still won meanwhile, and gives it back', async () => {
  const stage = new Stage();
  const { session, election } = stage.candidate('a');
  session.hold('commit');
  const campaign = election.campaign();
  campaign.catch(() => {});
  await stage.clock.advance(10);
  expect(session.held).toHaveLength(1);
  let isClosed = false;
  const closed = election.close().then(() => {
    isClosed = true;
  });
  await stage.clock.advance(100);
  expect(isClosed).toBe(false);
  session.release('commit');
  await stage.clock.advance(10);
  expect(isClosed).toBe(true);
  expect(stage.store.waiting('jobs')).toEqual([]);
  expect(stage.store.record('jobs')?.holding).toBeUndefined();
  await closed;
  await expect(campaign).rejects.toThrow('is closed');
});
