// `run --shards` and `incumbent shards`, on real stores, with real programs.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { inTurn } from './support/in-turn.ts';
import type { Lab, RunProcess, RunSettings } from './support/run-process.ts';
import { bin, isAlive, test, until } from './support/run-process.ts';
import { kinds, sharedStores } from './support/stores.ts';

const store = sharedStores();
const worker = fileURLToPath(new URL('support/shard-worker.cjs', import.meta.url));
const shards = 8;

interface Stamp {
  readonly shard: number;
  readonly token: bigint;
  readonly pid: number;
  readonly ms: number;
}

function stampsOf(lab: Lab): readonly Stamp[] {
  return readFileSync(lab.log, { encoding: 'utf8', flag: 'a+' })
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [shard, token, pid, ms] = line.split(' ');
      return { shard: Number(shard), token: BigInt(token!), pid: Number(pid), ms: Number(ms) };
    })
    .sort((a, b) => a.ms - b.ms);
}

/**
 * Acts for a shard under an older token, after one under a newer token. There must be none.
 * @param inTurn programs of one run, which had the same token one after another
 */
function faultsOf(lab: Lab, inTurn: readonly number[] = []): readonly string[] {
  const newest = new Map<number, Stamp>();
  const faults: string[] = [];
  for (const stamp of stampsOf(lab)) {
    const before = newest.get(stamp.shard);
    if (before !== undefined && stamp.token < before.token) {
      faults.push(`shard ${stamp.shard}: token ${stamp.token} acts after ${before.token}`);
    }
    const isOtherOne =
      before !== undefined && stamp.token === before.token && stamp.pid !== before.pid;
    if (isOtherOne && !(inTurn.indexOf(stamp.pid) > inTurn.indexOf(before.pid))) {
      faults.push(`shard ${stamp.shard}: two processes with token ${stamp.token}`);
    }
    if (before === undefined || stamp.token >= before.token) newest.set(stamp.shard, stamp);
  }
  return faults;
}

/** Every process of the newest tokens acts. */
async function allWork(lab: Lab): Promise<void> {
  const since = stampsOf(lab).length;
  await until('each shard is worked for', () => {
    const now = stampsOf(lab).slice(since);
    return new Set(now.map(({ shard }) => shard)).size === shards;
  });
}

/** As `shards watch --json` tells it. */
interface Status {
  readonly members: readonly { readonly id: string; readonly owns: number }[];
  readonly unowned: readonly number[];
  readonly moving: readonly number[];
}

