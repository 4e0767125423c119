// Operators' writes beside a leader reach the intended term, and are never lost.
import { describe, expect, it } from 'vitest';
import type { Election } from '../../src/index.ts';
import { LockStage } from '../lock/stage.ts';
import { Stage } from './support.ts';

/** Later than any test lasts: no hint arrives. */
const never = 1e9;

describe.each<readonly [string, () => Stage]>([
  ['a queue', () => new Stage()],
  ['a lock', () => new LockStage()],
])('beside the leader of %s', (_, stand) => {
  it.each(['was done', 'was not done'])(
    'a request to vacate that %s, without an answer, is not meant for the next term',
    async (done) => {
      const stage = stand();
      const [a, b, operator] = [stage.candidate('a'), stage.candidate('b'), stage.candidate('o')];
      const first = await stage.soon(a.election.campaign());
      const campaign = b.election.campaign();
      await stage.clock.advance(10);
      operator.session.next('amend', { lose: done === 'was done' ? 'reply' : 'request' });
      const asking = operator.election.vacate();
      await stage.clock.advance(0);
      first.resign();
      await first[Symbol.asyncDispose]();
      const second = await campaign;
      // It may have been done, for all that the operator can know.
      expect(await stage.soon(asking)).toMatchObject({ changed: true });
      await stage.clock.advance(10_000);
      expect(second.isLeading()).toBe(true);
      expect(second.signal.aborted).toBe(false);
      expect(stage.store.record('jobs')?.holding?.request).toBeUndefined();
      await second[Symbol.asyncDispose]();
    },
  );

  it.each<readonly [string, (operator: Election<bigint>) => ReturnType<Election['vacate']>]>([
    ['vacate', (operator) => operator.vacate()],
    ['transfer', (operator) => operator.transfer('c')],
  ])(
    'a request to %s that reaches the store when its leader has left is not meant for the next term',
    async (_kind, ask) => {
      const stage = stand();
      const [a, b] = [stage.candidate('a'), stage.candidate('b')];
      const [c, operator] = [stage.candidate('c'), stage.candidate('o')];
      const first = await stage.soon(a.election.campaign());
      const campaign = b.election.campaign();
      await stage.clock.advance(10);
      const stop = new AbortController();
      const waiting = c.election.campaign({ signal: stop.signal });
      waiting.catch(() => {});
      await stage.clock.advance(10);
      operator.session.next('amend', { requestMs: 500 });
      const asking = ask(operator.election);
      await stage.clock.advance(0);
      await first[Symbol.asyncDispose]();
      expect(await stage.soon(asking)).toMatchObject({ changed: false });
      const second = await campaign;
      await stage.clock.advance(10_000);
      expect(second.isLeading()).toBe(true);
      expect(stage.store.record('jobs')?.holding?.request).toBeUndefined();
      stop.abort(new Error('enough'));
      await expect(stage.soon(waiting)).rejects.toThrow('enough');
      await second[Symbol.asyncDispose]();
    },
  );

  it.each([false, true])(
    'a request that its leader died with is not for the next one (force: %s)',
    async (force) => {
      const stage = stand();
      const [a, b] = [stage.candidate('a'), stage.candidate('b')];
      const first = await stage.soon(a.election.campaign());
      a.session.outage = 'silent';
      await stage.soon(b.election.vacate({ force }));
      if (!force) stage.store.deletePlace(stage.store.places('jobs')[0] as string);
      const campaign = b.election.campaign();
      await stage.handOver(first, campaign);
      const second = await campaign;
      // It has kept its first place: the request did not send it away while it waited either.
      expect(b.session.sent.get('enter')).toBe(1);
      await stage.clock.advance(10_000);
      expect(second.isLeading()).toBe(true);
      const { holding } = stage.store.record('jobs')!;
      expect(holding).toMatchObject({ request: undefined, revoked: false });
      await second[Symbol.asyncDispose]();
    },
  );

  it('a leader that leaves overwrites nothing of what an operator wrote meanwhile', async () => {
    const stage = stand();
    const [a, operator] = [stage.candidate('a'), stage.candidate('o')];
    const term = await stage.soon(a.election.campaign());
    a.session.hintMs = never;
    const drain = { id: 'x', untilUnixMs: stage.clock.wallMs() + 3_600_000 };
    await operator.election.drain(drain.id, new Date(drain.untilUnixMs));
    await stage.soon(term[Symbol.asyncDispose]());
    expect(await term.ended).toMatchObject({ released: true });
    expect(stage.store.record('jobs')).toMatchObject({ holding: undefined, drains: [drain] });
  });

  it('neither does one that leaves while a write of its own has no answer', async () => {
    const stage = stand();
    const [a, operator] = [stage.candidate('a'), stage.candidate('o')];
    const term = await stage.soon(a.election.campaign());
    a.session.hintMs = never;
    a.session.next('commit', { fail: 'after' });
    const proclaiming = term.proclaim({ metadata: { port: '1' } });
    proclaiming.catch(() => {});
    await stage.clock.advance(0);
    expect(stage.store.record('jobs')?.holding?.candidate.metadata).toEqual({ port: '1' });
    const drain = { id: 'x', untilUnixMs: stage.clock.wallMs() + 3_600_000 };
    await operator.election.drain(drain.id, new Date(drain.untilUnixMs));
    await stage.soon(term[Symbol.asyncDispose]());
    expect(await term.ended).toMatchObject({ released: true });
    expect(stage.store.record('jobs')).toMatchObject({ holding: undefined, drains: [drain] });
  });

  it('a seat that was given back without an answer was given back', async () => {
    const stage = stand();
    const a = stage.candidate('a');
    const term = await stage.soon(a.election.campaign());
    a.session.next('release', { lose: 'reply' });
    await stage.soon(term[Symbol.asyncDispose]());
    expect(await term.ended).toMatchObject({ reason: 'resigned', released: true });
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
  });

  it.each<readonly [string, (operator: Election<bigint>, stage: Stage) => Promise<unknown>]>([
    ['to vacate', (operator) => operator.vacate()],
    [
      'to drain it',
      (operator, { clock }) => operator.drain('a', new Date(clock.wallMs() + 20_000)),
    ],
  ])(
    'a request %s that came before the announcement was read back ends that term at once',
    async (_, ask) => {
      const stage = stand();
      const [a, operator] = [stage.candidate('a'), stage.candidate('o')];
      a.session.next('commit', { lose: 'reply' });
      const campaign = a.election.campaign();
      await stage.clock.advance(10);
      const { token } = stage.store.record('jobs')!;
      await ask(operator.election, stage);
      a.session.hintMs = never;
      const term = await stage.soon(campaign);
      expect(term.token).toBeGreaterThan(token);
      expect(term.isLeading()).toBe(true);
      await stage.soon(term[Symbol.asyncDispose]());
    },
  );

  it('a drain that comes while a winner waits out the one before it ends its term at once', async () => {
    const stage = stand();
    const [a, b, operator] = [stage.candidate('a'), stage.candidate('b'), stage.candidate('o')];
    const first = await stage.soon(a.election.campaign());
    a.session.outage = 'silent';
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    const campaign = b.election.campaign();
    await stage.clock.advance(1_000);
    expect(stage.store.waiting('jobs')).toEqual(['b']);
    await operator.election.drain('b', new Date(stage.clock.wallMs() + 60_000));
    await stage.clock.advance(1_500);
    expect(stage.store.waiting('jobs')).toEqual([]);
    await stage.clock.advance(62_000);
    const second = await stage.soon(campaign);
    expect(second.isLeading()).toBe(true);
    expect(first.isLeading()).toBe(false);
    await stage.soon(second[Symbol.asyncDispose]());
  });
});

