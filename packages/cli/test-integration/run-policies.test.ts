// When a run campaigns, when it gives up, when it starts its program again, and the requests of
// operators.
import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import {
  checkOneAtATime,
  living,
  monotonicMs,
  signalTogether,
  test,
  until,
} from './support/run-process.ts';

// --- once, try, wait ---

test.concurrent('--once: 75 when leadership is lost, and the code of a program that ends', async ({
  lab,
}) => {
  const once = { options: ['--once'] };
  const a = lab.run('A', lab.worker(), once);
  await lab.works((await a.started()).token);
  const b = lab.run('B', lab.worker('leader', 'exit=4'), once);
  await b.event('waiting');
  expect(await lab.cli('vacate', '-e', 'work')).toMatchObject({ code: 0 });
  expect(await a.ends()).toEqual({ code: 75, signal: null });
  expect(a.all('ended')).toMatchObject([{ reason: 'vacated', released: true }]);
  expect(await b.ends()).toEqual({ code: 4, signal: null });
  checkOneAtATime(lab.stamps());
});

test.concurrent('--once: 75 when the guard is lost', async ({ lab }) => {
  const a = lab.run('A', lab.worker('leader', 'deaf'), { options: ['--once'] });
  const { pid: group, token } = await a.started();
  await lab.works(token);
  process.kill(a.guardPid!, 'SIGKILL');
  expect(await a.ends()).toEqual({ code: 75, signal: null });
  expect(living(group)).toEqual([]);
});

test.concurrent('--once: 75 when leadership is lost before the program has begun', async ({
  lab,
}) => {
  const first = lab.run('FIRST', lab.worker());
  await first.started();
  // With a margin of 24 s the silence of its guard is borne for as long: `vacate` has to start meanwhile.
  const a = lab.run('A', lab.worker(), { lease: '3m', options: ['--once'] });
  await a.event('waiting');
  await until('the guard of A is there', () => a.guardPid);
  signalTogether('STOP', a.guardPid!);
  first.kill('SIGTERM');
  await a.event('leading');
  expect(await lab.cli('vacate', '-e', 'work')).toMatchObject({ code: 0 });
  expect(await a.event('ended')).toMatchObject({ reason: 'vacated', released: true });
  expect(await a.ends()).toEqual({ code: 75, signal: null });
  expect(a.all('started')).toEqual([]);
});

test.concurrent('--try: 1 and no program while another candidate leads, else it leads', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker());
  await a.started();
  const options = ['--try'];
  const people = lab.run('B', lab.worker(), { options, json: false });
  const programs = lab.run('C', lab.worker(), { options });
  expect(await people.ends()).toEqual({ code: 1, signal: null });
  expect(people.stderr).toMatch(
    /\nincumbent: election "work" was not won: "A" leads with token 1\n$/,
  );
  expect(await programs.ends()).toEqual({ code: 1, signal: null });
  expect(programs.all('not-elected')).toMatchObject([
    { why: { kind: 'led', id: 'A', token: '1' } },
  ]);
  expect(programs.all('leading')).toEqual([]);
  a.kill('SIGTERM');
  await a.ends();
  const free = lab.run('D', lab.worker('leader', 'exit=0'), { options });
  expect(await free.ends()).toEqual({ code: 0, signal: null });
  expect(free.all('started')).toHaveLength(1);
});

test.concurrent('--wait: 1 after that time, not before, and it leads when the seat is free in time', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker());
  await a.started();
  const patient = lab.run('B', lab.worker('leader', 'exit=6'), { options: ['--wait', '10m'] });
  await patient.event('waiting');
  const sinceMs = monotonicMs();
  const hasty = lab.run('C', lab.worker(), { options: ['--wait', '1s'] });
  expect(await hasty.ends()).toEqual({ code: 1, signal: null });
  expect(monotonicMs() - sinceMs).toBeGreaterThanOrEqual(1_000);
  expect(hasty.all('not-elected')).toHaveLength(1);
  expect(hasty.all('leading')).toEqual([]);
  a.kill('SIGTERM');
  expect(await patient.ends()).toEqual({ code: 6, signal: null });
});

// --- restart ---

