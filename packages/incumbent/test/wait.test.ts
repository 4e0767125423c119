import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { systemClock } from '../src/clock.ts';
import { OperationTimeoutError } from '../src/errors.ts';
import { bounded } from '../src/wait.ts';

const never = new AbortController().signal;

/** Answers each message while this thread stands still. */
const echo = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', ({ received }) => {
    Atomics.store(received, 0, 1);
    parentPort.postMessage('answer');
    Atomics.store(received, 0, 2);
    Atomics.notify(received, 0);
  });`;

test('an answer that came while the process stood still counts, though the time is over', async () => {
  const server = new Worker(echo, { eval: true });
  try {
    const received = new Int32Array(new SharedArrayBuffer(4));
    const asked = bounded(systemClock, 'asking', 1, never, () => {
      const answer = new Promise((resolve) => server.once('message', resolve));
      server.postMessage({ received });
      return answer;
    });
    await Promise.resolve();
    // Until the answer is on its way, and for longer than the operation may take.
    while (Atomics.load(received, 0) < 2) Atomics.wait(received, 0, Atomics.load(received, 0), 100);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    expect(await asked).toBe('answer');
  } finally {
    await server.terminate();
  }
});

test('an operation that is not answered is given up', async () => {
  const pending = bounded(systemClock, 'asking', 1, never, () => new Promise(() => {}));
  await expect(pending).rejects.toThrow(OperationTimeoutError);
});
