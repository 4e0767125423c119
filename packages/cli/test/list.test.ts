// `incumbent list`: which elections it shows, and how.
import type { Backend, ElectionSummary } from 'incumbent';
import { createElection, RecordDamagedError, StoreUnavailableError } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, onTestFinished, test } from 'vitest';
import { countWords, rowOf } from '../src/output/election-row.ts';
import { invoke, jsonLines, Running } from './support/invoke.ts';

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** A leader of an election, until the test ends. */
async function led(backend: Backend, name: string, id: string) {
  const election = createElection({ name, backend, candidate: { id } });
  const term = await election.campaign();
  const end = async () => {
    await term[Symbol.asyncDispose]();
    await election.close();
  };
  onTestFinished(end);
  return { term, end };
}

/** `orders-2` and `orders-10` are led, `nightly` is vacant after a term. */
async function someElections(): Promise<Backend> {
  const backend = memory();
  await led(backend, 'orders-10', 'host-1');
  await led(backend, 'orders-2', 'host-2');
  await (await led(backend, 'nightly', 'host-3')).end();
  return backend;
}

/** The same, with one that cannot be read. */
function withDamaged(backend: Backend): Backend {
  return {
    ...backend,
    async *survey(options) {
      yield* backend.survey(options);
      const error = new RecordDamagedError('the key "k"', 'no JSON');
      yield summary({ name: 'broken', view: { state: 'unknown', sinceUnixMs: 0, error } });
    },
  };
}

function summary(fields: Partial<ElectionSummary>): ElectionSummary {
  return {
    name: 'x',
    view: { state: 'vacant', sinceUnixMs: 0 },
    history: [],
    drains: [],
    unfenced: [],
    request: undefined,
    leaseMs: undefined,
    holderGone: false,
    waiting: undefined,
    ...fields,
  };
}

test('shows all elections, sorted by name as people count', async () => {
  const backend = withDamaged(await someElections());
  const { code, stdout, stderr } = await invoke(['list'], { backend });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const time = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d';
  const [head, ...rows] = stdout.trimEnd().split('\n');
  expect(head).toMatch(/^ELECTION +STATE +LEADER +TOKEN +SINCE +FOR +WAITING +LAST CHANGE$/);
  expect(rows).toEqual([
    expect.stringMatching(/^broken +unknown .*\? +the key "k" .*no JSON/),
    expect.stringMatching(new RegExp(`^nightly +vacant +1 +${time} .* resigned \\(host-3\\)$`)),
    expect.stringMatching(new RegExp(`^orders-2 +led +host-2 +1 +${time} +\\S+$`)),
    expect.stringMatching(new RegExp(`^orders-10 +led +host-1 +1 +${time} +\\S+$`)),
  ]);
});

test('as JSON, one object a line', async () => {
  const backend = await someElections();
  const { stdout } = await invoke(['list', '--json'], { backend });
  expect(jsonLines(stdout)).toEqual([
    {
      ...{ election: 'nightly', state: 'vacant', leader: null, ready: null, token: '1' },
      ...{ since: iso, waiting: [], why: null },
      previous: { token: '1', id: 'host-3', to: iso, why: 'resigned' },
    },
    {
      ...{ election: 'orders-2', state: 'led', leader: 'host-2', ready: true, token: '1' },
      ...{ since: iso, waiting: [], previous: null, why: null },
    },
    expect.objectContaining({ election: 'orders-10', leader: 'host-1' }),
  ]);
});

test.each([
  [['--led'], ['orders-2', 'orders-10']],
  [['--vacant'], ['nightly']],
  [
    ['--name', 'orders-*'],
    ['orders-2', 'orders-10'],
  ],
  [['--name', 'orders-?'], ['orders-2']],
  [['--name', '*ight*', '--led'], []],
  [['--name', 'orders'], []],
  [['--name', '[n]ightly'], []],
  [['--name', 'night.y'], []],
  [['--name', '^$\\{}|()+/-'], []],
])('%j chooses some', async (options, expected) => {
  const backend = await someElections();
  const { code, stdout } = await invoke(['list', '--json', ...options], { backend });
  expect(code).toBe(0);
  expect(jsonLines(stdout).map(({ election }) => election)).toEqual(expected);
});

test('an empty list is no error', async () => {
  expect(await invoke(['list'])).toEqual({
    ...{ code: 0, stdout: '' },
    stderr: 'this store holds no election\n',
  });
  const none = await invoke(['list', '--led'], { backend: memory() });
  expect(none.stderr).toBe('no election of this store is such\n');
});

test('a store that cannot list says so, and why', async () => {
  const { code, stdout, stderr } = await invoke(['list'], {
    backend: {
      ...memory(),
      survey: () => {
        throw new StoreUnavailableError('the rights are missing');
      },
    },
  });
  expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
  expect(stderr).toContain('the rights are missing');
});

