/**
 * One process begins many elections in one moment. All of them lead, no term is lost, and each costs
 * a store a few requests, however many others begin beside it. Counted, not timed.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { startServer } from '@incumbent/zookeeper-testing';
import { describe, expect, test } from 'vitest';
import { connect } from '../../zookeeper/src/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import type { Backend, Election, Term } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import { meteredStores } from './support/metered-stores.ts';
import { missing as noZooKeeper } from './support/zookeeper.ts';

const elections = 200;
/** Our default. A machine that stands still for some seconds loses no term. */
const leaseMs = 15_000;
/** Of each term, after all of them lead. */
const confirmations = 2;
/** The first client of a store asks so much once: connections, scripts, leases, a first look. */
const once = 60;

/** A client of a store, and what it has been asked so far. */
interface Counted {
  readonly backend: Backend;
  readonly asked: () => number;
  close(): Promise<unknown>;
}

interface CountedStore {
  readonly name: string;
  readonly missing: string | undefined;
  /** From the campaign to the first term that leads. */
  readonly mostEach: number;
  start(): Promise<Counted>;
}

const mostEach: Readonly<Record<string, number>> = {
  'PostgreSQL by pg': 4,
  'PostgreSQL by postgres': 4,
  'Redis by redis': 4,
  'Redis by ioredis': 4,
  etcd: 13,
  'Kubernetes (a stand-in for the API server)': 3,
};

const stores: readonly CountedStore[] = [
  ...meteredStores.map(
    ({ name, missing, start }): CountedStore => ({
      name,
      missing,
      mostEach: mostEach[name] ?? 0,
      async start() {
        const store = await start(leaseMs);
        const { backend, meter } = await store.open();
        return { backend, asked: () => meter.requestCount, close: () => store.close() };
      },
    }),
  ),
  {
    name: 'ZooKeeper',
    missing: noZooKeeper,
    mostEach: 11,
    async start() {
      const server = await startServer();
      const client = await connect(server.connectionString, { sessionTimeoutMs: leaseMs });
      return {
        backend: zookeeper(client),
        asked: () => client.counters.requests,
        async close() {
          await client.close();
          await server.close();
        },
      };
    },
  },
];

/** Resolves when each of these terms has been confirmed so often. */
function confirmed(terms: readonly Term<unknown>[], times: number): Promise<void> {
  const left = new Map(terms.map(({ election }) => [election, times]));
  return new Promise((resolve) => {
    const onConfirmed = (message: unknown) => {
      const { election } = message as { readonly election: string };
      const count = left.get(election);
      if (count === undefined) return;
      if (count > 1) left.set(election, count - 1);
      else left.delete(election);
      if (left.size > 0) return;
      unsubscribe('incumbent:confirmed', onConfirmed);
      resolve();
    };
    subscribe('incumbent:confirmed', onConfirmed);
  });
}

for (const { name, missing, mostEach, start } of stores) {
  describe.skipIf(missing !== undefined).concurrent(`${elections} elections on ${name}`, () => {
    test(`that begin in one moment all lead, and ask at most ${mostEach} times each`, async () => {
      const { backend, asked, close } = await start();
      const lost: unknown[] = [];
      const prefix = `many on ${name}`.replaceAll(/\W+/g, '-').toLowerCase().replace(/-$/, '');
      const timing = /etcd|ZooKeeper/.test(name) ? {} : { lease: leaseMs };
      const all: Election<unknown>[] = Array.from({ length: elections }, (_, index) =>
        createElection({ name: `${prefix}-${index}`, backend, ...timing }),
      );
      const terms = await Promise.all(
        all.map(async (election) => {
          const term = await election.campaign();
          term.signal.addEventListener('abort', () => lost.push(term.signal.reason));
          return term;
        }),
      );
      const each = asked() / elections;
      expect(each).toBeLessThanOrEqual(mostEach + once / elections);
      await confirmed(terms, confirmations);
      expect(lost).toEqual([]);
      expect(terms.every((term) => term.isLeading())).toBe(true);
      const outcomes = await Promise.all(
        terms.map(async (term) => {
          await term[Symbol.asyncDispose]();
          return term.ended;
        }),
      );
      // None is left behind when all are given back in one moment.
      expect(outcomes.filter(({ released }) => !released)).toEqual([]);
      await Promise.all(all.map((election) => election.close()));
      await close();
    });
  });
}
