// `incumbent run` and every other command on the servers that teams run already. Of Kubernetes it is
// the stand-in of servers/, which follows the published rules of the API.
import { expect } from 'vitest';
import { inTurn } from './support/in-turn.ts';
import type { Lab, RunProcess, RunSettings } from './support/run-process.ts';
import { checkOneAtATime, living, test, until } from './support/run-process.ts';
import { kinds, sharedStores } from './support/stores.ts';

const store = sharedStores();
const family = 'leader,child,grandchild';
const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const token = expect.stringMatching(/^\d+$/);

function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** The commands on one election, each to its end. */
function on(lab: Lab, url: string, election: string, timeout = '60s') {
  const ask = ([command = '', ...rest]: readonly string[]) =>
    inTurn(() => {
      const place = ['-e', election, '--store', url, '--timeout', timeout];
      return lab.cli(command, ...place, ...rest);
    });
  const init = async () => expect(await ask(['init'])).toMatchObject({ code: 0, stderr: '' });
  return { ask, init, settings: { store: url, election } satisfies RunSettings };
}

/** Leads after the term before it, when every process of that term's program is dead. */
async function takesOver(
  lab: Lab,
  next: RunProcess,
  nth: number,
  before: { readonly pid: number; readonly token: bigint },
): Promise<void> {
  const term = await next.started(nth);
  expect(living(before.pid)).toEqual([]);
  expect(term.token).toBeGreaterThan(before.token);
  await lab.works(term.token);
  checkOneAtATime(lab.stamps());
}

