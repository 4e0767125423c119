// A caller that cannot wait until the client itself gives a silent server up.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FakeServer } from '@incumbent/zookeeper-testing';
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { expect, it, onTestFinished } from 'vitest';
import type { ZooKeeper } from '../src/index.ts';
import { connect, InvalidArgumentError } from '../src/index.ts';
import { TestClock } from './hostile-reading/clock.ts';

interface Stage {
  readonly clock: TestClock;
  readonly client: ZooKeeper;
  /** The server of the client. */
  readonly home: FakeServer;
}

async function stage(servers: number): Promise<Stage> {
  const fake = await FakeZooKeeper.start();
  onTestFinished(() => fake.close());
  for (let more = 1; more < servers; more += 1) await fake.addServer();
  const clock = new TestClock();
  const client = await connect(fake.connectionString, { clock, sessionTimeoutMs: 10_000 });
  onTestFinished(() => client.close({ keepSession: true }));
  const home = fake.servers.find(({ port }) => client.session?.server.endsWith(`:${port}`));
  return { clock, client, home: home as FakeServer };
}

/** A request that its server does not answer. Resolves with its outcome. */
function ask({ client }: Stage): Promise<string> {
  return client.get('/').then(
    () => 'answered',
    (error: { readonly code: string }) => error.code,
  );
}

it('moves to another server, in the same session, and what waits there is in doubt', async () => {
  const on = await stage(2);
  const { clock, client, home } = on;
  const { id } = client.session as { readonly id: bigint };
  home.silence();
  const asked = ask(on);
  await nextTurn();
  clock.stall(1_000);
  client.leaveSilentServer({ silentForMs: 1_000 });
  expect(await asked).toBe('CONNECTION_LOSS');
  await client.get('/');
  expect(client.session).toMatchObject({ id });
  expect(client.session?.server).not.toContain(`:${home.port}`);
});

it('stays where the server was silent for less, or nothing is asked of it', async () => {
  const on = await stage(2);
  const { clock, client, home } = on;
  clock.stall(1_000);
  client.leaveSilentServer({ silentForMs: 1_000 });
  await nextTurn();
  home.silence();
  const asked = ask(on);
  await nextTurn();
  clock.stall(999);
  client.leaveSilentServer({ silentForMs: 1_000 });
  await nextTurn();
  home.unsilence();
  expect(await asked).toBe('answered');
});

it('stays where there is no other server', async () => {
  const on = await stage(1);
  const { clock, client, home } = on;
  home.silence();
  const asked = ask(on);
  await nextTurn();
  clock.stall(1_000);
  client.leaveSilentServer({ silentForMs: 1_000 });
  await nextTurn();
  home.unsilence();
  expect(await asked).toBe('answered');
});

it.each([0, -1, Number.NaN, undefined, '1s'])('refuses %s as a time', async (silentForMs) => {
  const { client } = await stage(1);
  expect(() => client.leaveSilentServer({ silentForMs: silentForMs as number })).toThrow(
    InvalidArgumentError,
  );
});
