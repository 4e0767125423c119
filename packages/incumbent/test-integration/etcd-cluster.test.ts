import type { EtcdServer } from '@incumbent/servers';
import { afterEach, describe, expect, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { electionKeys, encodeKey } from '../src/backends/etcd/keys.ts';
import type { TxnRequest } from '../src/backends/etcd/messages.ts';
import { txn } from '../src/backends/etcd/methods.ts';
import type { EtcdPlace } from '../src/backends/etcd/session.ts';
import { EtcdSession, isThere } from '../src/backends/etcd/session.ts';
import { EtcdStore } from '../src/backends/etcd/store.ts';
import { systemClock } from '../src/base/clock.ts';
import { aborted, end, missing, until, useEtcd, waiting } from './support/etcd.ts';

const candidate = { id: 'a', incarnation: 'i', addresses: [], metadata: {} };
const within = (ms: number) => AbortSignal.timeout(ms);

describe.skipIf(missing !== undefined)('an election on a cluster of etcd', () => {
  const servers = useEtcd(3);

  /** All but this one stand still: it is cut off from every quorum, and can be reached. */
  async function cutOff(member: EtcdServer): Promise<void> {
    for (const other of servers.cluster.members) if (other !== member) await other.freeze();
  }

  afterEach(async () => {
    for (const member of servers.cluster.members) member.thaw();
    await servers.cluster.start();
  });

  it('never confirms through a member that is cut off, be it the leader of the cluster', async ({
    onTestFinished,
  }) => {
    const stand = servers.scene(onTestFinished);
    for (const role of ['leader', 'follower'] as const) {
      const leader = await stand.cluster.leader();
      const others = stand.cluster.members.filter((member) => member !== leader);
      const asked = role === 'leader' ? leader : (others[0] as EtcdServer);
      const calls = new EtcdCalls([stand.connect(asked)], undefined);
      const session = new EtcdSession({
        calls,
        clock: systemClock,
        ttlMs: 30_000,
        onTrouble: () => {},
      });
      const keys = electionKeys('', `${stand.name}-${role}`);
      const store = new EtcdStore(session, keys);
      const entry = { guid: `guid-${role}`, candidate };
      const place = (await store.enter(entry, within(10_000))) as EtcdPlace;
      expect(await session.confirm([place], within(10_000))).toMatchObject({ there: [place] });
      await cutOff(asked);
      // A confirmation needs a read that is not `serializable`. Without one, the member that is cut
      // off says from memory that the place is there.
      const withoutQuorum: Partial<TxnRequest>[] = [
        { compare: [isThere(place)] },
        {
          compare: [isThere(place)],
          success: [{ range: { key: encodeKey(place.key), serializable: true } }],
        },
      ];
      for (const request of withoutQuorum) {
        expect((await calls.call(txn, request, within(10_000))).succeeded).toBe(true);
      }
      const confirmation = session.confirm([place], within(2_000));
      await expect(confirmation, role).rejects.toThrow();
      for (const member of stand.cluster.members) member.thaw();
      await stand.cluster.start();
      await until('it confirms again', async () => {
        const proof = session.confirm([place], within(4_000));
        return (await proof.catch(() => undefined))?.there.length === 1;
      });
      await store.leave(entry, place, within(10_000));
      await store.close();
    }
  });

  it('goes on through another member when the one that it uses stands still', async ({
    onTestFinished,
  }) => {
    const stand = servers.scene(onTestFinished);
    const clients = stand.cluster.members.map((member) => stand.connect(member));
    const backend = stand.backend(clients, { ttl: 8_000 });
    const term = await stand.election(backend, 'a').campaign();
    const behind = waiting(stand.election(stand.backend([...clients].reverse()), 'b'));
    await until('b follows', () => behind.following.length > 0);
    const [first] = stand.cluster.members as [EtcdServer];
    await first.freeze();
    const since = performance.now();
    // Belief would be over: it leads by what other members have confirmed.
    while (performance.now() - since < 5_000) {
      expect(term.isLeading()).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    first.thaw();
    await end(term);
    await end(await behind.won);
  });

  it.for(['stands still', 'is down'])(
    'answers operators through another member when the first %s',
    async (how, { onTestFinished }) => {
      const stand = servers.scene(onTestFinished);
      const [first, ...rest] = stand.cluster.members as [EtcdServer, ...EtcdServer[]];
      const others = rest.map((member) => stand.connect(member));
      const leader = stand.election(stand.backend(others, { ttl: 20_000 }), 'a');
      const term = await leader.campaign();
      await (how === 'is down' ? first.kill() : first.freeze());
      // Each by a backend of its own, for the second question would know better.
      const asking = () => {
        const clients = stand.cluster.members.map((member) => stand.connect(member));
        return stand.election(stand.backend(clients, { ttl: 8_000 }), 'operator');
      };
      expect(await asking().leader()).toMatchObject({ state: 'led', leader: { id: 'a' } });
      expect(await asking().candidates()).toMatchObject([{ id: 'a' }]);
      expect(await asking().history()).toEqual([]);
      expect((await asking().vacate()).changed).toBe(true);
      await aborted(term.signal);
      await end(term);
    },
  );

  it('does not lead through a member that is cut off, and others lead without it', async ({
    onTestFinished,
  }) => {
    const stand = servers.scene(onTestFinished);
    const [cut, ...rest] = stand.cluster.members as [EtcdServer, ...EtcdServer[]];
    const options = { ttl: 6_000 };
    const a = stand.election(stand.backend(stand.connect(cut), options), 'a');
    const first = await a.campaign();
    const others = rest.map((member) => stand.connect(member));
    const b = waiting(stand.election(stand.backend(others, options), 'b'));
    await until('b follows', () => b.following.length > 0);
    await cut.freeze();
    const second = await b.won;
    expect(first.isLeading()).toBe(false);
    cut.thaw();
    await aborted(first.signal);
    expect((await end(first)).released).toBe(false);
    expect(second.isLeading()).toBe(true);
    await end(second);
  });
});
