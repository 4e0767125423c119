/** Requests, servers and whole processes leave nothing behind when they are done. */
import { execFile } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { electionHeader, refusedHeader } from '../src/following/http/index.ts';
import { vacant } from '../test/support/fake-election.ts';
import { compile, temporaryDirectory } from './support/file-build.ts';
import { echo, FakeTerm, HttpStage } from './support/http-stage.ts';

const process = fileURLToPath(new URL('./support/http-process.mjs', import.meta.url));
const directory = temporaryDirectory();
let built: string[] = [];

beforeAll(() => {
  built = compile(directory.path, [
    'index.ts',
    'backends/memory/index.ts',
    'following/http/index.ts',
  ]);
});
afterAll(() => directory.remove());

test.concurrent.for(['close', 'leave'])(
  'a process that is done ends by itself: %s',
  async (how) => {
    // The timeout kills it, which is an error.
    const { stdout } = await promisify(execFile)(
      globalThis.process.execPath,
      ['--unhandled-rejections=strict', process, how, ...built],
      { timeout: 60_000 },
    );
    expect(JSON.parse(stdout)).toEqual(['kept', 'kept', 'kept', 'aborted']);
  },
);

test.concurrent('no observation, listener or connection outlives its use', async (context) => {
  const stage = new HttpStage(context);
  const term = new FakeTerm(2n);
  const serving = stage.only({ term: () => term.term });
  const leader = await stage.listen((incoming, response) =>
    serving(incoming, response, () => void echo(incoming, response)),
  );
  let refusals = 0;
  const refusing = await stage.listen(async (_incoming, response) => {
    refusals += 1;
    response.writeHead(503, { [electionHeader]: 'billing', [refusedHeader]: 'not-leading' });
    response.end();
    await stage.lead(leader.address, 2n);
  });
  const proxying = stage.only({ followers: 'proxy' });
  const follower = await stage.listen((incoming, response) =>
    proxying(incoming, response, () => {}),
  );
  const { signal } = new AbortController();
  const dispatcher = stage.agent({ attempts: 3 });
  for (let i = 0; i < 30; i++) {
    await stage.lead(refusing.address, 1n);
    const post = { dispatcher, signal, method: 'POST' as const, body: 'x' };
    await (await request('http://billing/', post)).body.dump();
    const proxied = await request(follower.origin, { signal, method: 'POST', body: 'x' });
    await proxied.body.dump();
    const abort = AbortSignal.abort(new Error('aborted'));
    await expect(request('http://billing/', { ...post, signal: abort })).rejects.toThrow('aborted');
  }
  expect(refusals).toBe(30);
  expect(term.waits, 'for its end: each is kept until then').toBe(1);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  await serving.drained();
  // One to each server for all, and no more: they were used again.
  const used = [leader, refusing, follower].map(({ connections }) => connections.length);
  expect(Math.max(...used)).toBeLessThan(5);
  await stage.show(vacant(2n));
  const late = request('http://billing/', { dispatcher });
  late.catch(() => {});
  await stage.close();
  await expect(late).rejects.toThrow('closed');
  expect(stage.fake.open).toBe(0);
  expect(stage.fake.begun).toBe(1);
});
