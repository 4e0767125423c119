import { expect, test } from 'vitest';
import { file } from '../src/backends/file/index.ts';
import { memory } from '../src/backends/memory/index.ts';
import {
  ClosedError,
  createElection,
  InvalidOptionError,
  MisuseError,
  selfAddresses,
} from '../src/index.ts';

const backend = memory();

test.each([
  ['', 'the election name must not be empty'],
  ['a\nb', 'contains the control character U+000A'],
  ['a\u0000', 'contains the control character U+0000'],
  ['a\u2028', 'contains the control character U+2028'],
  ['\ud800', 'half a surrogate pair'],
  ['x'.repeat(201), 'has 201 bytes, at most 200 are allowed'],
  [undefined, 'the election name must be a string, not undefined'],
  [7, 'the election name must be a string, not 7'],
])('the election name %j is refused: %s', (name, message) => {
  const create = () => createElection({ name: name as string, backend });
  expect(create).toThrow(InvalidOptionError);
  expect(create).toThrow(message);
});

test.each([
  [{ id: '' }, 'the candidate id must not be empty'],
  [{ id: '\u001b[31m' }, 'control character U+001B'],
  [{ addresses: 'host:1' as never }, 'addresses must be a list, not "host:1"'],
  [{ addresses: [''] }, 'an address must not be empty'],
  [{ addresses: Array.from({ length: 33 }, (_, i) => `h:${i}`) }, '33 addresses were given'],
  [{ metadata: { a: 1 } as never }, 'metadata "a" must be a string, not 1'],
  [{ metadata: [] as never }, 'metadata must be an object with string values, not a list'],
  [{ metadata: { big: 'x'.repeat(5000) } }, 'at most 4096 are allowed'],
])('the candidate %j is refused: %s', (candidate, message) => {
  expect(() => createElection({ name: 'jobs', backend, candidate })).toThrow(message);
});

test('a backend that is none is refused', () => {
  expect(() => createElection({ name: 'jobs', backend: {} as never })).toThrow(
    'backend must be a store such as file(directory) from "incumbent/file"',
  );
  expect(() => createElection(undefined as never)).toThrow(InvalidOptionError);
});