for (const { name, missing, lists, lease, isVariant, open } of kinds) {
  test.concurrent(`${name}: when a leader is killed its program dies, and another one takes over with a higher token`, async ({
    lab,
    skip,
  }) => {
    if (missing !== undefined) skip(missing);
    const { ask, init, settings } = on(lab, store(name).url, 'killed');
    await init();
    const a = lab.run('A', lab.worker(family, 'deaf'), { ...settings, lease });
    await a.started();
    const b = lab.run('B', lab.worker(family), { ...settings, lease });
    await b.event('waiting');
    // On a machine that stands still for a moment it may be its second term, or B's.
    const leads = [a, b].find((run) => run.all('started').length > run.all('ended').length) ?? a;
    const follows = leads === a ? b : a;
    const terms = follows.all('started').length;
    const first = await leads.started(leads.all('started').length);
    await lab.works(first.token);
    leads.kill('SIGKILL');
    await takesOver(lab, follows, terms + 1, first);
    const history = jsonLines((await ask(['history', '--json'])).stdout);
    expect(history.slice(-2)).toMatchObject([
      { token: String(first.token), id: leads.id, why: 'unclean' },
      { id: follows.id, to: null },
    ]);
    // The term that it leads now: another one, if the machine has stood still meanwhile.
    const present = follows.all('ended').length + 1;
    await follows.started(present);
    follows.kill('SIGTERM');
    expect(await follows.event('ended', present)).toMatchObject({ reason: 'withdrawn' });
  });

  test.concurrent(`${name}: the doctor finds it well, and leaves nothing behind`, async ({
    lab,
    skip,
  }) => {
    if (missing !== undefined) skip(missing);
    const { ask, init } = on(lab, store(name).url, 'examined');
    await init();
    const { code, stdout, stderr } = await ask([
      'doctor',
      ...['--watch-loop', '10ms', '--samples', '5', '--json'],
    ]);
    expect(stderr).toBe('');
    const findings = jsonLines(stdout);
    expect(findings.filter(({ level }) => level === 'broken')).toEqual([]);
    expect(code).toBe(0);
    const checks = findings.map(({ check }) => check);
    const wanted = ['store', 'takeover', 'clock', 'election', 'reads', 'writes', 'result'];
    expect(checks).toEqual(expect.arrayContaining(wanted));
    // That it could not be removed would be one.
    expect(checks).not.toContain('scratch');
  });

  test.concurrent(`${name}: a server that is away is 69, with its name and the reason`, async ({
    lab,
    skip,
  }) => {
    if (missing !== undefined) skip(missing);
    const { ask } = on(lab, store(name).unreachable, 'away', '20s');
    const { code, stdout, stderr } = await ask(['status']);
    expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
    expect(stderr).toMatch(
      /^incumbent: .* (cannot|can) be reached.*: .*ECONNREFUSED 127\.0\.0\.1:\d+/,
    );
    expect(stderr.split('\n')).toHaveLength(2);
    if (name !== 'PostgreSQL') return;
    // `doctor` judges the timing also without the store.
    const doctor = await ask(['doctor', '--watch-loop', '10ms']);
    expect(doctor.code).toBe(69);
    expect(doctor.stdout).toMatch(/^broken +store +.*ECONNREFUSED/m);
    expect(doctor.stdout).toMatch(/^ok +rules +all hold/m);
  });

  if (isVariant) continue;
  test.concurrent(`${name}: a server that is killed ends the term in time, and it leads again when that is back`, async ({
    lab,
    skip,
  }) => {
    if (missing !== undefined) skip(missing);
    const own = await open();
    try {
      const { init, settings } = on(lab, own.url, 'interrupted');
      await init();
      const run = lab.run('A', lab.worker('leader,child', 'deaf'), { ...settings, lease });
      const first = await run.started();
      await lab.works(first.token);
      const start = await own.interrupt!();
      // For good, as far as it knows: the program is killed before its belief ends.
      const nth = run.all('ended').length + 1;
      expect(await run.event('ended', nth)).toMatchObject({ released: false });
      expect(living(first.pid)).toEqual([]);
      const terms = run.all('started').length;
      await start();
      const next = await run.started(terms + 1);
      expect(next.token).toBeGreaterThan(first.token);
      await lab.works(next.token);
      checkOneAtATime(lab.stamps());
    } finally {
      await own.close();
    }
  });

  test.concurrent(`${name}: a leader can be seen in every way, and an operator can make it go`, async ({
    lab,
    skip,
  }) => {
    if (missing !== undefined) skip(missing);
    const { ask, init, settings } = on(lab, store(name).url, 'seen');
    await init();
    const at = (id: string) => ({ ...settings, options: ['--address', `${id}.example:80`] });
    const a = lab.run('a', lab.worker(), at('a'));
    await a.started();
    const b = lab.run('b', lab.worker(), at('b'));
    await b.event('waiting');

    const [status] = jsonLines((await ask(['status', '--json'])).stdout);
    expect(status).toMatchObject({
      election: 'seen',
      state: 'led',
      leader: { id: 'a', addresses: ['a.example:80'] },
      token,
      since: iso,
      leaseMs: 15_000,
    });
    expect(await ask(['leader'])).toMatchObject({ code: 0, stdout: 'a.example:80\n' });
    const candidates = () => ask(['candidates', '--json']);
    if (lists) {
      await until('b is listed', async () => (await candidates()).stdout.includes('"b"'));
      expect(jsonLines((await candidates()).stdout)).toMatchObject([
        { role: 'leading', id: 'a' },
        { role: 'waiting', id: 'b' },
      ]);
    }
    expect(await ask(['transfer', '--to', 'b'])).toMatchObject({ code: 0 });
    await b.started();
    expect(await ask(['drain', '--id', 'b', '--until', '1h'])).toMatchObject({ code: 0 });
    await a.started(2);
    // B is kept out, so it is A again that follows.
    expect(await ask(['vacate'])).toMatchObject({ code: 0 });
    await a.started(3);
    expect(jsonLines((await ask(['history', '--json'])).stdout)).toMatchObject([
      { token, id: 'a', from: iso, to: iso, why: 'handed-over' },
      { id: 'b', why: 'vacated' },
      { id: 'a', why: 'vacated' },
      { id: 'a', to: null, why: null },
    ]);
    expect(await ask(['end'])).toMatchObject({ code: 0 });
    for (const run of [a, b]) expect(await run.ends()).toEqual({ code: 1, signal: null });
    checkOneAtATime(lab.stamps());
  });
}
