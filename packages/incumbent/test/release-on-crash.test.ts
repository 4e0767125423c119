/** The option `releaseOnCrash`. The companion itself is tested with real processes. */
import { afterEach, expect, test } from 'vitest';
import { file } from '../src/backends/file/index.ts';
import { memory } from '../src/backends/memory/index.ts';
import { InvalidOptionError, MisuseError } from '../src/base/errors.ts';
import { companionFile, Entrusted } from '../src/core/companion.ts';
import type { Backend } from '../src/core/contest.ts';
import { createElection } from '../src/core/election.ts';
import type { ElectionOptions } from '../src/core/options.ts';
import { estateOf } from '../src/core/release-on-crash.ts';
import { SimulatedClock } from '../src/testing/index.ts';

const module = new URL(import.meta.url);
const able = { giveBackFor: async () => true };
const onFiles = { name: 'jobs', backend: file('/tmp/elections') };
/** As a backend that has a client of the user. */
const withClient: Backend = { ...onFiles.backend, kind: 'x', description: 'a store' };
delete (withClient as { madeBy?: unknown }).madeBy;
const onClient = { name: 'jobs', backend: withClient };
const argv1 = process.argv[1]!;

afterEach(() => {
  process.argv[1] = argv1;
});

test('without it, no process is told anything', () => {
  expect(estateOf(onFiles, able)).toBeUndefined();
  expect(estateOf({ ...onFiles, releaseOnCrash: false }, able)).toBeUndefined();
});

test('the companion is told a module and the durations as they were given, and nothing of the client', () => {
  const options = { ...onClient, lease: '20s', clockDrift: 0.01, releaseOnCrash: module } as const;
  expect(estateOf(options, able)).toEqual({
    election: 'jobs',
    timing: { lease: '20s', clockDrift: 0.01 },
    store: { module: module.href, name: 'default', args: [] },
  });
});

test('a backend of plain values needs no module', () => {
  const { store } = estateOf({ ...onFiles, releaseOnCrash: true }, able)!;
  const args = ['/tmp/elections', {}];
  expect(store).toEqual({ module: expect.stringMatching(/file\/index/), name: 'file', args });
  const trusted = file('/tmp/elections', { trustFileSystem: true });
  expect(trusted.madeBy?.args).toEqual(['/tmp/elections', { trustFileSystem: true }]);
});

test.each<readonly [string, Partial<ElectionOptions<unknown>>, string]>([
  [
    'true where the store has a client',
    { backend: withClient, releaseOnCrash: true },
    'true cannot make a store again in another process, because it has a client of yours. Give the URL ' +
      'of a module whose default export is the backend: releaseOnCrash: new URL("store.js", import.meta.url)',
  ],
  ['a path', { releaseOnCrash: './store.js' as never }, 'or the URL of a file, as in releaseOn'],
  ['another URL', { releaseOnCrash: new URL('https://a.example/x.js') }, 'the URL of a file'],
  ['a file that is missing', { releaseOnCrash: new URL('none.js', module) }, 'there is no file /'],
  ['memory', { backend: memory(), releaseOnCrash: module }, 'cannot be given back on memory of'],
  ['a clock', { clock: new SimulatedClock(), releaseOnCrash: true }, 'leave out `clock`'],
])('refuses %s', (_, given, message) => {
  const make = () => createElection({ ...onFiles, ...given });
  expect(make).toThrow(InvalidOptionError);
  expect(make).toThrow(message);
});

test('refuses a store that cannot give a seat back for the dead', () => {
  const options = { ...onFiles, releaseOnCrash: true };
  const message = 'cannot be given back on file:/tmp/elections. Leave it out';
  expect(() => estateOf(options, { giveBackFor: undefined })).toThrow(message);
});

test('refuses work of other processes: it sees only this one die', async () => {
  await using election = createElection({ ...onFiles, releaseOnCrash: true });
  const begin = () => election.terms({ actors: 'declared' });
  expect(begin).toThrow(InvalidOptionError);
  expect(begin).toThrow('leave one of them out');
});

test('an heir does not lead, whatever the module of its store begins', () => {
  process.argv[1] = companionFile.replace('companion.cjs', 'heir.mjs');
  const store = { module: module.href, name: 'default', args: [] };
  const begin = () => new Entrusted({ election: 'jobs', timing: {}, store }, undefined, () => {});
  expect(begin).toThrow(MisuseError);
});
