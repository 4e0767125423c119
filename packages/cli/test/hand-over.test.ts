import type { Backend, View } from 'incumbent';
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, onTestFinished, test } from 'vitest';
import { askedIn, progressOf } from '../src/hand-over.ts';
import { invoke, jsonLines, Running } from './support/invoke.ts';

const led = (id: string, token: bigint, ready?: boolean): View => ({
  state: 'led',
  leader: { id, incarnation: 'i', addresses: [], metadata: {} },
  token,
  sinceUnixMs: 0,
  ...(ready === undefined ? {} : { ready }),
});
const asked = { from: 'a', token: 12n, to: undefined };

test.each([
  ['the same term', led('a', 12n, true), 'waiting'],
  ['nobody', { state: 'vacant', token: 12n, sinceUnixMs: 0 } as View, 'waiting'],
  ['a store that cannot be read', { state: 'unknown', sinceUnixMs: 0 } as View, 'waiting'],
  ['another one that is not ready', led('b', 13n, false), 'waiting'],
  ['another one that is ready', led('b', 13n, true), 'done'],
  ['another one of which no more is known', led('b', 13n), 'done'],
  ['the same one again', led('a', 13n, true), 'failed'],
  ['the end of the election', { state: 'ended', sinceUnixMs: 0 } as View, 'failed'],
] as const)('failover, and then %s: %s', (_, view, state) => {
  expect(progressOf(asked, view).state).toBe(state);
});

test('a named candidate alone will do, in a later term and ready', () => {
  const named = { ...asked, to: 'c' };
  expect(progressOf(named, led('c', 12n, true)).state).toBe('waiting');
  expect(progressOf(named, led('c', 13n, false)).state).toBe('waiting');
  expect(progressOf(named, led('c', 13n, true)).state).toBe('done');
  expect(progressOf(named, led('b', 13n, false))).toEqual({
    state: 'failed',
    why: '"b" (token 13) leads',
  });
});

const vacant = (token?: bigint): View => ({
  state: 'vacant',
  sinceUnixMs: 0,
  ...(token === undefined ? {} : { token }),
});

test('a hand-over counts from the term that was asked, whatever the last look shows', () => {
  // The leader has gone between the two looks, and shall not count if it comes back.
  expect(askedIn(led('a', 12n), vacant(12n), false, undefined)).toEqual(asked);
  expect(askedIn(led('a', 12n), vacant(), false, undefined)).toEqual(asked);
  // Another one led by then, and it was the one that was asked.
  expect(askedIn(led('a', 12n), led('b', 13n), false, undefined)).toEqual({
    ...asked,
    ...{ from: 'b', token: 13n },
  });
  expect(askedIn(led('a', 12n), led('a', 12n), true, 'a')).toMatchObject({ token: 11n });
});

/** Candidates of one store, until the test ends. The first one leads. */
async function candidates(...ids: string[]) {
  const backend = memory();
  const stop = new AbortController();
  const campaigns: Promise<unknown>[] = [];
  onTestFinished(async () => {
    stop.abort();
    await Promise.all(campaigns);
  });
  for (const id of ids) {
    const election = createElection({ name: 'x', backend, candidate: { id } });
    const work = ({ signal }: { signal: AbortSignal }) =>
      new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    campaigns.push(election.lead(work, { signal: stop.signal }).catch(() => {}));
    for (;;) {
      const { stdout } = await invoke(['candidates', '-e', 'x', '--json'], { backend });
      if (jsonLines(stdout).some((line) => line['id'] === id)) break;
    }
  }
  return {
    backend,
    run: (...argv: string[]) => invoke([...argv, '-e', 'x'], { backend }),
  };
}

test('failover --wait ends when the other candidate leads', async () => {
  const { run } = await candidates('a', 'b');
  expect(await run('failover', '--wait')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^"b" \(token 2\) leads election "x" and is ready, after /),
  });
  expect(jsonLines((await run('status', '--json')).stdout)[0]).toMatchObject({ state: 'led' });
});