test.each([
  [['--every', '5s'], '--every says how often --watch looks'],
  [['--watch', '--every', '10ms'], '--every 10ms: the store is asked for everything each time'],
  [['--led', '--vacant'], "'--led' cannot be used with option '--vacant'"],
  [['-e', 'x'], "unknown option '-e'"],
])('%j is refused before the store is asked', async (options, words) => {
  const { code, stderr } = await invoke(['list', ...options], {
    openStore: async () => {
      throw new Error('it was asked');
    },
  });
  expect(code).toBe(64);
  expect(stderr).toContain(words);
});

test('--watch prints what changes, and what is gone', async () => {
  const backend = await someElections();
  let hidden = '';
  const seen: Backend = {
    ...backend,
    async *survey(options) {
      for await (const each of backend.survey(options)) if (each.name !== hidden) yield each;
    },
  };
  const watch = new Running(['list', '--watch', '--every', '100ms', '--json'], { backend: seen });
  await watch.printed(/orders-10/);
  expect(jsonLines(watch.stdout)).toHaveLength(3);
  await led(backend, 'nightly', 'host-4');
  await watch.printed(/"nightly","state":"led","leader":"host-4"/);
  hidden = 'orders-2';
  await watch.printed(/"orders-2","state":null/);
  watch.signal('SIGINT');
  expect((await watch.result).code).toBe(130);
  expect(jsonLines(watch.stdout).at(-1)).toEqual({ time: iso, election: 'orders-2', state: null });
});

test('--watch goes on when the store does not answer, and says so once', async () => {
  const backend = await someElections();
  let fails = 0;
  let isAway = false;
  const seen: Backend = {
    ...backend,
    async *survey(options) {
      if (isAway) {
        fails += 1;
        if (fails > 2) isAway = false;
        throw new StoreUnavailableError('gone for a while');
      }
      yield* backend.survey(options);
    },
  };
  const watch = new Running(['list', '--watch', '--every', '100ms'], { backend: seen });
  await watch.printed(/orders-10/);
  isAway = true;
  await watch.said(/gone for a while/);
  await led(backend, 'nightly', 'host-4');
  await watch.printed(/nightly +led +host-4/);
  watch.signal('SIGINT');
  await watch.result;
  expect(watch.stderr.match(/gone for a while/g)).toHaveLength(1);
  expect(fails).toBe(3);
});

test('--watch on a terminal draws the table in place, and gives the cursor back', async () => {
  const backend = await someElections();
  const watch = new Running(['list', '--watch', '--every', '100ms'], { backend, terminal: 100 });
  await watch.printed(/3 elections: 2 led, 1 vacant/);
  await led(backend, 'nightly', 'host-4');
  await watch.printed(/3 elections: 3 led/);
  watch.signal('SIGINT');
  await watch.result;
  expect(watch.stdout.startsWith('\x1b[?25l\x1b[H')).toBe(true);
  expect(watch.stdout.endsWith('\x1b[?25h')).toBe(true);
});

test('records cannot move the cursor', async () => {
  const backend: Backend = {
    ...memory(),
    async *survey() {
      const leader = { id: 'a\x1b[2J', incarnation: 'i', addresses: [], metadata: {} };
      yield summary({
        name: 'evil\x07',
        view: { state: 'led', leader, ready: true, token: 1n, sinceUnixMs: 0 },
        waiting: [{ ...leader, id: 'w\n' }],
      });
    },
  };
  const { stdout } = await invoke(['list'], { backend });
  expect(stdout).toContain('evil\\x07');
  expect(stdout).toContain('a\\x1b[2J');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  expect(stdout).not.toMatch(/[\x07\x1b]/);
});

test('the reason of a vacancy is told with the end of the last term', () => {
  const held = summary({
    view: { state: 'vacant', token: 3n, sinceUnixMs: 5 },
    history: [{ token: 3n, id: 'a', incarnation: 'i', fromUnixMs: 1, toUnixMs: 5, why: 'unclean' }],
    holderGone: true,
  });
  expect(rowOf(held, 15_000, 10)).toMatchObject({
    since: null,
    why: 'the last leader is dead',
    previous: { id: 'a', why: 'unclean' },
  });
});

test('counts by state', () => {
  const rows = ['led', 'led', 'vacant', 'unknown'].map((state) =>
    rowOf(summary({ view: { state: state as 'led', sinceUnixMs: 0 } }), 15_000, 10),
  );
  expect(countWords(rows)).toBe('4 elections: 2 led, 1 vacant, 1 unknown');
  expect(countWords([])).toBe('0 elections');
});
