import { expect, test } from 'vitest';
import type { LeaseStore } from '../../src/mechanisms/lease/store.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

test('a candidate that is listed too late is taken off the list again', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const listed: string[] = [];
  let goOn = () => {};
  store.hold('other', 1n, 60_000);
  let hasLeft: AbortSignal | undefined;
  const enlist: LeaseStore['enlist'] = async ({ id }, left) => {
    hasLeft = left;
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    listed.push(id);
    return async () => {
      listed.splice(listed.indexOf(id), 1);
    };
  };
  const election = candidate(store, clock, { enlist }, { lease: 3_000 });
  const stop = new AbortController();
  const waiting = election.campaign({ signal: stop.signal });
  waiting.catch(() => {});
  await clock.advance(2_000);
  expect(hasLeft?.aborted).toBe(false);
  stop.abort(new Error('done'));
  await clock.advance(1_000);
  await expect(waiting).rejects.toThrow('done');
  expect(hasLeft?.aborted).toBe(true);
  goOn();
  await clock.advance(1_000);
  expect(listed).toEqual([]);
  await election.close();
});

test('a candidate that wins at its first look is not listed before', async () => {
  const clock = new SimulatedClock();
  let asked = 0;
  const enlist: LeaseStore['enlist'] = async () => {
    asked += 1;
    return async () => {};
  };
  const election = candidate(new ScriptedStore(), clock, { enlist });
  const term = await election.campaign();
  expect(asked).toBe(0);
  await term[Symbol.asyncDispose]();
  await election.close();
});
