import type { TestEnsemble, TestMember } from '@incumbent/zookeeper-testing';
import { serverAvailable, startEnsemble } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../../src/index.ts';
import { ZooKeeperError } from '../../src/index.ts';
import { needServers, scoped } from '../support/scope.ts';
import { nextState, recordStates, refusal, settling, soon, until } from '../support/waiting.ts';

// One after the other, because they stop the same servers.
describe('an ensemble', () => {
  needServers();
  let ensemble: TestEnsemble;
  beforeAll(async () => {
    if (serverAvailable() === undefined) ensemble = await startEnsemble(3);
  });
  afterAll(() => ensemble?.close());

  it(
    'session moved: a write through the old server is refused, and its client goes on elsewhere',
    scoped(async (scope) => {
      const [one, two] = (await ensemble.followers()) as [TestMember, TestMember];
      const options = { sessionTimeoutMs: 20_000 };
      const old = await scope.connect(one.connectionString, options);
      const session = old.session?.id;
      await old.create('/moved', 'before');
      const moved = await scope.connect(two.connectionString, {
        ...options,
        session: old.exportSession()!,
      });
      expect(moved.session?.id).toBe(session);
      // Both clients take themselves for connected. For the servers the last one to attach has the
      // session.
      const writes: readonly ((client: ZooKeeper) => Promise<unknown>)[] = [
        (client) => client.set('/moved', 'through the old server'),
        (client) => client.confirm(['/moved']),
        (client) => client.transaction().set('/moved', 'through the old server').commit(),
      ];
      let [loser, winner] = [old, moved];
      for (const write of writes) {
        const suspended = nextState(loser, 'suspended');
        const connected = nextState(loser, 'connected');
        await winner.set('/moved', 'through the new server');
        const error = await refusal(write(loser));
        // 3.8 closes the connection without a word.
        expect(['SESSION_MOVED', 'CONNECTION_LOSS']).toContain(error.code);
        await suspended;
        await connected;
        await loser.sync('/');
        expect((await loser.get('/moved')).text).toBe('through the new server');
        // Now the session belongs to this client.
        await write(loser);
        expect(loser.session?.id).toBe(session);
        [loser, winner] = [winner, loser];
      }
    }),
  );

  it(
    'a frozen member is left for another one before the session can expire',
    scoped(async (scope) => {
      const followers = await ensemble.followers();
      const url = `zk://${followers.map(({ host, port }) => `${host}:${port}`).join(',')}`;
      const client = await scope.connect(url, { sessionTimeoutMs: 5_000 });
      const { id, server } = client.session!;
      const [member] = followers.filter(({ port }) => server.endsWith(`:${port}`));
      const { path } = await client.create('/frozen-', 'x', { ephemeral: true, sequential: true });
      const watch = await client.watch(path);
      const states = recordStates(client);
      const connected = nextState(client, 'connected');
      await member!.freeze();
      scope.finally(async () => {
        member!.thaw();
        await ensemble.waitForQuorum({ atLeast: 3 });
      });
      expect((await refusal(client.get(path))).code).toBe('CONNECTION_LOSS');
      await connected;
      expect(states).toEqual(['suspended', 'connected']);
      expect(client.session?.id).toBe(id);
      expect(client.session?.server).not.toBe(server);
      await client.confirm([path]);
      await client.set(path, 'y');
      expect(await soon(watch.changed, 'the change is told')).toMatchObject({ type: 'changed' });
    }),
  );

  it(
    'without a quorum calls wait; with one again they are answered, in the same session',
    scoped(async (scope) => {
      const other = await scope.connect(ensemble.connectionString, { sessionTimeoutMs: 60_000 });
      const client = await scope.connect(ensemble.connectionString, { sessionTimeoutMs: 30_000 });
      const session = client.session?.id;
      await client.create('/quorum', 'before');
      await client.create('/quorum/held', null, { ephemeral: true });
      const watch = await client.watch('/quorum');
      const states = recordStates(client);
      const leader = await ensemble.leader();
      const followers = ensemble.members.filter((member) => member !== leader);
      scope.finally(async () => {
        const stopped = followers.filter(({ state }) => state === 'stopped');
        await Promise.all(stopped.map((member) => member.restart()));
      });
      await Promise.all(followers.map((member) => member.kill()));
      // For a moment the leader goes on serving.
      await until('the leader stops to serve', async () => {
        return (await leader.fourLetterWord('srvr')).includes('not currently serving');
      });
      await until('it is cut off', () => client.state === 'suspended');
      const calls = [client.get('/quorum'), client.confirm(['/quorum/held']), client.sync()];
      const settled = calls.map((call) => settling<unknown>(call));
      // The server that is left closes every connection, so the client tries it again and again.
      const { attempts } = client.counters;
      await until('it tries', () => client.counters.attempts >= attempts + 6);
      expect(client.counters.outstanding).toBe(3);

      await Promise.all(followers.map((member) => member.restart()));
      await ensemble.waitForQuorum();
      for (const call of settled) expect((await call).error).toBeUndefined();
      expect(states).not.toContain('expired');
      expect(states.at(-1)).toBe('connected');
      expect(client.session?.id).toBe(session);
      await other.connected({ timeoutMs: 30_000 });
      await other.set('/quorum', 'after');
      expect(await soon(watch.changed, 'the change is told')).toMatchObject({ type: 'changed' });
      await ensemble.waitForQuorum({ atLeast: 3 });
    }),
  );

  it(
    'a rolling restart under load: each call settles once, in order; no acknowledged write and no watch is lost',
    scoped(async (scope) => {
      const options = { sessionTimeoutMs: 30_000 };
      const clients = await Promise.all(
        [1, 2].map(() => scope.connect(ensemble.connectionString, options)),
      );
      const watcher = await scope.connect(ensemble.connectionString, options);
      const expirations = () => [...clients, watcher].map(({ counters }) => counters.expirations);
      await watcher.create('/rolling');
      const watched = Array.from({ length: 200 }, (_, i) => `/rolling/watched-${i}`);
      await Promise.all(watched.map((path) => watcher.create(path, 'before')));
      const watches = await Promise.all(watched.map((path) => watcher.watch(path)));
      const told = watches.map(({ changed }) => changed.then(({ type }) => type));
      // A counter that is followed all the time: the last value seen must be the last one written.
      await watcher.create('/rolling/counter', '0');
      const stop = new AbortController();
      const seen: number[] = [];
      const following = (async () => {
        for await (const value of watcher.follow('/rolling/counter', { signal: stop.signal })) {
          seen.push(Number(value?.text));
        }
      })();

      const loads = await Promise.all(clients.map((client, i) => startLoad(client, i)));
      await ensemble.rollingRestart({ timeoutMs: 60_000 });
      const histories = await Promise.all(loads.map((load) => load.stop()));

      const reader = await scope.connect(ensemble.connectionString, options);
      await reader.sync('/');
      for (const [i, history] of histories.entries()) {
        const kinds = { acknowledged: 0, ambiguous: 0, refused: 0 };
        const there = new Set((await reader.getChildren(`/rolling/load-${i}`)).children);
        let lastZxid = 0n;
        for (const [n, { settledTimes, zxid, error }] of history.entries()) {
          expect(settledTimes).toBe(1);
          if (error === undefined) {
            kinds.acknowledged += 1;
            expect(there.has(String(n))).toBe(true);
            // Applied in the order of the calls.
            expect(zxid).toBeGreaterThan(lastZxid);
            lastZxid = zxid;
          } else if (error.code === 'CONNECTION_LOSS') {
            kinds.ambiguous += 1;
          } else {
            kinds.refused += 1;
          }
        }
        // Every call was acknowledged, or is in doubt after a lost connection. None ended
        // otherwise.
        expect(kinds.refused).toBe(0);
        expect(kinds.acknowledged).toBeGreaterThan(100);
        expect(settledOrder(history)).toEqual([]);
        const { counters } = clients[i]!;
        expect(counters.outstanding).toBe(0);
        expect(counters.connects).toBeGreaterThan(1);
      }
      expect(expirations()).toEqual([0, 0, 0]);

      // No watch was lost on the way.
      await Promise.all(watched.map((path) => reader.set(path, 'after')));
      expect(new Set(await soon(Promise.all(told), 'all are told'))).toEqual(new Set(['changed']));
      const last = Number((await reader.get('/rolling/counter')).text);
      await until('the last value is seen', () => seen.at(-1) === last);
      expect(seen).toEqual([...seen].sort((a, b) => a - b));
      stop.abort();
      await following;
    }),
  );
});

