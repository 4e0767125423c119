// The store fails while a candidate leads. The program must be over before belief is, and all goes
// on when the store is back. Programs ignore TERM, so that only KILL ends them in time.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Lab, RunProcess } from './support/run-process.ts';
import { checkOneAtATime, living, monotonicMs, test, until } from './support/run-process.ts';

/** 0.8 of the lease of 4 s. */
const beliefMs = 3_200;
const family = 'leader,child,grandchild';

/** A leads with the family at work, B waits. */
async function leaderAndFollower(
  lab: Lab,
  settings: { through?: readonly string[]; store?: string } = {},
): Promise<{ a: RunProcess; b: RunProcess; group: number; token: bigint }> {
  const a = lab.run('A', lab.worker(family, 'deaf'), { lease: '4s', ...settings });
  const { pid: group, token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker(family), { lease: '4s', ...settings });
  await b.event('waiting');
  return { a, b, group, token };
}

/** A says why, stops its program with TERM and then KILL, and all that before its belief ends. */
async function stopsInTime(
  lab: Lab,
  { a, group, token }: { a: RunProcess; group: number; token: bigint },
  error: RegExp,
  store = lab.store,
): Promise<void> {
  await a.eventWhere(`why it is not confirmed (${error})`, () =>
    a.all('unconfirmed').find((event) => error.test(String(event['error']))),
  );
  await lab.works(token, 'SIGTERM');
  const beliefEndMs = lab.lastWriteMs(store) + beliefMs;
  expect(await a.event('exited')).toMatchObject({ signal: 'SIGKILL' });
  expect(await a.event('ended')).toMatchObject({ reason: 'renewal-failed', released: false });
  expect(living(group)).toEqual([]);
  const last = Math.max(...lab.work(token).map(({ monotonicMs }) => monotonicMs));
  expect(last).toBeLessThan(beliefEndMs);
  expect(a.exit).toBeUndefined();
}

/** Either of them leads again, with a new token. */
async function recovers(lab: Lab, runs: readonly RunProcess[], token: bigint): Promise<void> {
  const next = () =>
    runs
      .flatMap((run) => run.all('started'))
      .map((event) => BigInt(event.token!))
      .find((other) => other > token);
  await until(() => `somebody leads again; they said:\n${lab.story()}`, next);
  await lab.works(next()!);
  checkOneAtATime(lab.stamps());
}

test.concurrent.for(['even', 'odd'] as const)(
  'the store is taken away after an %s number of confirmations, and put back',
  async (parity, { lab }) => {
    const { a, b, group, token } = await leaderAndFollower(lab);
    const away = lab.path('away');
    // A deadline that was told with every second renewal only was once too early by one of them.
    const rest = parity === 'even' ? 0 : 1;
    await until(`the last record is ${parity}`, () => lab.record()!.number % 2 === rest);
    renameSync(lab.store, away);
    await stopsInTime(
      lab,
      { a, group, token },
      /ENOENT.*the directory is gone: put the same/,
      away,
    );
    const trouble = await b.eventWhere('that it cannot campaign', () =>
      b.all('trouble').find(({ what }) => what === 'campaigning'),
    );
    expect(trouble).toMatchObject({ error: expect.stringContaining(lab.store) });
    renameSync(away, lab.store);
    await recovers(lab, [a, b], token);
  },
);

