/** Threads of one process share its id, its environment and its file descriptors: each is a candidate of its own. */
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compile, temporaryDirectory } from './support/file-build.ts';

const build = temporaryDirectory();
let modules: readonly string[] = [];

beforeAll(() => {
  modules = compile(`${build.path}/library`, ['index.ts', 'backends/file/index.ts']);
});
afterAll(() => build.remove());

const leaseMs = 4_000;

interface Told {
  readonly id: string;
  readonly incarnation: string;
  readonly token: string;
  /** By the clock that all threads share. */
  readonly atMs: number;
  readonly believedUntilMs: number;
}

function start(directory: string): Worker {
  const [index, file] = modules.map((path) => pathToFileURL(path).href);
  const program = `
    const { parentPort } = require('node:worker_threads');
    const nowMs = () => Number(process.hrtime.bigint()) / 1e6;
    (async () => {
      const { createElection } = await import(${JSON.stringify(index)});
      const { file } = await import(${JSON.stringify(file)});
      const backend = file(${JSON.stringify(directory)});
      const election = createElection({ name: 'jobs', backend, lease: ${leaseMs} });
      const term = await election.campaign();
      const { leader } = await election.leader();
      const { id, incarnation } = leader;
      setInterval(() => {
        if (!term.isLeading()) return;
        const atMs = nowMs();
        const believedUntilMs = atMs + term.remaining();
        const token = String(term.token);
        parentPort.postMessage({ id, incarnation, token, atMs, believedUntilMs });
      }, 5);
    })();`;
  return new Worker(program, { eval: true });
}

async function told(worker: Worker): Promise<Told> {
  const [message] = (await once(worker, 'message')) as [Told];
  return message;
}

test('two threads of one process have different ids, and one leads after the other', async () => {
  const directory = `${build.path}/store`;
  const first = start(directory);
  const leader = await told(first);
  expect(leader.id).toMatch(new RegExp(`-${process.pid}-\\d+$`));
  const second = start(directory);
  let last = leader;
  first.on('message', (message: Told) => {
    last = message;
  });
  const following = told(second);
  // The thread ends and its process lives: that is no proof of death, so its lease is waited out.
  for (let i = 0; i < 50; i += 1) await once(first, 'message');
  await first.terminate();
  const next = await following;
  try {
    expect(next.id).toMatch(new RegExp(`-${process.pid}-\\d+$`));
    expect(next.id).not.toBe(leader.id);
    expect(next.incarnation).not.toBe(leader.incarnation);
    expect(BigInt(next.token)).toBe(BigInt(leader.token) + 1n);
    expect(next.atMs).toBeGreaterThan(last.believedUntilMs);
  } finally {
    await second.terminate();
  }
}, 30_000);
