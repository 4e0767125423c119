// An operator hands a lock over: the answer to the operator, and the record afterwards.
import { expect, it } from 'vitest';
import type { Trouble } from '../../src/core/trouble.ts';
import { LockStage } from './stage.ts';

async function led() {
  const stage = new LockStage();
  const [a, operator] = [stage.candidate('a'), stage.candidate('o')];
  const term = await stage.soon(a.election.campaign());
  const request = () => stage.store.record('jobs')?.holding?.request;
  return { stage, a, operator, term, request };
}

it('is refused where nobody leads, and where that one leads already', async () => {
  const stage = new LockStage();
  const [a, operator] = [stage.candidate('a'), stage.candidate('o')];
  const nobody = 'nobody leads election "jobs", so there is nothing to transfer to "b"';
  await expect(operator.election.transfer('b')).rejects.toThrow(nobody);
  const term = await stage.soon(a.election.campaign());
  await expect(operator.election.transfer('a')).rejects.toThrow(
    '"a" leads election "jobs" already',
  );
  await term[Symbol.asyncDispose]();
  // The record says who led last.
  await expect(operator.election.transfer('b')).rejects.toThrow(nobody);
});

it('is refused while the holder of the lock is not the one that the record names', async () => {
  const stage = new LockStage();
  const [a, b, operator] = [stage.candidate('a'), stage.candidate('b'), stage.candidate('o')];
  const first = await stage.soon(a.election.campaign());
  const next = b.election.campaign();
  await stage.clock.advance(10);
  a.session.outage = 'silent';
  stage.store.deletePlace(stage.store.places('jobs')[0] as string);
  await stage.clock.advance(100);
  expect(stage.store.waiting('jobs')).toEqual(['b']);
  await expect(operator.election.transfer('c')).rejects.toThrow('nobody leads');
  expect(stage.store.record('jobs')).toMatchObject({ token: first.token });
  await (await stage.soon(next))[Symbol.asyncDispose]();
});

it('catches up first: a server that lags behind does not know the leader', async () => {
  const stage = new LockStage();
  const [a, operator] = [stage.candidate('a'), stage.candidate('o')];
  operator.session.lag();
  await stage.soon(a.election.campaign());
  // It reads only when that is answered.
  operator.session.next('sync', { requestMs: 100 });
  expect(await stage.soon(operator.election.transfer('b'))).toMatchObject({ changed: true });
});

it('is done once: asked again it changes nothing, and another name changes it', async () => {
  const { operator, request, a } = await led();
  a.session.hintMs = 1e9;
  expect(await operator.election.transfer('b')).toMatchObject({ changed: true });
  const asked = request();
  expect(asked).toMatchObject({ kind: 'transfer', to: 'b' });
  expect(await operator.election.transfer('b')).toMatchObject({ changed: false });
  expect(request()).toBe(asked);
  expect(await operator.election.transfer('c')).toMatchObject({ changed: true });
  expect(request()).toMatchObject({ kind: 'transfer', to: 'c' });
});

it('without an answer is looked for before it is asked again', async () => {
  const { stage, a, operator, request } = await led();
  a.session.hintMs = 1e9;
  operator.session.next('amend', { fail: 'after' });
  const asking = operator.election.transfer('b');
  await stage.clock.advance(0);
  const asked = request();
  expect(await stage.soon(asking)).toMatchObject({ changed: true });
  expect(request()).toBe(asked);
  expect(operator.session.sent.get('amend')).toBe(1);
});

it('that was not done is asked again, and its trouble is told', async () => {
  const { stage, request } = await led();
  const session = stage.store.connect();
  const told: string[] = [];
  const onTrouble = ({ what }: Trouble) => void told.push(what);
  const operator = stage.elect(session, 'o', { onTrouble });
  session.next('amend', { fail: 'before' });
  expect(await stage.soon(operator.transfer('b'))).toMatchObject({ changed: true });
  expect(session.sent.get('amend')).toBe(2);
  expect(told).toEqual(['asking for transfer']);
  expect(request()).toMatchObject({ to: 'b' });
});

it('is tried twenty times where others write faster', async () => {
  const { stage } = await led();
  const session = stage.store.connect();
  const open = session.open.bind(session);
  session.open = (name) => ({ ...open(name), amend: async () => ({ outcome: 'conflict' }) });
  const before = session.sent.get('members') ?? 0;
  const startMs = stage.clock.monotonicMs();
  const asking = stage.elect(session, 'o').transfer('b');
  await expect(stage.soon(asking)).rejects.toThrow('could not be recorded in 20 attempts');
  expect((session.sent.get('members') ?? 0) - before).toBe(20);
  // Half of 100 ms between two attempts.
  expect(stage.clock.monotonicMs() - startMs).toBe(20 * 50);
});

it('ends with the reason of whoever no longer wants it', async () => {
  const { stage, operator, request } = await led();
  operator.session.next('amend', { lose: 'request' });
  const stop = new AbortController();
  const asking = operator.election.transfer('b', { signal: stop.signal });
  asking.catch(() => {});
  await stage.clock.advance(10);
  stop.abort(new Error('enough'));
  await expect(asking).rejects.toThrow('enough');
  await stage.clock.advance(10_000);
  expect(operator.session.sent.get('amend')).toBe(1);
  expect(request()).toBeUndefined();
});
