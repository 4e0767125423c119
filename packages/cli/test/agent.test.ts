// The agent on real elections, beside a guard and a service that are played by the test.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LeadOptions, UncleanLeader } from 'incumbent';
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, test, vi } from 'vitest';
import type { AgentOptions } from '../src/agent/agent.ts';
import { Agent } from '../src/agent/agent.ts';
import { parseCall } from '../src/agent/calls.ts';
import { parseFence } from '../src/agent/fencing.ts';
import type { ProcessGuard } from '../src/agent/process-guard.ts';
import { StuckError } from '../src/agent/run-held.ts';
import type { Output } from '../src/context.ts';
import type { ProgramExit, ProgramSpec } from '../src/guard/index.ts';
import { GuardError } from '../src/guard/index.ts';
import { deferred } from '../src/guard/wait.ts';
import { EventLog } from '../src/run/events.ts';
import { GuardKeeper } from '../src/run/guard-keeper.ts';
import { jsonLines } from './support/invoke.ts';

interface Place {
  readonly name: string;
  readonly backend: ReturnType<typeof memory>;
}
let places = 0;
/** An election of its own: logs hear of every one in this process. */
function newPlace(): Place {
  places += 1;
  return { name: `db-${places}`, backend: memory() };
}

/** Seats run out in them. */
vi.setConfig({ testTimeout: 30_000 });
const patiently = { timeout: 20_000 };

const exit = (code: number): ProgramExit => ({ code, signal: null, because: 'itself' });
const election = (place: Place, id: string) =>
  createElection({
    ...place,
    candidate: { id, addresses: ['db1:5000'], metadata: { 'service-guard': 'pid' } },
    lease: '1s',
    stopTimeout: 10,
  });

interface Given {
  readonly place?: Place;
  /** Ends the commands of the guard. Default: all succeed. */
  readonly exits?: (spec: ProgramSpec) => Promise<ProgramExit>;
  readonly becomeStandby?: string;
  readonly health?: string;
  readonly hasProcess?: boolean;
  readonly fence?: string;
  /** Throws while `--pid` names no process. */
  readonly find?: () => void;
}

function agentOf(given: Given) {
  const { place = newPlace(), exits = async () => exit(0), becomeStandby = 'true' } = given;
  const keeper = {
    get: async () => ({
      prepare: async (spec: ProgramSpec) => {
        const exited = exits(spec);
        const gone = exited.catch(() => {});
        return { pid: 1, exited, gone, go: async () => {}, stop: () => {}, signal: () => {} };
      },
    }),
    replace: () => {},
    belief: () => {},
    close: async () => {},
  } as unknown as GuardKeeper;
  const lost = deferred<GuardError>();
  const processGuard = {
    lost: lost.promise,
    arm: async () => 5,
    find: async () => given.find?.(),
    isSame: async () => true,
    kill: async () => agent.killed(),
    disarm: () => {},
    belief: () => {},
    close: () => {},
  } as unknown as ProcessGuard;
  let text = '';
  const output = {
    write: (more: string) => {
      text += more;
      return true;
    },
  } as unknown as Output;
  const events = new EventLog(output, { json: true }, { election: place.name, candidate: 'a' });
  const options: AgentOptions = {
    health: parseCall('--health', given.health ?? 'true'),
    becomeActive: parseCall('--become-active', 'up'),
    becomeStandby: parseCall('--become-standby', becomeStandby),
    calls: { env: { PATH: process.env['PATH']! }, cwd: '/' },
    fences: given.fence === undefined ? [] : [parseFence(given.fence, 0)],
    ssh: { options: [], connectTimeoutMs: 1_000 },
    candidate: { id: 'a', addresses: ['db1:5000'], metadata: { 'service-guard': 'pid' } },
    machine: { host: 'host-1', digest: undefined },
    fencedAtPorts: [],
    healthEveryMs: 50,
    activeTimeoutMs: 5_000,
    standbyTimeoutMs: 5_000,
    fenceTimeoutMs: 5_000,
    hasServers: false,
  };
  const guardOfProcess = given.hasProcess ? processGuard : undefined;
  const agent: Agent = new Agent(election(place, 'a'), keeper, guardOfProcess, events, options);
  const campaign: LeadOptions = {
    actors: 'declared',
    ready: 'manual',
    readyTimeout: 5_000,
    hookTimeout: 5_000,
    onBelief: (deadline) => agent.belief(deadline),
    health: { check: (signal) => agent.check(signal), every: 50, timeout: 5_000 },
  };
  return {
    agent,
    lost,
    run: () => agent.run(campaign),
    all: (event: string) => jsonLines(text).filter((line) => line['event'] === event),
  };
}

/** The next leader, and the leaders that it had to fence. */
async function fencedByNext(place: Place): Promise<UncleanLeader[]> {
  const next = election(place, 'b');
  const fenced: UncleanLeader[] = [];
  const term = await next.campaign({ onUnclean: (target) => void fenced.push(target) });
  await term[Symbol.asyncDispose]();
  await next.close();
  return fenced;
}

test.concurrent('a become-active without an answer ends the agent, and the next leader fences', async () => {
  const place = newPlace();
  const { run, all } = agentOf({ place, exits: async () => exit(75) });
  expect(await run()).toBe(75);
  // A later term of this handle would not count the one before as unclean.
  expect(all('ended')).toMatchObject([{ token: '1', released: false }]);
  expect(await fencedByNext(place)).toMatchObject([{ id: 'a', token: 1n }]);
});

