import type { TestServer } from '@incumbent/zookeeper-testing';
import { startServer } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect } from '../../zookeeper/src/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import type { Election } from '../src/core/election.ts';
import { createElection } from '../src/core/election.ts';
import type { Term } from '../src/core/term.ts';
import { missing } from './support/zookeeper.ts';

const candidates = 1_000;
const connections = 20;
/**
 * So long that no ping (T / 3), no confirmation (R = T / 10) and no second look of a
 * follower is counted.
 */
const sessionTimeoutMs = 1_200_000;
const recheck = '1h';
const mostRequests = 6;
/**
 * Each brings every connection a reply. All earlier notifications and requests have been
 * counted by then.
 */
const barriers = 2;
/** Only turns a hang into a failure. */
const settlesWithinMs = 100_000;

interface Candidate {
  readonly client: ZooKeeper;
  readonly election: Election<unknown>;
  readonly term: Promise<Term<unknown>>;
  /** The place before its own, as soon as it knows it. */
  following: string | undefined;
}

/** The server's counts for one connection. */
interface Traffic {
  readonly received: number;
  readonly sent: number;
}

describe.skipIf(missing !== undefined)(
  `${candidates} candidates on ${connections} connections`,
  () => {
    let server: TestServer;
    let clients: readonly ZooKeeper[];
    /** In the order of the queue. */
    const queue: Candidate[] = [];

    beforeAll(async () => {
      server = await startServer({ heapMb: 256, maxSessionTimeoutMs: sessionTimeoutMs });
      clients = await Promise.all(
        Array.from({ length: connections }, () =>
          connect(server.connectionString, { sessionTimeoutMs }),
        ),
      );
      // The first leader has a connection to itself, so that its session can end alone.
      await (await join(clients[0] as ZooKeeper)).term;
      for (let i = 1; i < candidates; i += 1) {
        const { client } = await join(clients[1 + (i % (connections - 1))] as ZooKeeper);
        // One enters behind the other, and no two neighbours share a connection.
        await until(() => queue[i]?.following !== undefined && client.counters.outstanding === 0);
      }
    });

    afterAll(async () => {
      // Their sessions take the places with them.
      await Promise.all(clients.map((client) => client.close()));
      await Promise.allSettled(queue.map(({ election }) => election.close()));
      await server.close();
    });

    it('each watch the one before them, and nothing else but themselves', async () => {
      const watchers = await watchersOf(server);
      const places = [...watchers.keys()].filter((path) => path.includes('-n_'));
      expect(places.length).toBe(candidates);
      for (const [index, { client }] of queue.entries()) {
        const place = queue[index + 1]?.following ?? places.find((path) => isLast(path, places));
        const sessions = [client, queue[index + 1]?.client].flatMap((each) =>
          each === undefined ? [] : [sessionOf(each)],
        );
        expect(new Set(watchers.get(place as string))).toEqual(new Set(sessions));
      }
      // The leader watches its record, and no candidate watches the list.
      expect(watchers.get('/incumbent/herd')).toEqual([sessionOf(clients[0] as ZooKeeper)]);
      expect(watchers.size).toBe(candidates + 1);
    });

    it('are left in peace but for one when the leader’s session ends', async () => {
      const [leader, successor] = queue as [Candidate, Candidate];
      const { requests, notified } = await countDuring(async () => {
        await leader.client.close();
        await successor.term;
      });
      // The server closes its connection. Its messages there are not counted, except for
      // that one request.
      expect(notified).toEqual(new Map([[sessionOf(successor.client), 1]]));
      // One more: whether the leader left in order is asked again.
      expect(requests).toBeLessThanOrEqual(mostRequests);
      expect((await leader.term).isLeading()).toBe(false);
    });

    it('are left in peace but for one when the leader resigns', async () => {
      const [, leader, successor] = queue as [Candidate, Candidate, Candidate];
      const term = await leader.term;
      const { requests, notified } = await countDuring(async () => {
        await term[Symbol.asyncDispose]();
        await successor.term;
      });
      // The leader itself is told of its changes to its place and its record, both of
      // which it watches.
      expect(notified.get(sessionOf(leader.client)) ?? 0).toBeLessThanOrEqual(2);
      notified.delete(sessionOf(leader.client));
      expect(notified).toEqual(new Map([[sessionOf(successor.client), 1]]));
      // One more: the leader takes its watch on the record from the server.
      expect(requests - 1).toBeLessThanOrEqual(mostRequests);
    });

    async function join(client: ZooKeeper): Promise<Candidate> {
      const election = createElection({
        name: 'herd',
        // A session of that length would be waited for as long.
        backend: zookeeper(client, { recheck, predecessorWait: 'off' }),
      });
      const candidate: Candidate = {
        client,
        election,
        term: election.campaign({
          onStatus: ({ following }) => {
            if (following !== undefined) candidate.following = following;
          },
        }),
        following: undefined,
      };
      // Most of them never lead.
      candidate.term.catch(() => {});
      queue.push(candidate);
      return candidate;
    }

    /**
     * The requests that the server got, and the sessions that it notified, from one quiet moment
     * to the next.
     */
    async function countDuring(
      change: () => Promise<void>,
    ): Promise<{ readonly requests: number; readonly notified: Map<string, number> }> {
      const pings = () => clients.reduce((sum, { counters }) => sum + counters.pings, 0);
      const pingsBefore = pings();
      const before = await trafficOf(server);
      await change();
      const open = clients.filter(({ state }) => state === 'connected');
      for (let i = 0; i < barriers; i += 1) {
        await Promise.all(open.map((client) => client.stat('/')));
      }
      const after = await trafficOf(server);
      let requests = 0;
      const notified = new Map<string, number>();
      for (const [session, { received, sent }] of after) {
        const since = before.get(session) as Traffic;
        const asked = received - since.received - barriers;
        requests += asked;
        // Messages that were sent and answer nothing.
        const told = sent - since.sent - barriers - asked;
        if (told > 0) notified.set(session, told);
      }
      expect(after.size).toBe(open.length);
      expect(pings()).toBe(pingsBefore);
      return { requests, notified };
    }
  },
);

/** By sessions, as `cons` writes them. */
async function trafficOf(server: TestServer): Promise<ReadonlyMap<string, Traffic>> {
  const answer = await server.fourLetterWord('cons');
  const all = answer.matchAll(/recved=(\d+),sent=(\d+),sid=(0x[0-9a-f]+)/g);
  return new Map(
    [...all].map(([, received, sent, session]) => [
      session as string,
      { received: Number(received), sent: Number(sent) },
    ]),
  );
}

/** The sessions that watch each path. */
async function watchersOf(server: TestServer): Promise<ReadonlyMap<string, readonly string[]>> {
  const watchers = new Map<string, string[]>();
  let sessions: string[] = [];
  for (const line of (await server.fourLetterWord('wchp')).split('\n')) {
    if (line.startsWith('/')) {
      sessions = [];
      watchers.set(line, sessions);
    } else if (line.trim() !== '') {
      sessions.push(line.trim());
    }
  }
  return watchers;
}

function sessionOf(client: ZooKeeper): string {
  return `0x${BigInt.asUintN(64, client.session?.id ?? 0n).toString(16)}`;
}

function isLast(path: string, places: readonly string[]): boolean {
  const number = (place: string) => place.slice(-10);
  return places.every((place) => number(place) <= number(path));
}

async function until(look: () => boolean): Promise<void> {
  const deadline = performance.now() + settlesWithinMs;
  while (!look()) {
    if (performance.now() > deadline) throw new Error('the candidates do not settle');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
