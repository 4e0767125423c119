/** The output on a terminal. It runs in this process, where a test can pretend to be a terminal. */

import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../../../zookeeper/src/index.ts';
import { invoke } from '../../test/zookeeper-command/invoke.ts';

let fake: FakeZooKeeper;

beforeAll(async () => {
  fake = await FakeZooKeeper.start({ realTime: true });
  await using client = await connect(fake.connectionString);
  await client.create('/text', 'red \u001b[31m\nlast line');
  await client.create('/bytes', Uint8Array.from([0xff, 0x41]));
});
afterAll(() => fake.close());

function look(argv: readonly string[], env: Record<string, string> = {}) {
  return invoke(argv, { terminal: true, env: { INCUMBENT_ZK: fake.connectionString, ...env } });
}

test('the data of a node cannot play tricks on a terminal', async () => {
  const { stdout } = await look(['get', '/text']);
  expect(stdout).toBe('red \\x1b[31m\nlast line\n');
});

test('what is not text is dumped', async () => {
  const { stdout } = await look(['get', '/bytes']);
  expect(stdout).toMatch(/^00000000 {2}ff 41 +\.A\n$/);
});

test('there are colours, unless NO_COLOR says no', async () => {
  expect((await look(['tree', '/text'])).stdout).toContain('\u001b[90m');
  expect((await look(['srvr'])).stdout).toContain('\u001b[90mSERVER');
  expect((await look(['srvr'], { NO_COLOR: '1' })).stdout).not.toContain('\u001b');
});

test('what is deleted at once needs no progress', async () => {
  await using client = await connect(fake.connectionString);
  await client.create('/gone');
  expect(await look(['rm', '-r', '/gone'])).toMatchObject({
    ...{ code: 0, stdout: 'deleted /gone\n', stderr: '', listeners: 0 },
  });
});
