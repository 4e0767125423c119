import { once } from 'node:events';
import type { Backend, CampaignOptions, CandidateOptions, Term } from 'incumbent';
import { createElection, StoreUnavailableError } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, onTestFinished, test } from 'vitest';
import { termsOf } from '../src/commands/history.ts';
import { asFields } from '../src/commands/status.ts';
import type { Inspected } from '../src/output/vacancy.ts';
import { whyVacant } from '../src/output/vacancy.ts';
import { altered } from './support/altered.ts';
import { invoke, jsonLines, Running } from './support/invoke.ts';

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** A store on which `host-7` leads election x, until the test ends. */
async function led({
  ready,
  ...candidate
}: CandidateOptions & Pick<CampaignOptions, 'ready'> = {}) {
  const backend = memory();
  const election = createElection({
    name: 'x',
    backend,
    candidate: {
      id: 'host-7',
      addresses: ['10.0.0.7:80', '[2001:db8::7]:80'],
      metadata: { zone: 'eu-1' },
      ...candidate,
    },
  });
  const term = await election.campaign(ready === undefined ? {} : { ready });
  onTestFinished(() => leave(term));
  const run = (...argv: string[]) => invoke([...argv, '-e', 'x'], { backend });
  return { backend, election, term, run };
}

async function leave(term: Term): Promise<void> {
  await term[Symbol.asyncDispose]();
}

/** A candidate that waits, until the test ends. */
async function waiting(backend: Backend, id: string): Promise<void> {
  const stop = new AbortController();
  const election = createElection({ name: 'x', backend, candidate: { id } });
  const campaign = election.campaign({ signal: stop.signal }).then(leave, () => {});
  onTestFinished(async () => {
    stop.abort();
    await campaign;
  });
  for (;;) {
    const { stdout } = await invoke(['candidates', '-e', 'x', '--json'], { backend });
    if (jsonLines(stdout).some((line) => line['id'] === id)) return;
  }
}

test('status says that an election has never been led', async () => {
  const { code, stdout } = await invoke(['status', '-e', 'x']);
  expect(code).toBe(0);
  expect(stdout).toBe(
    'election  x\nstore     test:\nstate     vacant (no leader is on record)\nwaiting   nobody\n',
  );
});

test('status shows the leader, one fact a line', async () => {
  const { run, term } = await led();
  const { code, stdout } = await run('status');
  expect(code).toBe(0);
  expect(stdout.split('\n')).toEqual([
    'election  x',
    'store     test:',
    'state     led',
    'leader    host-7',
    'address   10.0.0.7:80',
    '          [2001:db8::7]:80',
    'metadata  zone=eu-1',
    `token     ${term.token}`,
    expect.stringMatching(/^since {5}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(.*\)$/),
    'lease     15s',
    '',
  ]);
});

test('an election that was never led has no token and no beginning, drained or not', async () => {
  const backend = memory();
  const run = (...argv: string[]) => invoke([...argv, '-e', 'x', '--json'], { backend });
  const nobody = [expect.objectContaining({ state: 'vacant', token: null, since: null })];
  expect(jsonLines((await run('status')).stdout)).toEqual(nobody);
  await run('drain', '--id', 'host-3', '--until', '1h', '--force');
  expect(jsonLines((await run('status')).stdout)).toEqual(nobody);
  expect(jsonLines((await run('vacate')).stdout)).toMatchObject([
    { before: { token: null, since: null } },
  ]);
});

test('status as JSON', async () => {
  const { run, term } = await led();
  await run('drain', '--id', 'host-3', '--until', '2030-05-01T06:00Z', '--force');
  const { stdout } = await run('status', '--json');
  expect(jsonLines(stdout)).toEqual([
    {
      election: 'x',
      store: 'test:',
      state: 'led',
      leader: {
        id: 'host-7',
        incarnation: expect.any(String),
        addresses: ['10.0.0.7:80', '[2001:db8::7]:80'],
        metadata: { zone: 'eu-1' },
      },
      ready: true,
      token: term.token.toString(),
      since: iso,
      leaseMs: 15_000,
      unfenced: [],
      holderGone: false,
      reservedUntil: null,
      settlingUntil: null,
      reservedFor: null,
      waiting: null,
      drains: [{ id: 'host-3', until: '2030-05-01T06:00:00.000Z' }],
      request: null,
    },
  ]);
});

