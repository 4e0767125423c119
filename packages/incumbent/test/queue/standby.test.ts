/** The side of a candidate that the leader before it may name. */
import { expect, it } from 'vitest';
import { deriveTiming } from '../../src/base/timing.ts';
import type { Scope } from '../../src/core/contest.ts';
import { QueueMemory } from '../../src/mechanisms/queue/memory.ts';
import type { QueueParts } from '../../src/mechanisms/queue/settings.ts';
import { Standby } from '../../src/mechanisms/queue/standby.ts';
import type { Place, SessionEvent } from '../../src/mechanisms/queue/store.ts';
import { SimulatedClock } from '../../src/testing/index.ts';

const candidate = { id: 'b', incarnation: 'b-1', addresses: [], metadata: {} };
const entry = { guid: 'g', candidate };
const place: Place = { name: '/e/2', token: 2n, session: 1 };

/** A candidate that is next in line, on a store that answers at once. R is 1 s. */
function nextInLine() {
  const clock = new SimulatedClock();
  const marks: string[] = [];
  const confirmedAtMs: number[] = [];
  const listeners = new Set<(event: SessionEvent) => void>();
  const session = {
    ...{ isSuspended: false, maxPlaces: 1, isOver: () => false },
    onEvent: (listener: (event: SessionEvent) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    confirm: async (there: readonly Place[]) => {
      confirmedAtMs.push(clock.monotonicMs());
      return { there, gone: [] };
    },
  };
  const succession = {
    mark: async (_: Place, { mark }: { readonly mark: { readonly nonce: string } }) => {
      marks.push(mark.nonce);
      return true;
    },
  };
  let drawn = 0;
  const scope = {
    ...{ clock, timing: deriveTiming({}, { sessionTimeoutMs: 10_000 }), election: 'e' },
    ...{ onTrouble: () => {}, uniqueId: () => `nonce ${++drawn}` },
  };
  const parts = { store: { session, succession }, scope: scope as Partial<Scope> };
  const queue = parts as unknown as QueueParts<unknown>;
  const own = { entry, place, ready: undefined };
  const standby = new Standby(queue, new QueueMemory(queue), own, () => {});
  const tell = async (...events: readonly SessionEvent[]) => {
    for (const event of events) for (const listener of [...listeners]) listener(event);
    await clock.advance(0);
  };
  return { clock, standby, marks, confirmedAtMs, tell };
}

it('marks its place again as soon as the connection is back', async () => {
  const { clock, standby, marks, tell } = nextInLine();
  await clock.advance(100);
  expect(marks).toEqual(['nonce 1']);
  await tell('suspended', 'restored');
  expect(marks).toEqual(['nonce 1', 'nonce 2']);
  standby.close();
});

it('leads by no confirmation that was sent over an earlier connection', async () => {
  const { clock, standby, confirmedAtMs, tell } = nextInLine();
  await clock.advance(100);
  expect(standby.youngProof?.sentAt.monotonicMs).toBe(0);
  await tell('suspended');
  expect(standby.youngProof).toBeUndefined();
  await tell('restored');
  expect(standby.youngProof?.sentAt.monotonicMs).toBe(100);
  expect(confirmedAtMs).toEqual([0, 100]);
  standby.close();
});