/** The same store, when the answer of a request is lost: the last look shows what came after it. */
function withLostAnswers(backend: Backend): Backend {
  return proxy(backend, 'open', (scope: Parameters<Backend['open']>[0]) => {
    const opened = backend.open(scope);
    return proxy(opened, 'administer', async (...given: Parameters<typeof opened.administer>) => {
      const { view, ...result } = await opened.administer(...given);
      return { ...result, view: vacant(), asked: view };
    });
  });
}

function proxy<T extends object>(target: T, name: keyof T, method: unknown): T {
  return new Proxy(target, {
    get: (_, key) => {
      const value: unknown = key === name ? method : Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

test('failover names the term that was asked, also when the answer was lost', async () => {
  const { backend } = await candidates('a', 'b');
  const given = { backend: withLostAnswers(backend) };
  const { code, stdout } = await invoke(['failover', '-e', 'x', '--json'], given);
  expect(code).toBe(0);
  expect(jsonLines(stdout)).toMatchObject([{ before: { leader: { id: 'a' }, token: '1' } }]);
});

test('transfer --wait and failover --to name the candidate; one that leads already is a success', async () => {
  const { run } = await candidates('a', 'b', 'c');
  const { code, stdout } = await run('transfer', '--to', 'c', '--wait', '--json');
  expect(code).toBe(0);
  expect(jsonLines(stdout)[0]).toMatchObject({
    request: 'transfer',
    to: 'c',
    changed: true,
    before: { leader: { id: 'a' }, token: '1' },
    done: true,
    after: { leader: { id: 'c' }, token: '2' },
  });
  expect(await run('failover', '--to', 'c', '--wait')).toMatchObject({
    code: 0,
    stdout: '"c" (token 2) leads election "x" already, and is ready\n',
  });
  expect(await run('failover', '--to', 'c')).toMatchObject({
    code: 0,
    stdout: '"c" (token 2) leads election "x" already\n',
  });
});

test('--wait 0s is refused before anything is changed', async () => {
  const { run } = await candidates('a', 'b');
  expect(await run('failover', '--wait', '0s')).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('--wait 0s: no hand-over could be seen to be done'),
  });
  expect(jsonLines((await run('status', '--json')).stdout)[0]).toMatchObject({ token: '1' });
});

test('failover without another candidate is refused before anything is changed', async () => {
  const { run } = await candidates('a');
  expect(await run('failover', '--wait')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/no other candidate waits in election "x"/),
  });
  expect(await run('failover', '--to', 'z', '--wait')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/"z" is not waiting/),
  });
  expect(jsonLines((await run('status', '--json')).stdout)[0]).toMatchObject({ token: '1' });
});

test('failover of an election that nobody leads is refused', async () => {
  expect(await invoke(['failover', '-e', 'x', '--wait'])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/nobody leads election "x", so there is nobody to ask/),
  });
});

/** A leads, and does not stop when it is asked to; b waits. */
async function stubborn() {
  const backend = memory();
  const leader = createElection({ name: 'x', backend, candidate: { id: 'a' } });
  const term = await leader.campaign();
  const stop = new AbortController();
  const other = createElection({ name: 'x', backend, candidate: { id: 'b' } });
  const waiting = other.campaign({ signal: stop.signal }).catch(() => {});
  onTestFinished(async () => {
    stop.abort();
    await waiting;
    await term[Symbol.asyncDispose]();
  });
  for (;;) {
    const { stdout } = await invoke(['candidates', '-e', 'x', '--json'], { backend });
    if (jsonLines(stdout).length === 2) return { backend, term };
  }
}

test('a leader that does not give way: 75 when the time is over, and who leads', async () => {
  const { backend } = await stubborn();
  expect(await invoke(['failover', '-e', 'x', '--wait', '200ms'], { backend })).toMatchObject({
    code: 75,
    stderr: expect.stringMatching(
      /the failover of election "x" is not done: "a" \(token 1\) has not given way and leads still after 200ms \(--wait\); the request stays/,
    ),
  });
});

test('failover --wait is interrupted as other commands are', async () => {
  const { backend, term } = await stubborn();
  const running = new Running(['failover', '-e', 'x', '--wait'], { backend });
  // The request has been recorded, and the command waits.
  await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
  running.signal('SIGINT');
  expect((await running.result).code).toBe(130);
});