test.concurrent('the store is removed for good: the program is stopped in time, and the message says what to do', async ({
  lab,
}) => {
  const { a, b, group, token } = await leaderAndFollower(lab);
  for (;;) {
    try {
      rmSync(lab.store, { recursive: true });
      break;
    } catch (error) {
      // They went on writing meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    }
  }
  const removedMs = monotonicMs();
  await a.event('ended');
  const last = Math.max(...lab.work(token).map((stamp) => stamp.monotonicMs));
  expect(last).toBeLessThan(removedMs + beliefMs);
  expect(living(group)).toEqual([]);
  expect(await a.event('unconfirmed')).toHaveProperty(
    'error',
    expect.stringMatching(/or restart all candidates if it was removed/),
  );
  // A directory of the same name is not the same store: there the tokens would begin anew.
  mkdirSync(join(lab.store, 'work'), { recursive: true });
  await a.eventWhere('that this is another one', () =>
    a.events.find(({ error }) => String(error).includes('is another directory than the one')),
  );
  a.kill('SIGTERM');
  b.kill('SIGTERM');
  expect(await a.ends()).toEqual({ code: 143, signal: null });
  expect(await b.ends()).toEqual({ code: 143, signal: null });
  expect(lab.work(token).length).toBe(lab.stamps().length);
});

test.concurrent('the store becomes read-only while leading, and writable again', async ({
  lab,
  skip,
}) => {
  const through = obeyPermissions();
  if (through === undefined) return skip('root writes everywhere, and there is no setpriv(1)');
  const { a, b, group, token } = await leaderAndFollower(lab, { through });
  const directory = join(lab.store, 'work');
  chmodSync(directory, 0o555);
  await stopsInTime(lab, { a, group, token }, /EACCES.*every candidate needs to read, write/);
  chmodSync(directory, 0o755);
  await recovers(lab, [a, b], token);
});

test.concurrent('the disk is full while leading, and then has space again', async ({
  lab,
  skip,
}) => {
  const disk = await smallDisk(lab);
  if (disk === undefined) return skip('nobody lets us mount a small tmpfs (unshare -Urm)');
  const settings = { through: disk.enter, store: `file:${disk.mounted}/store` };
  const { a, b, group, token } = await leaderAndFollower(lab, settings);
  const filler = join(disk.path, 'filler');
  // Again and again, because pruning may free a little.
  await until('the disk is full', () => {
    fill(filler);
    return a.all('unconfirmed').length > 0;
  });
  await stopsInTime(lab, { a, group, token }, /ENOSPC.*free some space/, join(disk.path, 'store'));
  rmSync(filler);
  await recovers(lab, [a, b], token);
});

/** A command that makes root obey permissions; undefined: there is none. */
function obeyPermissions(): readonly string[] | undefined {
  if (process.getuid?.() !== 0) return [];
  const capabilities = '-dac_override,-dac_read_search';
  const command = ['setpriv', `--bounding-set=${capabilities}`, `--inh-caps=${capabilities}`];
  try {
    execFileSync(command[0]!, [...command.slice(1), 'true'], { stdio: 'ignore' });
    return command;
  } catch {
    return undefined;
  }
}

/** A tmpfs of half a megabyte, in a namespace of its own that needs no rights. */
async function smallDisk(
  lab: Lab,
): Promise<{ mounted: string; path: string; enter: string[] } | undefined> {
  const mounted = lab.path('disk');
  mkdirSync(mounted);
  const script = 'mount -t tmpfs -o size=512k none "$1" && echo mounted && exec sleep 1000000';
  const args = ['-Urm', 'sh', '-c', script, 'sh', mounted];
  const holder = spawn('unshare', args, { env: lab.env, stdio: ['ignore', 'pipe', 'ignore'] });
  holder.on('error', () => {});
  const said = once(holder.stdout, 'data').then(() => true);
  if (!(await Promise.race([said, once(holder, 'close').then(() => false)]))) return undefined;
  return {
    mounted,
    path: `/proc/${holder.pid}/root${mounted}`,
    enter: ['nsenter', '-t', String(holder.pid), '-U', '-m', '--preserve-credentials', '--'],
  };
}

function fill(file: string): void {
  try {
    for (;;) appendFileSync(file, Buffer.alloc(4_096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

// --- stores that cannot be used to begin with ---

test.concurrent('a store that cannot be used: 69, why, and no program', async ({ lab }) => {
  writeFileSync(lab.store, 'no directory');
  const people = lab.run('A', lab.worker(), { json: false });
  const programs = lab.run('B', lab.worker());
  expect(await people.ends()).toEqual({ code: 69, signal: null });
  expect(people.stderr).toContain('something that is no directory has that name');
  expect(await programs.ends()).toEqual({ code: 69, signal: null });
  expect(JSON.parse(programs.otherLines.join('\n'))).toEqual({
    error: { code: 'STORE_UNAVAILABLE', message: expect.stringContaining(lab.store) },
  });
  expect(lab.stamps()).toEqual([]);
  expect(lab.survivors()).toEqual([]);
});

test.concurrent.for([
  ['a damaged record', 'RECORD_DAMAGED', (text: string) => text.slice(0, text.length / 2)],
  [
    'a record of a newer version',
    'RECORD_TOO_NEW',
    (text: string) => text.replace('"format":1,"election"', '"format":3,"election"'),
  ],
] as const)(
  '%s: 69, which file it is, and it stays as it is',
  async ([, code, change], { lab }) => {
    await lab.run('FIRST', ['true']).ends();
    const directory = join(lab.store, 'work');
    const newest = join(directory, String(lab.record()!.number).padStart(16, '0'));
    const damaged = change(readFileSync(newest, 'utf8'));
    writeFileSync(newest, damaged);
    const run = lab.run('A', lab.worker());
    expect(await run.ends()).toEqual({ code: 69, signal: null });
    expect(JSON.parse(run.otherLines.join('\n'))).toEqual({
      error: { code, message: expect.stringContaining(newest) },
    });
    expect(readFileSync(newest, 'utf8')).toBe(damaged);
    expect(existsSync(lab.log)).toBe(false);
  },
);