test('status ends with 0 in every state, and with --exit-code only when there is a leader', async () => {
  const { run, term } = await led();
  expect((await run('status', '--exit-code')).code).toBe(0);
  await leave(term);
  expect((await run('status')).code).toBe(0);
  expect((await run('status', '--exit-code')).code).toBe(1);
});

test('status shows what operators asked for', async () => {
  const snapshot: Inspected = {
    view: { state: 'led', token: 3n, sinceUnixMs: 0 },
    history: [],
    drains: [{ id: 'host-3', untilUnixMs: 60_000 }],
    request: { kind: 'transfer', to: 'host-9', nonce: 'n' },
    leaseMs: 15_000,
    unfenced: [],
    holderGone: false,
    candidateLeaseMs: 15_000,
  };
  const seen = { snapshot, store: 's', waiting: undefined };
  const words = new Map(asFields('x', seen, 0).map(([name, [cell]]) => [name, cell?.text]));
  expect(words.get('asked to')).toBe('hand over to host-9');
  expect(words.get('drained')).toMatch(/^host-3 until .* \(1m more\)$/);
});

test('a seat that is taken over, or whose holder is dead, is told apart from an empty one', () => {
  const state = (changes: Partial<Inspected>) => {
    const snapshot: Inspected = {
      view: { state: 'vacant', token: 3n, sinceUnixMs: 0 },
      history: [],
      drains: [],
      request: undefined,
      leaseMs: undefined,
      unfenced: [],
      holderGone: false,
      candidateLeaseMs: 15_000,
      ...changes,
    };
    const entries = asFields('x', { snapshot, store: 's', waiting: undefined }, 0);
    return new Map(entries.map(([name, [cell]]) => [name, cell?.text])).get('state');
  };
  expect(state({})).toBe('vacant');
  expect(state({ leaseMs: 15_000 })).toBe('vacant (somebody is taking over)');
  expect(state({ leaseMs: 15_000, holderGone: true })).toBe('vacant (the last leader is dead)');
});

test('a leader that could not be fenced is shown, with the candidate that tried and its reason', () => {
  const leader = { id: 'host-7', incarnation: 'x', addresses: [], metadata: {}, token: 3n };
  const snapshot: Inspected = {
    view: { state: 'vacant', token: 5n, sinceUnixMs: 0 },
    history: [
      { token: 3n, id: 'host-7', incarnation: 'x', fromUnixMs: 1, toUnixMs: 2, why: 'unclean' },
    ],
    drains: [],
    request: undefined,
    leaseMs: undefined,
    unfenced: [
      { ...leader, failure: { by: 'host-9', why: 'no route to it' } },
      { ...leader, id: 'host-8', token: 4n, failure: { by: 'host-9' } },
    ],
    holderGone: false,
    candidateLeaseMs: 15_000,
  };
  const entries = asFields('x', { snapshot, store: 's', waiting: undefined }, 0);
  const shown = new Map(entries.map(([name, cells]) => [name, cells.map(({ text }) => text)]));
  expect(shown.get('state')).toEqual(['vacant']);
  expect(shown.get('not fenced')).toEqual([
    'host-7 (token 3), tried by host-9: no route to it',
    'host-8 (token 4), tried by host-9: its log says why it failed',
  ]);
  expect(whyVacant({ ...snapshot, leaseMs: 15_000 }, 0)).toMatch(
    /^somebody is taking over; not fenced yet: host-7 \(token 3\), tried by host-9: no route to it; not/,
  );
  expect(termsOf(snapshot)).toMatchObject([{ token: 3n, why: 'unclean', unfenced: true }]);
});

