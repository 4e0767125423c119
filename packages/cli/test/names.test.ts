// Misspelt names: of another election, or of a candidate that the store does not list.
import type { Backend } from 'incumbent';
import { createElection, StoreUnavailableError, StoreUnsuitableError } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, onTestFinished, test } from 'vitest';
import { altered } from './support/altered.ts';
import { invoke, jsonLines, Running } from './support/invoke.ts';

/** A store on which `host-7` leads the election `nightly`, with the elections of these names. */
async function withNightly(elections: readonly string[] = ['nightly']) {
  const backend = memory();
  const election = createElection({ name: 'nightly', backend, candidate: { id: 'host-7' } });
  const term = await election.campaign();
  onTestFinished(() => term[Symbol.asyncDispose]());
  const listed = listing(backend, async function* () {
    yield* elections;
  });
  return {
    backend: listed,
    run: (...argv: string[]) => invoke(argv, { backend: listed }),
    invocation: { backend: listed },
  };
}

function listing(backend: Backend, elections: Backend['elections']): Backend {
  return { ...backend, elections };
}

test.each(['status', 'leader', 'candidates', 'history', 'vacate'])(
  '%s of an election without a leader on record names the one that is meant',
  async (command) => {
    const { run } = await withNightly(['hourly', 'nightly']);
    const { stderr } = await run(command, '-e', 'nigthly');
    expect(stderr.split('\n')[0]).toBe(
      'incumbent: this store has no record of a leader of election "nigthly"; did you mean "nightly"?',
    );
    expect((await run(command, '-e', 'nightly')).stderr).not.toContain('record');
  },
);

test('with --json the note is an object on stderr, and stdout stays what it is', async () => {
  const { run } = await withNightly();
  const { code, stdout, stderr } = await run('status', '-e', 'nigthly', '--json');
  expect(code).toBe(0);
  expect(jsonLines(stdout)).toMatchObject([{ election: 'nigthly', state: 'vacant' }]);
  expect(jsonLines(stderr)).toEqual([
    {
      note: {
        code: 'NEVER_LED',
        message: expect.stringContaining('did you mean "nightly"?'),
      },
    },
  ]);
});

test('watch tells it once, behind its first line', async () => {
  const { invocation } = await withNightly();
  const watch = new Running(['watch', '-e', 'nigthly'], invocation);
  await watch.printed(/vacant/);
  await watch.said(/did you mean "nightly"\?/);
  watch.signal('SIGINT');
  await watch.result;
  expect(watch.stderr.match(/did you mean/g)).toHaveLength(1);
});

test('a name that is near and was never led is not offered; the others are listed', async () => {
  const { run } = await withNightly(['nigthlx', 'a', 'b', 'c', 'd', 'e']);
  expect((await run('status', '-e', 'nigthly')).stderr).toContain(
    '; there are "a", "b", "c", "d", "e" and 1 more',
  );
});

test.each<[string, Backend['elections']]>([
  [
    'that cannot list elections',
    () => {
      throw new StoreUnsuitableError('it cannot');
    },
  ],
  [
    'without another election',
    async function* () {
      yield 'nigthly';
    },
  ],
  [
    'that fails to list them',
    // biome-ignore lint/correctness/useYield: it fails before
    async function* () {
      throw new StoreUnavailableError('gone');
    },
  ],
])('of a store %s nothing is said', async (_what, elections) => {
  const result = await invoke(['status', '-e', 'nigthly'], {
    backend: listing(memory(), elections),
  });
  expect(result).toMatchObject({ code: 0, stderr: '' });
});

test('end of an election without a leader on record is refused, and with --force it is ended', async () => {
  const { run } = await withNightly();
  const refused = await run('end', '-e', 'nigthly');
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toBe(
    'incumbent: this store has no record of a leader of election "nigthly"; did you mean "nightly"? ' +
      '(`--force` ends it all the same)\n',
  );
  expect((await run('status', '-e', 'nigthly', '--json')).stdout).toContain('"vacant"');
  expect((await run('end', '-e', 'nigthly', '--force')).stdout).toContain('is ended for everybody');
});

test('drain of a candidate that nobody knows is refused, and with --force it is kept out', async () => {
  const { run } = await withNightly();
  const drain = (...words: string[]) => run('drain', '-e', 'nightly', '--until', '1h', ...words);
  const refused = await drain('--id', 'host-8');
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toBe(
    'incumbent: no candidate "host-8" waits in election "nightly" or has led it lately; did you ' +
      'mean "host-7"? (`--force` keeps it out all the same)\n',
  );
  expect((await drain('--id', 'other')).stderr).toContain('lately; known: "host-7" (`--force`');
  expect((await run('status', '-e', 'nightly', '--json')).stdout).toContain('"drains":[]');
  expect((await drain('--id', 'host-8', '--force')).stdout).toContain('"host-8" is kept out');
  // Now it is known.
  expect((await drain('--id', 'host-8')).code).toBe(0);
  const json = await drain('--id', 'other', '--json');
  expect(jsonLines(json.stderr)).toMatchObject([{ error: { code: 'UNKNOWN_CANDIDATE' } }]);
});

test('drain in an election without a leader on record names the one that is meant', async () => {
  const { run } = await withNightly();
  const refused = await run('drain', '-e', 'nigthly', '--id', 'host-7', '--until', '1h');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('; did you mean "nightly"? (`--force` keeps it out');
});

test('where the store lists no candidates, drain says that it could not be checked', async () => {
  const backend = altered({ canListCandidates: false });
  const { code, stdout } = await invoke(['drain', '-e', 'x', '--id', 'a', '--until', '1h'], {
    backend,
  });
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^"a" is kept out .*; whether there is such a candidate is not known: the memory store lists none\n$/,
  );
});

test('init without -e makes what all elections share, and says what', async () => {
  let missing = true;
  const store = {
    async prepare() {
      if (!missing) return undefined;
      missing = false;
      return 'the table "t"';
    },
  };
  expect(await invoke(['init'], { store })).toEqual({
    code: 0,
    stdout: 'made the table "t": elections can be held on test:\n',
    stderr: '',
  });
  expect((await invoke(['init'], { store })).stdout).toBe(
    'nothing is missing on test:: elections can be held there\n',
  );
  expect(jsonLines((await invoke(['init', '--json'], { store })).stdout)).toEqual([
    { store: 'test:', ready: true, made: null },
  ]);
  missing = true;
  expect((await invoke(['init', '-e', 'x'], { store })).stdout).toBe(
    'made the table "t": election "x" is ready on test:\n',
  );
});

test('init --reopen needs an election', async () => {
  const { code, stderr } = await invoke(['init', '--reopen']);
  expect(code).toBe(64);
  expect(stderr).toContain('name it, as in `incumbent init -e nightly --reopen`');
});