it('a request is meant for a term, and not for whoever has its place: names may come again', async () => {
  const stage = new Stage();
  const [a, b, operator] = [stage.candidate('a'), stage.candidate('b'), stage.candidate('o')];
  const first = await stage.soon(a.election.campaign());
  const campaign = b.election.campaign();
  await stage.clock.advance(10);
  const open = operator.session.open.bind(operator.session);
  // As in GoLea's layout, where an election that is made anew numbers its places from the start.
  operator.session.open = (name) => {
    const store = open(name);
    return {
      ...store,
      nameHere: () => 'the first',
      async members(signal) {
        const [leader] = await store.members(signal);
        return leader === undefined ? [] : [{ ...leader, name: 'the first' }];
      },
      amend: ({ record, version }, signal) => store.amend({ record, version }, signal),
    };
  };
  const asking = stage.elect(operator.session, 'o').vacate();
  operator.session.next('amend', { lose: 'request' });
  await stage.clock.advance(0);
  await first[Symbol.asyncDispose]();
  expect(await stage.soon(asking)).toMatchObject({ changed: true });
  await stage.clock.advance(10_000);
  const second = await campaign;
  expect(second.isLeading()).toBe(true);
  expect(second.signal.aborted).toBe(false);
  await second[Symbol.asyncDispose]();
});