function on(lab: Lab, url: string, lease = '10s') {
  const settings = (...options: string[]): RunSettings => ({
    ...{ store: url, election: 'tenants', lease },
    options: ['--shards', `${shards}`, ...options],
  });
  const program = (...flags: string[]) => [process.execPath, worker, lab.log, ...flags];
  const ask = (...args: string[]) =>
    inTurn(() => lab.cli('shards', ...args, '-e', 'tenants', '--store', url, '--timeout', '60s'));
  let status: Status = { members: [], unowned: [-1], moving: [] };
  // It goes on until the test ends, also while there are no shards yet.
  const watching = spawn(
    process.execPath,
    [bin, 'shards', 'watch', '-e', 'tenants', '--store', url, '--json'],
    { env: lab.env, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  createInterface({ input: watching.stdout }).on('line', (line) => {
    status = { ...status, ...JSON.parse(line) };
  });
  return {
    ...{ settings, program, ask },
    /** Until these own so many shards, and nothing moves any more. */
    owns: (wanted: Readonly<Record<string, number>>) =>
      until(
        () => `${JSON.stringify(wanted)} are owned, and not ${JSON.stringify(status)}`,
        () =>
          status.unowned.length + status.moving.length === 0 &&
          Object.entries(wanted).every(([id, owns]) =>
            status.members.some((one) => one.id === id && one.owns === owns),
          ),
      ),
  };
}

const places = [
  { name: 'file', missing: undefined, url: (lab: Lab) => `file:${lab.store}` },
  ...kinds
    .filter(({ name }) => name === 'PostgreSQL' || name === 'Redis')
    .map(({ name, missing }) => ({ name, missing, url: () => store(name).url })),
];

for (const { name, missing, url } of places) {
  test.concurrent(`${name}: shards go from program to program, and none has two at a time`, async ({
    lab,
    skip,
  }) => {
    if (missing !== undefined) skip(missing);
    const { settings, program, ask, owns } = on(lab, url(lab));
    const a = lab.run('A', program('slow'), settings('--per-shard'));
    await a.event('joined');
    await owns({ A: shards });
    const b = lab.run('B', program('slow'), settings());
    await owns({ A: 4, B: 4 });
    expect(JSON.parse((await ask('status', '--json')).stdout)).toMatchObject({
      ...{ shards: 'tenants', count: shards, isNamed: false, unowned: [], pins: [], drains: [] },
      members: expect.arrayContaining([expect.objectContaining({ id: 'B', owns: 4, weight: 1 })]),
    });
    expect((await ask('status')).stdout).toMatch(/^B +4 +1 +member/m);
    await allWork(lab);
    const { pid = 0 } = await b.event('started');

    // A pin moves a shard, and another one goes the other way.
    const { members } = JSON.parse((await ask('status', '--json')).stdout);
    const shardsOf = (id: string) =>
      members.find((one: { id: string }) => one.id === id).shards as number[];
    const [kept] = shardsOf('A');
    const [pinned] = shardsOf('B');
    expect((await ask('owner', `${kept}`)).stdout).toBe('A\n');
    expect(await ask('move', `${kept}`, '--to', 'B')).toMatchObject({ code: 0, stderr: '' });
    await until(
      `B owns shard ${kept}`,
      async () => (await ask('owner', `${kept}`)).stdout === 'B\n',
    );
    await owns({ A: 4, B: 4 });
    expect((await ask('move', `${kept}`, '--clear')).code).toBe(0);
    expect((await ask('move', `${pinned}`, '--to', 'X')).stderr).toContain(
      'no process "X" takes part in the shards "tenants"; these do: "A", "B"',
    );

    b.kill('SIGKILL');
    await owns({ A: shards });
    expect(isAlive(pid)).toBe(false);
    await allWork(lab);

    const c = lab.run('C', program(), settings());
    await owns({ A: 4, C: 4 });
    expect((await ask('drain', 'A')).stdout).toContain('"A" gives its shards to others');
    await owns({ A: 0, C: shards });
    expect((await ask('undrain', 'A')).code).toBe(0);
    await owns({ A: 4, C: 4 });
    a.kill('SIGTERM');
    expect(await a.ends()).toEqual({ code: 0, signal: null });
    await owns({ C: shards });
    await allWork(lab);
    c.kill('SIGINT');
    await c.ends();
    expect(faultsOf(lab)).toEqual([]);
    expect((await ask('owner', '0')).code).toBe(1);
  });
}

test.concurrent('a program that does not acknowledge is ended before its shards go, and begun again for the others', async ({
  lab,
}) => {
  // Long enough for a machine that stands still: the lease must not end the program first.
  const { settings, program, owns } = on(lab, `file:${lab.store}`, '30s');
  const deaf = lab.run('A', program('deaf'), settings('--stop-timeout', '500ms'));
  const { pid = 0 } = await deaf.event('started');
  await owns({ A: shards });
  const b = lab.run('B', program(), settings());
  const started = await b.event('started');
  await until('the program of B works', () => stampsOf(lab).some((one) => one.pid === started.pid));
  expect(isAlive(pid)).toBe(false);
  expect((await deaf.event('not-acknowledged'))['version']).toBeGreaterThan(1);
  // Its other shards have stayed, for its next program.
  const next = await deaf.event('started', 2);
  await owns({ A: 4, B: 4 });
  await allWork(lab);
  expect(faultsOf(lab, [pid, next.pid!])).toEqual([]);
});

test.concurrent('programs of a frozen run are dead before their shards go to another process', async ({
  lab,
}) => {
  const { settings, program, owns } = on(lab, `file:${lab.store}`);
  const a = lab.run('A', program(), settings());
  lab.run('B', program(), settings('--per-shard'));
  await owns({ A: 4, B: 4 });
  await allWork(lab);
  const { pid = 0 } = await a.event('started');
  a.kill('SIGSTOP');
  await owns({ B: shards });
  expect(isAlive(pid)).toBe(false);
  a.kill('SIGCONT');
  await owns({ A: 4, B: 4 });
  await allWork(lab);
  expect(faultsOf(lab)).toEqual([]);
});

test.concurrent('with --listen it tells its health, its shards and its metrics', async ({
  lab,
}) => {
  const { settings, program, owns } = on(lab, `file:${lab.store}`, '30s');
  const a = lab.run('A', program(), settings('--listen', '127.0.0.1:0'));
  const { url } = await a.event('listening');
  const get = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    return [response.status, await response.text()] as const;
  };
  await owns({ A: shards });
  await allWork(lab);
  expect(await get('/healthz')).toEqual([200, 'ok\n']);
  const [, status] = await get('/status');
  expect(JSON.parse(status)).toEqual({
    ...{ healthy: true, shards: 'tenants', member: 'A', leaving: false },
    ...{ owns: shards, owned: [0, 1, 2, 3, 4, 5, 6, 7] },
  });
  const [, metrics] = await get('/metrics');
  expect(metrics).toContain(`incumbent_shards_owned{shards="tenants"} ${shards}`);
  expect(metrics).toContain('incumbent_build_info');
  expect(metrics).toContain('incumbent_leading{election="tenants/slot"} 1');
  expect(metrics).not.toMatch(/tenants\/\d/);
  expect(await get('/leader')).toEqual([404, 'there is /healthz, /status and /metrics\n']);
});

test.concurrent('a program that ends by itself ends its run, unless it is to be restarted', async ({
  lab,
}) => {
  const { settings } = on(lab, `file:${lab.store}`);
  const once = lab.run('A', ['sh', '-c', 'exit 5'], settings());
  expect(await once.ends()).toEqual({ code: 5, signal: null });
  const again = lab.run('B', ['sh', '-c', 'exit 6'], settings('--restart', 'on-failure'));
  expect(await again.event('restarting')).toMatchObject({ code: 6, backoffMs: 1_000 });
  await again.event('started', 2);
});

test.concurrent('bad command lines are refused before anything is done', async ({ lab }) => {
  const { ask } = on(lab, `file:${lab.store}`);
  const run = async (...options: string[]): Promise<RunProcess> => {
    const refused = lab.run('A', ['true'], { options, json: false });
    expect((await refused.ends()).code).toBe(64);
    return refused;
  };
  for (const [options, words] of [
    [['--shards', '0'], 'shards must be a whole number from 1 to 100000, not 0'],
    [['--shards', '1000000'], 'not 1000000'],
    [['--shards', 'a,b,a'], 'names "a" twice'],
    [['--shards', '8', '--weight', '0'], 'It must be a whole number from 1 to 1000'],
    [
      ['--shards', '8', '--seats', '2'],
      "'--shards <n|names>' cannot be used with option '--seats <n>'",
    ],
    [
      ['--shards', '8', '--per-shard', '--restart', 'always'],
      "'--per-shard' cannot be used with option",
    ],
    [['--per-shard'], '--per-shard is for --shards: give both, or neither'],
    [['--zone', 'x'], '--zone is for --shards'],
  ] as const) {
    expect((await run(...options)).otherLines.join('\n')).toContain(words);
  }
  for (const [args, code, words] of [
    [['status'], 1, 'has no shards "tenants" (yet)'],
    [['owner'], 64, 'shards owner needs SHARD'],
    [['status', '3'], 64, 'shards status does not take "3"'],
    [['status', '--clear'], 64, 'shards status does not heed --clear'],
    [['move', '3'], 64, 'shards move needs --to MEMBER, or --clear'],
    [['drain', 'A', '--until', 'x'], 64, 'is neither a time nor a duration'],
  ] as const) {
    const refused = await ask(...args);
    expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining(words)]);
  }
});