test('two campaigns on one handle are refused, and the first goes on', async () => {
  const election = createElection({ name: 'two', backend });
  const term = await election.campaign();
  await expect(election.campaign()).rejects.toThrow(MisuseError);
  await expect(election.lead(() => {})).rejects.toThrow('campaigns already');
  await expect(election.terms().next()).rejects.toThrow('campaigns already');
  expect(term.isLeading()).toBe(true);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('a closed handle refuses everything, by name', async () => {
  const election = createElection({ name: 'closed', backend });
  await election.close();
  await election.close();
  await expect(election.campaign()).rejects.toThrow(ClosedError);
  await expect(election.lead(() => {})).rejects.toThrow(
    'this handle on election "closed" is closed',
  );
  await expect(election.leader()).rejects.toThrow(ClosedError);
  await expect(election.vacate()).rejects.toThrow(ClosedError);
  await expect(election.observe().next()).rejects.toThrow(ClosedError);
  await expect(election.terms().next()).rejects.toThrow(ClosedError);
});

test('options of a campaign are checked before it starts', async () => {
  const election = createElection({ name: 'options', backend });
  await expect(election.lead('work' as never)).rejects.toThrow('work must be a function');
  await expect(election.campaign({ wait: '5' })).rejects.toThrow('wait "5" has no unit');
  await expect(election.campaign({ watchdog: 'bark' as never })).rejects.toThrow(
    'watchdog is "kill"',
  );
  await expect(election.campaign({ actors: 'all' as never })).rejects.toThrow('actors is "self"');
  await expect(election.campaign({ onUnclean: 'rm' as never })).rejects.toThrow('takes functions');
  await expect(election.campaign({ health: { check: 1 as never } })).rejects.toThrow(
    'health.check must be a function',
  );
  await expect(election.lead(() => {}, { holdAtLeast: '-1s' })).rejects.toThrow('holdAtLeast');
  await expect(election.drain('x', new Date(Number.NaN))).rejects.toThrow('valid Date');
  expect((await election.leader()).state).toBe('vacant');
  await election.close();
});

test.each([
  ['campaign', { holdAtLeast: '5m' }, '`campaign` has no option "holdAtLeast": `lead` takes it'],
  ['campaign', { again: () => false }, '`campaign` has no option "again": `lead` takes it'],
  ['terms', { wait: 0 }, '`terms` has no option "wait": `lead` or `campaign` takes it'],
  ['terms', { holdAtLeast: 1 }, '`terms` has no option "holdAtLeast": `lead` takes it'],
  ['campaign', { weight: 1 }, '`campaign` has no option "weight"; it knows candidate, signal'],
  ['campaign', { health: null }, 'health takes options such as { check: () => fetch('],
  ['campaign', { health: { check: () => {}, evry: 5 } }, 'health has no option "evry"'],
  ['campaign', { hookTimeout: '1s' }, 'hookTimeout bounds the hooks of onUnclean'],
  ['campaign', new AbortController().signal, '`campaign` takes options, not a signal alone'],
  ['campaign', [], '`campaign` takes options, not a list'],
  ['observe', { sginal: 1 }, '`observe` has no option "sginal"; it knows seat, signal'],
  ['leader', new AbortController().signal, '`leader` takes options, not a signal alone'],
  ['inspect', { timeout: 1 }, '`inspect` has no option "timeout"; it knows seat, signal'],
  ['history', { limit: 1 }, '`history` has no option "limit"; it knows seat, signal'],
  ['candidates', { signal: 1 }, 'signal must be an AbortSignal, not 1'],
  ['vacate', { forced: true }, '`vacate` has no option "forced"; it knows force, seat, signal'],
  ['vacate', { force: 'yes' }, 'force must be true or false, not "yes"'],
  ['end', { force: true }, '`end` has no option "force"; it knows remove, signal'],
  ['end', { remove: 1 }, 'remove must be true or false, not 1'],
  ['deleteCandidates', { force: true }, '`deleteCandidates` has no option "force"'],
  ['reopen', null, '`reopen` takes options, not null'],
  ['init', { force: true }, '`init` has no option "force"; it knows signal'],
] as const)('options that %s would ignore are refused: %j', async (call, options, message) => {
  const election = createElection({ name: 'ignored', backend });
  const ask = async () => {
    const answer: unknown = election[call](options as never);
    await (call === 'terms' ? (answer as { next(): unknown }).next() : answer);
  };
  const refusal = await ask().catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(InvalidOptionError);
  expect((refusal as Error).message).toContain(message);
  expect((await election.leader()).state).toBe('vacant');
  await election.close();
});

test('what a term would ignore or misread is refused', async () => {
  const election = createElection({ name: 'term', backend });
  const term = await election.campaign({ actors: 'declared' });
  for (const ms of ['5', null, true, Number.NaN, -1, 12_000]) {
    expect(() => term.assertLeading(ms as number)).toThrow(InvalidOptionError);
  }
  expect(() => term.assertLeading('5' as never)).toThrow('takes a number of ms');
  await expect(term.proclaim({ adress: 'x' } as never)).rejects.toThrow('no option "adress"');
  await expect(term.proclaim(null as never)).rejects.toThrow('takes options such as { addresses');
  await expect(term.proclaim({}, { wait: 1 } as never)).rejects.toThrow('no option "wait"');
  await expect(term.declareActors([{ pid: 1, grp: 1 } as never])).rejects.toThrow('"grp"');
  await expect(term.declareActors(7 as never)).rejects.toThrow('a list of processes, or null');
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('options of file() that are misspelt or no booleans are refused', () => {
  expect(() => file('/tmp/x', { trust: true } as never)).toThrow('file() has no option "trust"');
  expect(() => file('/tmp/x', { trustFileSystem: 'no' as never })).toThrow('true or false');
});

test('proclaim and declareActors check what they are given', async () => {
  const election = createElection({ name: 'proclaim', backend });
  const term = await election.campaign();
  await expect(term.proclaim({ metadata: { x: 'y'.repeat(5000) } })).rejects.toThrow('4096');
  await expect(term.declareActors([])).rejects.toThrow('actors: "declared"');
  await term[Symbol.asyncDispose]();
  await expect(term.proclaim({ metadata: {} })).rejects.toThrow('it resigned');
  await election.close();
});

test('selfAddresses takes a port and gives no loopback or link-local address', () => {
  expect(() => selfAddresses(0)).toThrow('1 to 65535');
  expect(() => selfAddresses(1.5)).toThrow('1 to 65535');
  for (const address of selfAddresses(50051)) {
    expect(address).toMatch(/:50051$/);
    expect(address).not.toMatch(/^(127\.|\[::1\]|\[fe80|169\.254\.)/);
  }
});
