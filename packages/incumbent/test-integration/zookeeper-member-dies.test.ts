// A server of the ensemble dies under a leader, under its follower, or under both. GoLea's own test
// of this is called "recovers to another server".
//
// MEMBER_DEATHS=20 repeats each case that often, and prints how long the leader was unconfirmed.
import diagnostics from 'node:diagnostics_channel';
import type { TestServer, TestZooKeeper } from '@incumbent/zookeeper-testing';
import { startZooKeeper } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect } from '../../zookeeper/src/index.ts';
import type { ZooKeeperOptions } from '../src/backends/zookeeper/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import type { View } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import { missing, until } from './support/zookeeper.ts';

const rounds = Number(process.env['MEMBER_DEATHS'] ?? 1);
/** Belief is 8 s of it. The other servers need 1 s to notice a frozen one, and then elect. */
const sessionTimeoutMs = 20_000;
let names = 0;

// One after the other, because they strike the same servers.
describe.skipIf(missing !== undefined)('a member of the ensemble dies', () => {
  let ensemble: TestZooKeeper;
  beforeAll(async () => {
    ensemble = await startZooKeeper({ servers: 3 });
  });
  afterAll(() => ensemble?.close());

  function serverOf(client: ZooKeeper): TestServer {
    const server = ensemble.servers.find(
      ({ host, port }) => `${host}:${port}` === client.session?.server,
    );
    if (server === undefined)
      throw new Error(`no server of the ensemble: ${client.session?.server}`);
    return server;
  }

  /** A client knows all servers and takes any of them, so more than one may have to be made. */
  async function clientOn(isWanted: (server: TestServer) => boolean): Promise<ZooKeeper> {
    for (;;) {
      const client = await connect(ensemble.connectionString, { sessionTimeoutMs });
      if (isWanted(serverOf(client))) {
        onTestFinished(() => client.close());
        return client;
      }
      await client.close();
    }
  }

  function candidate(client: ZooKeeper, id: string, name: string, options: ZooKeeperOptions = {}) {
    const backend = zookeeper(client, options);
    const election = createElection({ name, backend, candidate: { id } });
    onTestFinished(() => election.close());
    return election;
  }

  async function strike(server: TestServer, how: 'killed' | 'frozen'): Promise<void> {
    onTestFinished(async () => {
      if (how === 'killed') await server.restart();
      else server.thaw();
      // The next test begins with three that serve.
      await until('all serve', async () =>
        (await Promise.all(ensemble.servers.map(modeOf))).every((mode) => mode !== undefined),
      );
    });
    await (how === 'killed' ? server.kill() : server.freeze());
  }

  const under = ['leader', 'follower', 'both'] as const;
  const cases = under.flatMap((whom) =>
    (['killed', 'frozen'] as const).flatMap((how) =>
      Array.from({ length: Math.ceil(rounds / 2) }, (_, index) => ({
        whom,
        how,
        round: index + 1,
      })),
    ),
  );
  it.each(cases)(
    'under $whom, $how ($round): the leader keeps its token',
    async ({ whom, how }) => {
      names += 1;
      const name = `death-${names}`;
      const leading = await clientOn(() => true);
      const home = serverOf(leading);
      const following = await clientOn((server) => (server === home) === (whom === 'both'));
      const struck = whom === 'follower' ? serverOf(following) : home;
      const term = await candidate(leading, 'leader', name).campaign();
      const follower = candidate(following, 'follower', name);
      let isFollowing = false;
      const next = follower.campaign({
        onStatus: ({ role }) => {
          isFollowing ||= role === 'follower';
        },
      });
      next.catch(() => {});
      await until('it follows', () => isFollowing);

      const confirmed = confirmationsOf(term.token);
      const told = await storyOf(leading, struck);
      await strike(struck, how);
      const struckAtMs = performance.now();
      // One may have been under way. The second was sent after the strike.
      const before = confirmed.count;
      await until('it is confirmed', () => confirmed.count >= before + 2 || term.signal.aborted);
      if (rounds > 1) {
        const ms = Math.round(performance.now() - struckAtMs);
        console.log(`under ${whom}, ${how}: confirmed twice within ${ms} ms`);
      }
      expect(term.signal.reason, told()).toBeUndefined();
      expect(term.isLeading()).toBe(true);
      if (whom !== 'follower') expect(serverOf(leading)).not.toBe(struck);
      // The follower says so too, when its client has found a server that serves.
      let view: View | undefined;
      await until('the follower sees', async () => {
        view = await follower.leader().catch(() => undefined);
        return view !== undefined;
      });
      expect(view).toMatchObject({ state: 'led', token: term.token, leader: { id: 'leader' } });

      await term[Symbol.asyncDispose]();
      expect(await term.ended).toMatchObject({ reason: 'resigned', released: true });
      const won = await next;
      expect(won.token).toBeGreaterThan(term.token);
      expect(won.isLeading()).toBe(true);
      await won[Symbol.asyncDispose]();
    },
  );

  it('under the holder of a lock of the layout hadoop, frozen: it keeps its token', async () => {
    const client = await clientOn(() => true);
    const home = serverOf(client);
    const term = await candidate(client, 'leader', 'death-lock', { layout: 'hadoop' }).campaign();
    const confirmed = confirmationsOf(term.token);
    const told = await storyOf(client, home);
    await strike(home, 'frozen');
    const before = confirmed.count;
    await until('it is confirmed', () => confirmed.count >= before + 2 || term.signal.aborted);
    expect(term.signal.reason, told()).toBeUndefined();
    expect(term.isLeading()).toBe(true);
    expect(serverOf(client)).not.toBe(home);
    await term[Symbol.asyncDispose]();
  });
});

/** For a failure: the part of the server that is struck, and the states of the client since. */
async function storyOf(client: ZooKeeper, struck: TestServer): Promise<() => string> {
  const fromMs = performance.now();
  const events = [`the ${await modeOf(struck)} is struck`];
  client.onState(({ state, error }) => {
    const ms = Math.round(performance.now() - fromMs);
    events.push(`${ms} ms: ${state} on ${client.session?.server} (${error?.message ?? ''})`);
  });
  return () => events.join('; ');
}

/** Undefined: it does not serve. */
async function modeOf(server: TestServer): Promise<string | undefined> {
  const answer = await server.fourLetterWord('srvr').catch(() => '');
  return /^Mode: (.+)$/m.exec(answer)?.[1];
}

/** Counts what `term`s of this token have confirmed. */
function confirmationsOf(token: bigint): { readonly count: number } {
  const seen = { count: 0 };
  const onConfirmed = (message: unknown) => {
    if ((message as { readonly token: bigint }).token === token) seen.count += 1;
  };
  diagnostics.subscribe('incumbent:confirmed', onConfirmed);
  onTestFinished(() => {
    diagnostics.unsubscribe('incumbent:confirmed', onConfirmed);
  });
  return seen;
}