test.concurrent('--restart always: each time in a term of its own, after a growing pause', async ({
  lab,
}) => {
  const program = ['sh', '-c', 'until test -e go; do sleep 0.02; done'];
  const a = lab.run('A', program, { options: ['--restart', 'always'] });
  await a.started();
  const b = lab.run('B', ['true']);
  await b.event('waiting');
  lab.write('go', '');
  expect(await b.ends()).toEqual({ code: 0, signal: null });
  await a.event('restarting', 4);
  // A run that is told to end does not wait out its pause of 8 s.
  a.kill('SIGTERM');
  await a.ends();
  expect(a.all('waiting')).toHaveLength(4);
  expect(a.all('restarting')).toMatchObject([
    { code: 0, backoffMs: 1_000 },
    { code: 0, backoffMs: 2_000 },
    { code: 0, backoffMs: 4_000 },
    { code: 0, backoffMs: 8_000 },
  ]);
  const ends = a.all('ended');
  expect(ends).toMatchObject(ends.map(() => ({ reason: 'work-finished' })));
  expect(a.all('started').map(({ token }) => token)).toEqual(ends.map(({ token }) => token));
  expect(BigInt(ends[1]!.token!)).toBeGreaterThan(1n);
});

test.concurrent('--restart on-failure: again after any code but 0', async ({ lab }) => {
  const script = 'echo once >> log; test "$(wc -l < log)" -ge 2 || exit 3';
  const a = lab.run('A', ['sh', '-c', script], { options: ['--restart', 'on-failure'] });
  expect(await a.ends()).toEqual({ code: 0, signal: null });
  expect(a.all('restarting')).toMatchObject([{ code: 3, backoffMs: 1_000 }]);
  expect(a.all('exited')).toMatchObject([{ code: 3 }, { code: 0 }]);
});

// --- hold at least ---

test.concurrent('--hold-at-least: a short job keeps the seat, and no other candidate does it again meanwhile', async ({
  lab,
}) => {
  // Longer than two processes take to start on a busy machine.
  const holdMs = 20_000;
  const hold = ['--hold-at-least', `${holdMs}ms`];
  const job = lab.worker('leader', 'exit=0');
  const a = lab.run('A', job, { options: hold });
  await a.event('exited');
  expect(await a.event('holding')).toMatchObject({ untilUnixMs: expect.any(Number) });
  const tried = lab.run('B', job, { options: [...hold, '--try'] });
  const waited = lab.run('C', job, { options: [...hold, '--wait', '10m'] });
  expect(await tried.ends()).toEqual({ code: 1, signal: null });
  expect(await a.ends()).toEqual({ code: 0, signal: null });
  await waited.event('exited');
  const [first, second, ...others] = lab.stamps();
  expect(others).toEqual([]);
  // The seat is held from before the job began.
  const { time } = await a.event('leading');
  const leadingMs = monotonicMs() - (Date.now() - Date.parse(String(time)));
  expect(first!.monotonicMs).toBeGreaterThan(leadingMs - 5);
  expect(second!.monotonicMs - leadingMs).toBeGreaterThan(holdMs - 5);
});

test.concurrent('--hold-at-least: a shutdown meanwhile is no wait, and the seat stays closed', async ({
  lab,
}) => {
  // Longer than two processes take to start on a busy machine.
  const holdMs = 20_000;
  const options = ['--hold-at-least', `${holdMs}ms`];
  const job = lab.worker('leader', 'exit=0');
  const a = lab.run('A', job, { options });
  const { time } = await a.event('leading');
  await a.event('exited');
  const c = lab.run('C', job, { options });
  a.kill('SIGTERM');
  expect(await a.ends()).toEqual({ code: 0, signal: null });
  expect(await a.event('ended')).toMatchObject({ released: true });
  expect(lab.record()).toMatchObject({ reservation: { reserveMs: expect.any(Number) } });
  const tried = lab.run('B', job, { options: [...options, '--try'] });
  expect(await tried.ends()).toEqual({ code: 1, signal: null });
  await c.event('exited');
  const leadingMs = monotonicMs() - (Date.now() - Date.parse(String(time)));
  const starts = lab.stamps().map(({ token, monotonicMs: ms }) => ({ token, ms }));
  expect(starts.map(({ token }) => token)).toEqual([1n, 2n]);
  expect(starts[1]!.ms - leadingMs).toBeGreaterThan(holdMs - 5);
});

