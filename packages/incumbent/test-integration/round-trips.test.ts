/**
 * A clean hand-over takes three round trips where the store can wake us. The first gives the seat
 * up and wakes the next candidate. In the second that one looks, and the third takes the seat.
 * Counted, not timed.
 */
import { RoundTrips } from '@incumbent/servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createElection } from '../src/index.ts';
import type { MeteredClient, RunningStore } from './support/metered-stores.ts';
import { meteredStores } from './support/metered-stores.ts';

/** So long that no confirmation comes during a hand-over: a write that meets one is done again. */
const leaseMs = 600_000;
/** Of etcd, where the very first leader waits 0.4 of it, and confirms every 0.1. */
const ttlMs = 20_000;
/** A store that is quiet for so long has settled. */
const quietMs = 300;
/** At first connections are opened and statements prepared. */
const warmUps = 6;
const counted = 3;

/** Until a client has all of its connections and answers, and nothing has passed for a while. */
async function settled({ meter }: MeteredClient, connections: number): Promise<void> {
  await new Promise<void>((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    void meter.until(({ open, isAnswered }) => {
      clearTimeout(timer);
      timer = undefined;
      if (open >= connections && isAnswered) timer = setTimeout(resolve, quietMs);
      return false;
    });
  });
}

for (const { name, missing, connections, roundTrips, start } of meteredStores) {
  describe.skipIf(missing !== undefined).concurrent(`a clean hand-over on ${name}`, () => {
    let store: RunningStore;

    beforeAll(async () => {
      store = await start(ttlMs);
    });

    afterAll(() => store?.close());

    test(`takes ${roundTrips} round trips`, async () => {
      const trips = new RoundTrips();
      const travellers = [trips.traveller(), trips.traveller()] as const;
      const clients = [await store.open(travellers[0]), await store.open(travellers[1])] as const;
      const enter = (who: 0 | 1) => {
        const { backend } = clients[who];
        const timing = name === 'etcd' ? {} : { lease: leaseMs };
        // Another handle each time: one that has resigned stands aside for a second.
        const election = createElection({ name: 'handed-over', backend, ...timing });
        return { election, led: election.campaign() };
      };
      let leader = { who: 0 as 0 | 1, ...enter(0) };
      const taken: number[] = [];
      for (let turn = 0; turn < warmUps + counted; turn += 1) {
        const term = await leader.led;
        const who = leader.who === 0 ? 1 : 0;
        const follower = { who, ...enter(who) } as const;
        await Promise.all(clients.map((client) => settled(client, connections)));
        trips.restart();
        term.resign();
        void term[Symbol.asyncDispose]();
        await follower.led;
        if (turn >= warmUps) taken.push(travellers[who].taken);
        await term.ended;
        await leader.election.close();
        leader = follower;
      }
      const last = await leader.led;
      await last[Symbol.asyncDispose]();
      await leader.election.close();
      for (const { meter } of clients) expect(meter.trouble).toBeUndefined();
      // A confirmation on etcd, every 2 s, may have come in between after all: then one takes more.
      const counts = name === 'etcd' ? [Math.min(...taken)] : taken;
      expect(counts).toEqual(counts.map(() => roundTrips));
    });
  });
}
