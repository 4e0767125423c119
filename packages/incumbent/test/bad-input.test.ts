import { expect, test } from 'vitest';
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