test.concurrent('--hold-at-least: when everything of a job that is done has died, vacate lifts its hold', async ({
  lab,
}) => {
  const options = ['--hold-at-least', '1h'];
  const job = lab.worker('leader', 'exit=0');
  const a = lab.run('A', job, { options });
  await a.event('exited');
  const held = async () => JSON.parse((await lab.cli('status', '-e', 'work', '--json')).stdout);
  await until('the record says that it is held', async () => (await held()).reservedUntil !== null);
  // Its holder is alive.
  const refused = await lab.cli('vacate', '-e', 'work');
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(
    /^incumbent: "A" has done its work and holds the seat until .*--force/,
  );
  signalTogether('KILL', a.guardPid!, a.pid);
  await a.ends();
  await until('its death is proved', async () => (await held()).holderGone);
  const tried = lab.run('B', job, { options: [...options, '--try'] });
  expect(await tried.ends()).toEqual({ code: 1, signal: null });
  // An election that was ended and opened again is as closed as before.
  expect(await lab.cli('end', '-e', 'work')).toMatchObject({ code: 0 });
  expect(await lab.cli('init', '-e', 'work', '--reopen')).toMatchObject({ code: 0 });
  const still = lab.run('B', job, { options: [...options, '--try'] });
  expect(await still.ends()).toEqual({ code: 1, signal: null });
  // While other programs fork all the time, one look may not prove that every process of the job is
  // dead.
  let lifted = '';
  await until('vacate proves its death again', async () => {
    const { code, stdout } = await lab.cli('vacate', '-e', 'work', '--json');
    lifted = stdout;
    return code === 0;
  });
  expect(JSON.parse(lifted)).toMatchObject({
    changed: true,
    before: { state: 'vacant', token: '1' },
    lifted: { by: 'A', for: null, until: expect.any(String) },
  });
  const c = lab.run('C', job, { options: ['--try'] });
  expect(await c.ends()).toEqual({ code: 0, signal: null });
  expect(lab.stamps().map(({ token }) => token)).toEqual([1n, 2n]);
});

// --- identities ---

test.concurrent('two candidates of the same id are two candidates', async ({ lab }) => {
  const runs = [lab.run('A', lab.worker()), lab.run('A', lab.worker())];
  const leader = () => runs.find((run) => run.all('started').length > 0);
  await until('one of them leads', leader);
  const first = leader()!;
  const second = runs.find((run) => run !== first)!;
  await second.event('waiting');
  await lab.works(1n);
  const { stdout } = await lab.cli('candidates', '-e', 'work', '--json');
  expect(stdout.match(/"A"/g)).toHaveLength(2);
  first.kill('SIGKILL');
  const { token } = await second.started();
  expect(token).toBe(2n);
  await lab.works(token);
  checkOneAtATime(lab.stamps());
});

// --- operators ---

test.concurrent('vacate while a program runs: it is stopped, another candidate leads, and it may lead again', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker('leader,child'));
  const { token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker());
  await b.event('waiting');
  expect(await lab.cli('vacate', '-e', 'work')).toMatchObject({ code: 0 });
  await lab.works(token, 'SIGTERM');
  const next = await b.started();
  await lab.works(next.token);
  expect(a.all('ended')).toMatchObject([{ reason: 'vacated', released: true }]);
  expect(await lab.cli('vacate', '-e', 'work')).toMatchObject({ code: 0 });
  await lab.works((await a.started(2)).token);
  checkOneAtATime(lab.stamps());
  expect(lab.record()!.history.map(({ id, why }) => `${id} ${why}`)).toEqual([
    'A vacated',
    'B vacated',
  ]);
});

test.concurrent('vacate while a program takes its time to stop: renewed meanwhile, and released only after it', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker('leader', `linger=${lab.path('go')}`), { lease: '4s' });
  const { token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker(), { lease: '4s' });
  await b.event('waiting');
  expect(await lab.cli('vacate', '-e', 'work')).toMatchObject({ code: 0 });
  const { monotonicMs: toldMs } = await lab.works(token, 'SIGTERM');
  await until('a lease is over', () => monotonicMs() > toldMs + 4_000);
  expect(lab.record()).toMatchObject({ token, holding: { candidate: { id: 'A' } } });
  expect(b.all('leading')).toEqual([]);
  lab.write('go', '');
  const next = await b.started();
  await lab.works(next.token);
  expect(await a.event('ended')).toMatchObject({ reason: 'vacated', released: true });
  checkOneAtATime(lab.stamps());
});