test.concurrent('--pid: a kill settles that, and the agent goes on', async () => {
  const place = newPlace();
  const { run, all } = agentOf({ place, exits: async () => exit(75), hasProcess: true });
  const running = run();
  await vi.waitUntil(() => all('ended').length > 1, patiently);
  expect(all('ended')[0]).toMatchObject({ released: true });
  await election(place, 'operator').end();
  await expect(running).rejects.toThrow(/ended/);
});

test.concurrent('a kill is no proof while a become-active runs that does not die', async () => {
  const place = newPlace();
  const exits = async () => {
    throw new StuckError('it does not die');
  };
  const { run, all } = agentOf({ place, exits, hasProcess: true });
  expect(await run()).toBe(75);
  expect(all('killed')).not.toEqual([]);
  expect(all('ended')).toMatchObject([{ released: false }]);
  const fenced = await fencedByNext(place);
  // Nor must an agent without --fence count on the guard.
  expect(fenced).toMatchObject([{ id: 'a', metadata: { 'service-guard': 'none' } }]);
});

test.concurrent('an agent without its guard says so in its record, in case its service stays active', async ({
  onTestFinished,
}) => {
  const place = newPlace();
  // The first attempt succeeds, so that it campaigns.
  const folder = mkdtempSync(join(tmpdir(), 'incumbent-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const becomeStandby = `mkdir ${folder}/once`;
  const { run, lost, all } = agentOf({ place, becomeStandby, hasProcess: true });
  const running = run();
  await vi.waitUntil(() => all('ready').length > 0, patiently);
  lost.resolve(new GuardError('GUARD_LOST', 'the guard is gone'));
  expect(await running).toBe(75);
  expect(await fencedByNext(place)).toMatchObject([
    { id: 'a', metadata: { 'service-guard': 'none', 'service-activation': 'done' } },
  ]);
});

test.concurrent('--pid names no process: the agent says so once, and takes no seat until it does', async () => {
  const place = newPlace();
  let [looks, isThere] = [0, false];
  const find = () => {
    looks += 1;
    if (!isThere) throw new GuardError('CANNOT_START', '--pid: /run/db.pid cannot be read');
  };
  const { agent, run, all } = agentOf({ place, hasProcess: true, find });
  const running = run();
  await vi.waitUntil(() => looks > 3, patiently);
  expect(all('process-not-found')).toMatchObject([{ error: '--pid: /run/db.pid cannot be read' }]);
  expect(all('unhealthy')).toHaveLength(1);
  expect(all('leading')).toEqual([]);
  isThere = true;
  await vi.waitUntil(() => all('ready').length > 0, patiently);
  isThere = false;
  const before = looks;
  // The service is active, and its guard knows its process.
  await agent.check(new AbortController().signal);
  expect([looks - before, all('ended')]).toEqual([0, []]);
  await election(place, 'operator').end();
  await expect(running).rejects.toThrow(/ended/);
});

test.concurrent('a look that was never asked says nothing', async () => {
  const { agent } = agentOf({});
  await expect(agent.check(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
  expect(agent.status().fields).toMatchObject({ role: 'standby' });
});

test
  .skipIf(process.platform !== 'linux')
  .concurrent(
    'a service that is restarted between two looks is not taken for active',
    async ({ onTestFinished }) => {
      let answer = (response: ServerResponse) => void response.end('ok');
      const listen = (at: number) => {
        const server = createServer((_, response) => answer(response)).listen(at, '127.0.0.1');
        onTestFinished(() => void server.close());
        return server;
      };
      const first = listen(0);
      await once(first, 'listening');
      const { port } = first.address() as AddressInfo;
      const place = newPlace();
      const { run, all } = agentOf({ place, health: `http://127.0.0.1:${port}/` });
      const running = run();
      await vi.waitUntil(() => all('ready').length > 0, patiently);
      // While a look waits for its answer, no other one can find the port closed.
      const atOnce = answer;
      answer = (response) => {
        answer = atOnce;
        first.close();
        listen(port).once('listening', () => answer(response));
      };
      await vi.waitUntil(() => all('ended').length > 0, patiently);
      expect(all('process-ended')).toMatchObject([{ role: 'stopping' }]);
      expect(all('ended')).toMatchObject([{ reason: 'resigned', released: true }]);
      await election(place, 'operator').end();
      await expect(running).rejects.toThrow(/ended/);
    },
  );

test.concurrent('an agent whose own service was fenced by sshfence knows nothing of it any more', async () => {
  const place = newPlace();
  const dead = election(place, 'a');
  await dead.campaign();
  // Its term is not over in time, so the seat runs out.
  await dead.close();
  const { run, all } = agentOf({ place, fence: 'sshfence:ops@' });
  const running = run();
  await vi.waitUntil(() => all('standby').length > 1, patiently);
  expect(all('fenced')).toMatchObject([{ predecessor: 'a' }]);
  await election(place, 'operator').end();
  await expect(running).rejects.toThrow(/ended/);
});

test.concurrent('a guard that cannot be started is reported to the one who asks for it, and to nobody else', async ({
  onTestFinished,
}) => {
  const keeper = new GuardKeeper({ stopMarginMs: 1, killMarginMs: 2 });
  // An unhandled rejection would be seen by now.
  await new Promise((resolve) => setImmediate(resolve));
  await expect(keeper.get()).rejects.toThrow(/does not hold/);
  onTestFinished(() => keeper.close());
});