/** One create of the load: when it settled, and how. */
interface Attempt {
  settledTimes: number;
  /** Its place among all that settled. */
  place: number;
  zxid: bigint;
  error: ZooKeeperError | undefined;
}

/**
 * Creates /rolling/load-<i>/0, 1, 2 …, with 20 under way at any time, until it is stopped. The
 * first client also counts up the counter.
 */
async function startLoad(client: ZooKeeper, i: number) {
  const folder = `/rolling/load-${i}`;
  await client.create(folder);
  const history: Attempt[] = [];
  let settled = 0;
  let going = true;
  const onError = (error: unknown) => {
    if (!(error instanceof ZooKeeperError)) throw error;
    return error;
  };
  const one = async () => {
    const attempt: Attempt = { settledTimes: 0, place: 0, zxid: 0n, error: undefined };
    const path = `${folder}/${history.length}`;
    history.push(attempt);
    await client.create(path).then(
      ({ zxid }) => Object.assign(attempt, { zxid }),
      (error) => Object.assign(attempt, { error: onError(error) }),
    );
    attempt.settledTimes += 1;
    attempt.place = settled;
    settled += 1;
  };
  const worker = async () => {
    while (going) {
      await one();
      // The load has to be there all the time. It need not be heavy.
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const counting = async () => {
    for (let n = 1; going && i === 0; n += 1) {
      await client.set('/rolling/counter', String(n)).catch(onError);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const work = Promise.all([...Array.from({ length: 20 }, worker), counting()]);
  return {
    async stop(): Promise<readonly Attempt[]> {
      going = false;
      await soon(work, 'all calls settle');
      return history;
    },
  };
}

/** Pairs of calls that settled in another order than they were made in. */
function settledOrder(history: readonly Attempt[]): number[] {
  const wrong: number[] = [];
  for (let n = 1; n < history.length; n += 1) {
    if (history[n]!.place < history[n - 1]!.place) wrong.push(n);
  }
  return wrong;
}