test('a leader that prepares its work is shown as not ready', async () => {
  const { run, term, backend } = await led({ ready: 'manual' });
  expect((await run('status')).stdout).toMatch(/^state +led, not ready \(/m);
  expect(jsonLines((await run('status', '--json')).stdout)).toMatchObject([{ ready: false }]);
  expect(jsonLines((await run('leader', '--json')).stdout)).toMatchObject([{ ready: false }]);
  const watch = new Running(['watch', '-e', 'x'], { backend });
  await watch.printed(/ led {6}host-7 {2}token 1 {2}not ready {2}at /);
  await term.ready();
  await watch.printed(/ led {6}host-7 {2}token 1 {2}at /);
  watch.signal('SIGTERM');
  await watch.result;
  expect((await run('status')).stdout).toMatch(/^state +led$/m);
});

test('leader --ready waits for a leader that is ready', async () => {
  const { term, backend } = await led({ ready: 'manual' });
  const asking = new Running(['leader', '-e', 'x', '--ready'], { backend });
  const watch = new Running(['watch', '-e', 'x'], { backend });
  await watch.printed(/not ready/);
  await term.ready();
  expect(await asking.result).toMatchObject({ code: 0, stdout: '10.0.0.7:80\n', stderr: '' });
  watch.signal('SIGTERM');
  await watch.result;
});

test('leader --ready gives up after --wait, and says what it has seen', async () => {
  const { run, term } = await led({ ready: 'manual' });
  const waiting = await run('leader', '--ready', '--wait', '20ms');
  expect(waiting).toEqual({
    code: 1,
    stdout: '',
    stderr: 'incumbent: the leader "host-7" of election "x" was not ready within 20ms (--wait)\n',
  });
  await leave(term);
  const vacant = await run('leader', '--ready', '--wait', '20ms');
  expect([vacant.code, vacant.stderr]).toEqual([
    1,
    'incumbent: nobody leads election "x": it stayed vacant for 20ms\n',
  ]);
  const alone = await run('leader', '--wait', '20ms');
  expect([alone.code, alone.stderr]).toEqual([64, expect.stringContaining('there is no --ready')]);
});

test('leader prints the first address and nothing else', async () => {
  const { run } = await led();
  expect(await run('leader')).toEqual({ code: 0, stdout: '10.0.0.7:80\n', stderr: '' });
  expect((await run('leader', '--all')).stdout).toBe('10.0.0.7:80\n[2001:db8::7]:80\n');
  expect((await run('leader', '--id')).stdout).toBe('host-7\n');
});

test('leader as JSON', async () => {
  const { run, term } = await led();
  expect(jsonLines((await run('leader', '--json')).stdout)).toMatchObject([
    { election: 'x', id: 'host-7', token: term.token.toString(), since: iso },
  ]);
});

test('leader without an address says how to get one', async () => {
  const { run } = await led({ addresses: [] });
  const { code, stdout, stderr } = await run('leader');
  expect(code).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toContain('has told no address; --id prints its id');
  expect((await run('leader', '--id')).stdout).toBe('host-7\n');
});

test('leader ends with 1 when there is no leader', async () => {
  const { code, stdout, stderr } = await invoke(['leader', '-e', 'y']);
  expect(code).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toBe('incumbent: nobody leads election "y": no leader is on record\n');
});

test('candidates lists the leader first, and the drained candidates', async () => {
  const { run, backend } = await led();
  await waiting(backend, 'a-host');
  await run('drain', '--id', 'a-host', '--until', '2030-05-01T06:00Z');
  const { code, stdout } = await run('candidates');
  expect(code).toBe(0);
  const [header, first, second, end] = stdout.split('\n');
  expect(header).toMatch(/^ROLE +ID +ADDRESSES +METADATA$/);
  expect(first).toMatch(/^leading +host-7 +10\.0\.0\.7:80 \[2001:db8::7\]:80 +zone=eu-1$/);
  expect(second).toMatch(/^waiting, drained until 2030-\S+ \S+ +a-host$/);
  expect(end).toBe('');
  expect(jsonLines((await run('candidates', '--json')).stdout)).toMatchObject([
    { role: 'leading', id: 'host-7', metadata: { zone: 'eu-1' }, drainedUntil: null },
    { role: 'waiting', id: 'a-host', drainedUntil: '2030-05-01T06:00:00.000Z' },
  ]);
});

test('an empty list is no error', async () => {
  const none = await invoke(['candidates', '-e', 'x']);
  expect(none).toEqual({ code: 0, stdout: '', stderr: 'nobody leads, and nobody waits\n' });
  const never = await invoke(['history', '-e', 'x', '--json']);
  expect(never).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('a store that cannot list candidates is refused by name', async () => {
  const backend = altered({ canListCandidates: false });
  const { code, stderr } = await invoke(['candidates', '-e', 'x'], { backend });
  expect(code).toBe(1);
  expect(stderr).toBe('incumbent: the memory store cannot list candidates\n');
});

test('history shows each term, the running one last', async () => {
  const { run, term, election } = await led();
  await leave(term);
  const second = await election.campaign();
  onTestFinished(() => leave(second));
  const { code, stdout } = await run('history');
  expect(code).toBe(0);
  const lines = stdout.split('\n');
  expect(lines[0]).toMatch(/^TOKEN +LEADER +FROM +TO +LASTED +GAP BEFORE +ENDED$/);
  expect(lines[1]).toMatch(/^ +1 +host-7 +\S+ \S+ +\S+ \S+ +\S+ +resigned$/);
  expect(lines[2]).toMatch(/^ +2 +host-7 +\S+ \S+ +now +\S.* +\S.* +leads$/);
  const [first, now] = jsonLines((await run('history', '--json')).stdout);
  expect(first).toEqual({
    token: '1',
    id: 'host-7',
    incarnation: expect.any(String),
    from: iso,
    to: iso,
    durationMs: expect.any(Number),
    why: 'resigned',
    gapBeforeMs: null,
  });
  expect(now).toMatchObject({ token: '2', to: null, durationMs: null, why: null });
});

test('the gap after an unclean end is not known', () => {
  const term = { id: 'a', incarnation: 'i', toUnixMs: 10, fromUnixMs: 0 };
  const rows = termsOf({
    view: { state: 'vacant', token: 3n, sinceUnixMs: 0 },
    history: [
      { ...term, token: 1n, why: 'unclean' },
      { ...term, token: 2n, why: 'resigned', fromUnixMs: 10, toUnixMs: 20 },
      { ...term, token: 3n, why: 'resigned', fromUnixMs: 25, toUnixMs: 30 },
    ],
    drains: [],
    request: undefined,
    leaseMs: undefined,
    unfenced: [],
    holderGone: false,
  });
  expect(rows.map(({ gapBeforeMs }) => gapBeforeMs)).toEqual([null, null, 5]);
});

test('watch prints the state and then every change, until it is interrupted', async () => {
  const { backend, term } = await led();
  const watch = new Running(['watch', '-e', 'x'], { backend });
  await watch.printed(/led/);
  await leave(term);
  await watch.printed(/vacant/);
  await invoke(['end', '-e', 'x'], { backend });
  await watch.printed(/ended/);
  watch.signal('SIGINT');
  const { code, stdout, stderr } = await watch.result;
  expect(code).toBe(130);
  expect(stderr).toBe('');
  const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`;
  expect(stdout).toMatch(
    new RegExp(
      `^${time}  led      host-7  token 1  at 10\\.0\\.0\\.7:80 \\[2001:db8::7\\]:80  zone=eu-1\n` +
        `${time}  vacant   last token 1\n${time}  ended    last token 1\n$`,
    ),
  );
  expect(watch.handlers).toBe(0);
});

test('watch as JSON', async () => {
  const { backend, term } = await led();
  const watch = new Running(['watch', '-e', 'x', '--json'], { backend });
  await watch.printed(/\n/);
  watch.signal('SIGTERM');
  const { code, stdout } = await watch.result;
  expect(code).toBe(143);
  expect(jsonLines(stdout)).toEqual([
    {
      time: iso,
      election: 'x',
      state: 'led',
      leader: expect.objectContaining({ id: 'host-7' }),
      ready: true,
      token: term.token.toString(),
      since: iso,
    },
  ]);
});

test('a second interruption does not wait for an orderly end', async () => {
  const watch = new Running(['watch', '-e', 'x']);
  await watch.printed(/vacant/);
  watch.signal('SIGINT');
  watch.signal('SIGINT');
  expect(watch.exits).toEqual([130]);
  expect((await watch.result).code).toBe(130);
});

test('vacate asks the leader, which goes', async () => {
  const { run, term } = await led();
  const { code, stdout } = await run('vacate');
  expect(code).toBe(0);
  expect(stdout).toBe('asked "host-7" (token 1) to give up election "x"\n');
  if (!term.signal.aborted) await once(term.signal, 'abort');
  await leave(term);
  expect((await term.ended).reason).toBe('vacated');
  const again = await run('vacate', '--json');
  expect(jsonLines(again.stdout)).toMatchObject([
    { election: 'x', request: 'vacate', force: false, changed: false, before: { token: '1' } },
  ]);
  expect((await run('vacate')).stdout).toBe(
    'nobody leads election "x", so there is nobody to ask\n',
  );
});

test('vacate --force ends a term whose work does not stop', async () => {
  const { run } = await led();
  await run('vacate');
  expect((await run('vacate', '--force')).stdout).toContain(
    'its term ends even if its work does not stop',
  );
});

test('transfer asks the leader to hand over to a waiting candidate', async () => {
  const { run, backend } = await led();
  await waiting(backend, 'host-9');
  expect((await run('transfer', '--to', 'host-9')).stdout).toBe(
    'asked "host-7" (token 1) to hand election "x" over to "host-9"\n',
  );
});

test('transfer to a candidate that does not wait is refused, naming those that do', async () => {
  const { run } = await led();
  const { code, stdout, stderr } = await run('transfer', '--to', 'nobody');
  expect(code).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toContain(
    '"nobody" is not waiting for this election, as a candidate whose health check fails is not; no candidate is',
  );
  expect((await run('transfer', '--to', 'host-7')).stderr).toContain('leads election "x" already');
});

test('drain keeps out until a time, and is lifted', async () => {
  const { run, backend } = await led();
  await waiting(backend, 'host-3');
  const drained = await run('drain', '--id', 'host-3', '--until', '2h');
  expect(drained.stdout).toMatch(/^"host-3" is kept out of election "x" until \S+ \S+ \(2h\)\n$/);
  expect((await run('drain', '--id', 'host-7', '--until', '2h')).stdout).toContain(
    'it leads, and was asked to go',
  );
  const json = await run('drain', '--id', 'b', '--until', '2030-05-01T06:00Z', '--json', '--force');
  expect(jsonLines(json.stdout)).toMatchObject([
    { request: 'drain', id: 'b', until: '2030-05-01T06:00:00.000Z', changed: true },
  ]);
  const lift = () => run('drain', '--id', 'host-3', '--lift');
  expect((await lift()).stdout).toBe('"host-3" takes part in election "x" again\n');
  expect((await lift()).stdout).toBe(
    '"host-3" was not kept out of election "x"; kept out: "host-7" and "b"\n',
  );
});

test('end finishes the election, and init --reopen opens it again', async () => {
  const { run, backend, term } = await led();
  expect((await run('end')).stdout).toContain('is ended for everybody');
  await leave(term);
  expect((await run('end')).stdout).toBe('election "x" was ended already\n');
  expect((await run('status')).stdout).toContain('ended (init --reopen opens it again)');
  expect((await run('leader')).stderr).toContain('it was ended for everybody');
  expect((await run('init')).stdout).toContain('but it was ended');
  expect((await run('init', '--reopen')).stdout).toBe('election "x" is open again\n');
  expect((await run('init', '--reopen')).stdout).toBe('election "x" was open already\n');
  expect((await run('init')).stdout).toBe('election "x" is ready on test:\n');
  const { stdout } = await invoke(['init', '-e', 'x', '--json'], { backend });
  expect(jsonLines(stdout)).toEqual([
    { election: 'x', store: 'test:', ready: true, made: null, state: 'vacant' },
  ]);
});

test('records cannot move the cursor', async () => {
  // As a foreign writer could leave it: the library refuses to write such ids.
  const foreign = altered({
    inspect: async () => ({
      view: {
        state: 'led',
        token: 1n,
        sinceUnixMs: 1e300,
        leader: {
          id: 'a\u001b[2Jb',
          incarnation: 'i',
          addresses: ['x\u009b1m'],
          metadata: { 'k\n': 'v\u202e' },
        },
      },
      history: [
        {
          token: 1n,
          id: 'a\r',
          incarnation: 'i',
          fromUnixMs: 0,
          toUnixMs: -1e300,
          why: 'resigned',
        },
      ],
      drains: [{ id: '\u0007', untilUnixMs: Number.MAX_VALUE }],
      request: undefined,
      leaseMs: 15_000,
      unfenced: [],
      holderGone: false,
    }),
  });
  for (const argv of [['status'], ['history'], ['candidates'], ['leader'], ['leader', '--id']]) {
    for (const form of [[], ['--json']]) {
      const { code, stdout } = await invoke([...argv, '-e', 'x', ...form], { backend: foreign });
      expect(code).toBe(0);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what must not be there
      expect(stdout.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    }
  }
  expect((await invoke(['leader', '-e', 'x'], { backend: foreign })).stdout).toBe('x\\x9b1m\n');
});

test('a terminal gets colours', async () => {
  const { backend } = await led();
  const { stdout } = await invoke(['status', '-e', 'x'], { backend, terminal: 80 });
  expect(stdout).toContain('\u001b[32mled\u001b[39m');
  const env = { NO_COLOR: '1' };
  const none = await invoke(['status', '-e', 'x'], { backend, terminal: 80, env });
  expect(none.stdout).not.toContain('\u001b');
});

/** A store that never answers. */
function hangingStore(): Backend {
  return altered({ inspect: () => new Promise(() => {}), init: () => new Promise(() => {}) });
}

test('a store that does not answer is given up after --timeout', async () => {
  const { code, stderr } = await invoke(['status', '-e', 'x', '--timeout', '20ms'], {
    backend: hangingStore(),
  });
  expect(code).toBe(69);
  expect(stderr).toContain('the store test: did not answer within 20ms (--timeout)');
});

test('servers that fail are asked again, and in the end the reason is named', async () => {
  const servers = { examine: async () => [], scratch: async () => Promise.reject(new Error()) };
  const failing = (times: number) => {
    let asked = 0;
    const inner = memory();
    const backend = altered({
      inspect: async (signal) => {
        asked += 1;
        if (asked <= times) throw new StoreUnavailableError('it is starting');
        return inner.open(scope!).inspect(signal);
      },
    });
    let scope: Parameters<Backend['open']>[0] | undefined;
    const seen: Backend = {
      ...backend,
      open: (given) => {
        scope = given;
        return backend.open(given);
      },
    };
    return async () => ({ url: 'test:', origin: '--store', backend: seen, servers }) as const;
  };
  const again = await invoke(['status', '-e', 'x'], { openStore: failing(2) });
  expect(again).toMatchObject({ code: 0, stderr: '' });
  const never = ['status', '-e', 'x', '--timeout', '300ms'];
  expect(await invoke(never, { openStore: failing(Number.POSITIVE_INFINITY) })).toEqual({
    code: 69,
    stdout: '',
    stderr: 'incumbent: the store test: did not answer within 300ms (--timeout): it is starting\n',
  });
});

test('an interruption does not wait for the store', async () => {
  const status = new Running(['status', '-e', 'x', '--timeout', '1h'], { backend: hangingStore() });
  while (status.handlers === 0) await new Promise(setImmediate);
  status.signal('SIGINT');
  expect((await status.result).code).toBe(130);
});

test('a store that cannot be opened is a plain error', async () => {
  const { code, stderr } = await invoke(['status', '-e', 'x'], {
    openStore: async () => {
      throw Object.assign(new Error('EACCES: permission denied, mkdir'), {
        code: 'EACCES',
        syscall: 'mkdir',
      });
    },
  });
  expect(code).toBe(69);
  expect(stderr).toBe('incumbent: EACCES: permission denied, mkdir\n');
});
