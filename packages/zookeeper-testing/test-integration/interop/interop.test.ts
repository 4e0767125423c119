/**
 * Other real clients keep FakeZooKeeper honest: the same session, the same transcript. It has the
 * client's results, and every reply and event on the wire in its order, with its transaction.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TestContext } from 'vitest';
import { expect, it } from 'vitest';
import { FakeZooKeeper } from '../../src/fake/fake-zookeeper.ts';
import { ServerUnavailableError } from '../../src/server/errors.ts';
import type { TestServer } from '../../src/server/server.ts';
import { startServer } from '../../src/server/server.ts';
import { runProgram } from './program.ts';
import { rawSession } from './raw-session.ts';
import type { Stage, Transcript } from './session.ts';
import { record } from './session.ts';

type Act = (stage: Stage) => Promise<void>;

const python = '/usr/bin/python3';

it('kazoo sees no difference', async (context) => {
  const { status } = spawnSync(python, ['-c', 'import kazoo']);
  if (status !== 0) return unavailable(context, `${python} has no kazoo`);
  await compare(context, program(python, 'kazoo-session.py'));
});

it('node-zookeeper-client sees no difference', async (context) => {
  await compare(context, program(process.execPath, 'nzc-session.mjs'));
});

it('a client that sends what no other does sees no difference', async (context) => {
  await compare(context, rawSession);
});

async function compare(context: TestContext, act: Act): Promise<void> {
  const real = await againstRealServer(act).catch((error: unknown) => {
    if (error instanceof ServerUnavailableError) return unavailable(context, error.message);
    throw error;
  });
  const fake = await againstFake(act);
  expect(fake).toEqual(real);
}

async function againstRealServer(act: Act): Promise<Transcript> {
  const server: TestServer = await startServer();
  try {
    // There is nothing to do: the session expires while the client waits.
    return await record({ port: server.port, letExpire: () => Promise.resolve() }, act);
  } finally {
    await server.close();
  }
}

async function againstFake(act: Act): Promise<Transcript> {
  // The same limits of session timeouts as those of the real server.
  await using fake = await FakeZooKeeper.start({
    minSessionTimeoutMs: 400,
    maxSessionTimeoutMs: 60_000,
  });
  const letExpire = async () => fake.advance(10_000);
  return await record({ port: fake.port, letExpire }, act);
}

function program(command: string, script: string): Act {
  const path = fileURLToPath(new URL(script, import.meta.url));
  return (stage) => runProgram(command, [path], stage);
}

function unavailable(context: TestContext, reason: string): never {
  if (process.env['CI'] === 'true') throw new Error(reason);
  return context.skip(reason);
}
