/** Writes that a store refuses for good: a right that is missing, a replica, a record too large. */
import { expect, test } from 'vitest';
import type { SwapResult } from '../../src/backend.ts';
import { createElection, RefusedError, StoreUnsuitableError } from '../../src/index.ts';
import { leaseBackend } from '../../src/lease/backend.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

type Swap = ReturnType<ScriptedStore['open']>['swap'];

function election(
  store: ScriptedStore,
  clock: SimulatedClock,
  swap: (real: Swap) => (...args: Parameters<Swap>) => Promise<SwapResult>,
) {
  return createElection({
    name: 'jobs',
    backend: leaseBackend({
      kind: 'scripted',
      description: 'a store that does what a test says',
      openStore: () => {
        const real = store.open();
        return { ...real, swap: swap(real.swap) };
      },
      guard: (_scope, _store, token) => token,
    }),
    clock,
    lease: 10_000,
    candidate: { id: 'b' },
    random: () => 0,
  });
}

test('end a campaign, instead of being tried for ever', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let tries = 0;
  const candidate = election(store, clock, () => async () => {
    tries += 1;
    throw new StoreUnsuitableError('this account may only read');
  });
  const campaign = candidate.campaign().catch((error: unknown) => error);
  await clock.advance(1_000);
  expect(await campaign).toBeInstanceOf(StoreUnsuitableError);
  expect(await campaign).toMatchObject({ message: 'this account may only read' });
  expect(tries).toBe(1);
  await candidate.close();
});

test('do not end it when the record says that the write was done all the same', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let refuses = true;
  const candidate = election(store, clock, (real) => async (...args) => {
    const result = await real(...args);
    if (refuses) throw new StoreUnsuitableError('says one server of two');
    return result;
  });
  const campaign = candidate.campaign();
  await clock.advance(1_000);
  const term = await campaign;
  expect(term.isLeading()).toBe(true);
  refuses = false;
  const ended = term[Symbol.asyncDispose]();
  await clock.advance(1_000);
  await ended;
  await candidate.close();
});

test.for([new StoreUnsuitableError('not with this account'), new RefusedError('not of this one')])(
  'end an operator’s request at once: %s',
  async (refusal) => {
    const clock = new SimulatedClock();
    const store = new ScriptedStore();
    store.hold('a', 1n, 10_000);
    let tries = 0;
    const operator = election(store, clock, () => async () => {
      tries += 1;
      throw refusal;
    });
    const asked = operator.vacate().catch((error: unknown) => error);
    await clock.advance(5_000);
    expect(await asked).toBe(refusal);
    expect(tries).toBe(1);
    await operator.close();
  },
);
