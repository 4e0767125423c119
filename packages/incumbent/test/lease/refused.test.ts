/** Writes that a store refuses for good: a right that is missing, a replica, a record too large. */
import { expect, test } from 'vitest';
import { RefusedError, StoreUnsuitableError } from '../../src/index.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

test('end a campaign, instead of being tried for ever', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let tries = 0;
  const election = candidate(store, clock, {
    async swap() {
      tries += 1;
      throw new StoreUnsuitableError('this account may only read');
    },
  });
  const campaign = election.campaign().catch((error: unknown) => error);
  await clock.advance(1_000);
  expect(await campaign).toBeInstanceOf(StoreUnsuitableError);
  expect(await campaign).toMatchObject({ message: 'this account may only read' });
  expect(tries).toBe(1);
  await election.close();
});

test('do not end it when the record says that the write was done all the same', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let refuses = true;
  store.onSwap = async (apply) => {
    const result = apply();
    if (refuses) throw new StoreUnsuitableError('says one server of two');
    return result;
  };
  const election = candidate(store, clock);
  const campaign = election.campaign();
  await clock.advance(1_000);
  const term = await campaign;
  expect(term.isLeading()).toBe(true);
  refuses = false;
  const ended = term[Symbol.asyncDispose]();
  await clock.advance(1_000);
  await ended;
  await election.close();
});

test.for([new StoreUnsuitableError('not with this account'), new RefusedError('not of this one')])(
  'end an operator’s request at once: %s',
  async (refusal) => {
    const clock = new SimulatedClock();
    const store = new ScriptedStore();
    store.hold('a', 1n, 10_000);
    let tries = 0;
    const operator = candidate(store, clock, {
      async swap() {
        tries += 1;
        throw refusal;
      },
    });
    const asked = operator.vacate().catch((error: unknown) => error);
    await clock.advance(5_000);
    expect(await asked).toBe(refusal);
    expect(tries).toBe(1);
    await operator.close();
  },
);

test.each([
  ['once', 1],
  ['always', Number.POSITIVE_INFINITY],
])('a conflict that leaves no new version behind, %s, is one try', async (_, conflicts) => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  // A transaction that lost against a neighbour's was rolled back.
  store.onSwap = async (apply) => (store.swaps > conflicts ? apply() : { outcome: 'conflict' });
  const election = candidate(store, clock);
  const tried = election.lead(() => 'done', { wait: 0 }).catch((error: unknown) => error);
  await clock.advance(60_000);
  if (conflicts === 1) {
    expect(await tried).toBe('done');
  } else {
    expect(await tried).toMatchObject({
      why: {
        kind: 'unreachable',
        cause: { message: expect.stringContaining('changed under each of 10 attempts') },
      },
    });
  }
  await election.close();
});
