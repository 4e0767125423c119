import { expect, test } from 'vitest';
import { createElection } from '../../src/election.ts';
import { leaseBackend } from '../../src/lease/backend.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

test('a candidate that is listed too late is taken off the list again', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const listed: string[] = [];
  let goOn = () => {};
  const backend = leaseBackend<bigint>({
    kind: 'scripted',
    description: 'a store that is slow to list',
    openStore: () => ({
      ...store.open(),
      async enlist({ id }) {
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        listed.push(id);
        return async () => {
          listed.splice(listed.indexOf(id), 1);
        };
      },
    }),
    guard: (_scope, _store, token) => token,
  });
  store.hold('other', 1n, 60_000);
  const election = createElection({
    name: 'jobs',
    backend,
    clock,
    lease: 3_000,
    candidate: { id: 'a' },
  });
  const stop = new AbortController();
  const waiting = election.campaign({ signal: stop.signal });
  waiting.catch(() => {});
  await clock.advance(2_000);
  stop.abort(new Error('done'));
  await clock.advance(1_000);
  await expect(waiting).rejects.toThrow('done');
  goOn();
  await clock.advance(1_000);
  expect(listed).toEqual([]);
  await election.close();
});