test.concurrent('vacate --force while a program does not stop: it is killed before belief ends', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker('leader,child', 'deaf'), { lease: '4s' });
  const { pid: group, token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker());
  await b.event('waiting');
  expect(await lab.cli('vacate', '-e', 'work', '--force')).toMatchObject({ code: 0 });
  await lab.works(token, 'SIGTERM');
  const beliefEndMs = lab.lastWriteMs() + 3_200;
  expect(await a.event('exited')).toMatchObject({ signal: 'SIGKILL' });
  expect(await a.event('ended')).toMatchObject({ reason: 'vacated' });
  expect(living(group)).toEqual([]);
  const last = Math.max(...lab.work(token).map((stamp) => stamp.monotonicMs));
  expect(last).toBeLessThan(beliefEndMs);
  const next = await b.started();
  await lab.works(next.token);
  checkOneAtATime(lab.stamps());
});

test.concurrent('transfer while a program runs: to that candidate and no other', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker());
  const { token } = await a.started();
  await lab.works(token);
  const others = ['B', 'C', 'D'].map((id) => lab.run(id, lab.worker()));
  for (const run of others) await run.event('waiting');
  const listed = async () => (await lab.cli('candidates', '-e', 'work')).stdout.includes('C');
  await until('C is listed', listed);
  expect(await lab.cli('transfer', '-e', 'work', '--to', 'C')).toMatchObject({ code: 0 });
  const next = await others[1]!.started();
  await lab.works(next.token);
  expect(next.token).toBe(token + 1n);
  expect(a.all('ended')).toMatchObject([{ reason: 'handed-over', released: true }]);
  checkOneAtATime(lab.stamps());
});

test.concurrent('drain while a program runs: it is stopped and stays out until the drain is lifted', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker());
  const { token } = await a.started();
  await lab.works(token);
  expect(await lab.cli('drain', '-e', 'work', '--id', 'A', '--until', '1h')).toMatchObject({
    code: 0,
  });
  await a.event('waiting', 2);
  const free = lab.record()!;
  expect(free).not.toHaveProperty('holding');
  // It does not lead; a candidate that comes later does.
  const b = lab.run('B', lab.worker('leader', 'exit=0'));
  expect(await b.ends()).toEqual({ code: 0, signal: null });
  expect(a.all('leading')).toHaveLength(1);
  expect(await lab.cli('drain', '-e', 'work', '--id', 'A', '--lift')).toMatchObject({ code: 0 });
  await lab.works((await a.started(2)).token);
  checkOneAtATime(lab.stamps());
});

test.concurrent('end while a program runs: it is stopped, and every candidate ends', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker('leader,child', 'deaf'), {
    options: ['--stop-timeout', '500ms'],
  });
  const { pid: group, token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker(), { json: false });
  await until('B waits', () => b.stderr.includes('waiting'));
  expect(await lab.cli('end', '-e', 'work')).toMatchObject({ code: 0 });
  expect(await b.ends()).toEqual({ code: 1, signal: null });
  expect(b.stderr).toMatch(/was ended/);
  expect(await a.ends()).toEqual({ code: 1, signal: null });
  expect(a.all('ended')).toMatchObject([{ reason: 'election-ended' }]);
  expect(living(group)).toEqual([]);
  const late = lab.run('C', lab.worker());
  expect(await late.ends()).toEqual({ code: 1, signal: null });
  expect(lab.work(token).length).toBe(lab.stamps().length);
});

// --- command lines that cannot be ---

test.concurrent.for([
  [
    'a lease too short for a program',
    ['--lease', '1s'],
    /--lease 1s is too short for a program.*give 2s or more/,
  ],
  ['a duration without a unit', ['--lease', '15'], /has no unit/],
  ['timing that cannot hold', ['--lease', '15s', '--belief', '15s'], /P1 .*needs a lease of/],
  ['an unknown option', ['--leader'], /unknown option '--leader'/],
  ['two policies at once', ['--once', '--try'], /cannot be used with/],
  ['an unknown restart', ['--restart', 'never'], /on-failure/],
  ['a closed descriptor for events', ['--events-fd', '19'], /--events-fd 19 is not open/],
  ['no address to listen on', ['--listen', '8080'], /HOST:PORT/],
  ['an unknown store', ['--store', 'cassandra://x'], /unknown scheme "cassandra:"/],
  ['a name that leads elsewhere', ['-e', '../x'], /must not contain/],
] as const)('%s: 64, why, and nothing is touched', async ([, options, why], { lab }) => {
  const run = lab.run('A', lab.worker(), { options, json: false });
  expect(await run.ends()).toEqual({ code: 64, signal: null });
  expect(run.stderr.replaceAll('\n', ' ')).toMatch(why);
  expect(run.stderr).toContain('incumbent: ');
  expect(existsSync(lab.store)).toBe(false);
  expect(lab.survivors()).toEqual([]);
});
