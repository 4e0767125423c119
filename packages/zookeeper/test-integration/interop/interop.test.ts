/** Real other clients keep FakeZooKeeper honest: the same session, the same transcript. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { TestContext } from 'vitest';
import { expect, it } from 'vitest';
import { FakeZooKeeper } from '../../src/testing/fake/fake-zookeeper.ts';
import { ServerUnavailableError } from '../../src/testing/server/errors.ts';
import type { TestServer } from '../../src/testing/server/server.ts';
import { startServer } from '../../src/testing/server/server.ts';
import type { Transcript } from './session.ts';
import { hold } from './session.ts';

interface Program {
  readonly command: string;
  readonly script: string;
}

const kazoo: Program = { command: '/usr/bin/python3', script: 'kazoo-session.py' };
const nodeClient: Program = { command: process.execPath, script: 'nzc-session.mjs' };

it('kazoo sees no difference', async (context) => {
  const { status } = spawnSync(kazoo.command, ['-c', 'import kazoo']);
  if (status !== 0) return unavailable(context, `${kazoo.command} has no kazoo`);
  await compare(context, kazoo);
});

it('node-zookeeper-client sees no difference', async (context) => {
  await compare(context, nodeClient);
});

async function compare(context: TestContext, program: Program): Promise<void> {
  const real = await againstRealServer(program).catch((error: unknown) => {
    if (error instanceof ServerUnavailableError) return unavailable(context, error.message);
    throw error;
  });
  const fake = await againstFake(program);
  expect(fake).toEqual(real);
}

async function againstRealServer(program: Program): Promise<Transcript> {
  const server: TestServer = await startServer();
  try {
    // Nothing to do: the session expires while the program waits to be told.
    return await run(program, server.port, () => Promise.resolve());
  } finally {
    await server.close();
  }
}

async function againstFake(program: Program): Promise<Transcript> {
  // The same bounds of session timeouts as those of the real server.
  await using fake = await FakeZooKeeper.start({
    minSessionTimeoutMs: 400,
    maxSessionTimeoutMs: 60_000,
  });
  return await run(program, fake.port, async () => fake.advance(10_000));
}

function run(
  { command, script }: Program,
  port: number,
  letExpire: () => Promise<void>,
): Promise<Transcript> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  return hold(command, [path], { port, letExpire });
}

function unavailable(context: TestContext, reason: string): never {
  if (process.env['CI'] === 'true') throw new Error(reason);
  return context.skip(reason);
}
