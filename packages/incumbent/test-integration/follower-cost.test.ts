/**
 * Where the store can wake a waiting candidate, it looks once a lease. That holds however often
 * the leader confirms, and however often it would poll. Counted beside the confirmations of the
 * leader, not timed.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Term } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import type { RunningStore } from './support/metered-stores.ts';
import { meteredStores } from './support/metered-stores.ts';

/** Our default: a machine that stands still for some seconds does not lose the term. */
const leaseMs = 15_000;
const renewEveryMs = 100;
const confirmations = 100;
/**
 * 100 confirmations are less than one lease. A machine on which each takes a second makes it seven
 * requests. A store that woke a follower for each, or had it polled, would be asked 100 times.
 */
const mostRequests = 10;
/** Keep a lease of etcd alive, once a third of it, for all elections of a client. */
const upkeep = 'message';

/**
 * Resolves when the leader of `election` has confirmed `term` so often. Rejects when the
 * term is lost.
 */
function confirmed(election: string, term: Term<unknown>, times: number): Promise<void> {
  return new Promise((resolve, reject) => {
    term.signal.addEventListener('abort', () => reject(term.signal.reason), { once: true });
    let left = times;
    const onConfirmed = (message: unknown) => {
      if ((message as { readonly election: string }).election !== election) return;
      left -= 1;
      if (left > 0) return;
      unsubscribe('incumbent:confirmed', onConfirmed);
      resolve();
    };
    subscribe('incumbent:confirmed', onConfirmed);
  });
}

for (const { name, missing, connections, start } of meteredStores) {
  describe.skipIf(missing !== undefined).concurrent(`a follower on ${name}`, () => {
    let store: RunningStore;

    beforeAll(async () => {
      store = await start(leaseMs);
    });

    afterAll(() => store?.close());

    test(`asks at most ${mostRequests} times while its leader confirms ${confirmations} times`, async () => {
      const election = `cost on ${name}`.replaceAll(/\W+/g, '-').toLowerCase().replace(/-$/, '');
      const timing = {
        ...(name === 'etcd' ? {} : { lease: leaseMs }),
        renewEvery: renewEveryMs,
        pollEvery: renewEveryMs,
      };
      const [one, other] = [await store.open(), await store.open()];
      const leader = createElection({ name: election, backend: one.backend, ...timing });
      const follower = createElection({ name: election, backend: other.backend, ...timing });
      const term = await leader.campaign();
      const withdrawn = new AbortController();
      const waiting = follower.campaign({ signal: withdrawn.signal });
      await other.meter.until(({ open }) => open >= connections);
      // It has asked all its first questions.
      await confirmed(election, term, 20);
      const asked = () => other.meter.requestCount - (other.meter.requests.get(upkeep) ?? 0);
      const before = asked();
      await confirmed(election, term, confirmations);
      const requests = asked() - before;
      expect(other.meter.trouble).toBeUndefined();
      expect(requests).toBeLessThanOrEqual(mostRequests);
      expect(term.isLeading()).toBe(true);
      withdrawn.abort();
      await expect(waiting).rejects.toThrow();
      await term[Symbol.asyncDispose]();
      await Promise.all([leader.close(), follower.close()]);
    });
  });
}
