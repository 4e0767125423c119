import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { expect, onTestFinished, test } from 'vitest';
import { askFourLetterWord, InvalidArgumentError } from '../src/index.ts';

test('asks one server, without a session', async () => {
  const fake = await FakeZooKeeper.start();
  onTestFinished(() => fake.close());
  const { hostname, port } = new URL(fake.connectionString);
  const answer = await askFourLetterWord({ host: hostname, port: Number(port) }, 'srvr');
  expect(answer).toMatch(/^Mode: standalone$/m);
  expect(fake.sessions).toEqual([]);
});

test('a silent server is waited for as long as is allowed, or until the caller gives up', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  const host = { host: '127.0.0.1', port: (silent.address() as AddressInfo).port };
  await expect(askFourLetterWord(host, 'srvr', { timeoutMs: 1 })).rejects.toThrow(
    'no answer within 1 ms',
  );
  const reason = new Error('enough');
  const stop = new AbortController();
  const asked = askFourLetterWord(host, 'srvr', { signal: stop.signal });
  stop.abort(reason);
  await expect(asked).rejects.toBe(reason);
  await expect(askFourLetterWord(host, 'srvr', { signal: stop.signal })).rejects.toBe(reason);
  await expect(askFourLetterWord(host, 'srvr', { timeoutMs: 0 })).rejects.toThrow(
    InvalidArgumentError,
  );
});
