import { expect, test } from 'vitest';
import type { S3Commands, S3Options } from '../src/backends/s3/index.ts';
import { s3 } from '../src/backends/s3/index.ts';
import { checkOptions } from '../src/backends/s3/options.ts';
import { createElection, InvalidOptionError } from '../src/index.ts';

const client = { send: async () => ({}) };

class Command {
  readonly middlewareStack = { add: () => {} };
}

const commands: S3Commands = { GetObjectCommand: Command, PutObjectCommand: Command };
const options: S3Options = { bucket: 'b', commands };

test.each([
  [{ bucket: 7 }, 'bucket must be the name of one, not 7'],
  [{ bucket: '' }, 'bucket must be the name of one, not ""'],
  [{ commands: undefined }, 'commands has no GetObjectCommand'],
  [{ commands: { GetObjectCommand: Command } }, 'commands has no PutObjectCommand'],
  [{ prefix: 7 }, 'prefix must be a string, not 7'],
  [{ prefix: 'x'.repeat(1_024) }, 'it has 1040 bytes, at most 1024 are taken'],
  [{ prefix: 'a/../' }, '"." and ".." between slashes mean another object'],
  [{ objectName: 'x' }, 'objectName must be a function that names the object of an election'],
  [{ etagQuotes: true }, 'etagQuotes must be "auto", "quoted" or "unquoted", not true'],
  [{ probe: 'no' }, 'probe must be true or false, not "no"'],
  [{ age: 'server' }, 'age must be "on" or "off", not "server"'],
  [{ bucket: 's3://ops' }, 'bucket "s3://ops" is no name of a bucket: leave out "s3://"'],
  [{ bucket: 'ops/sub' }, 'bucket "ops/sub" is no name of a bucket'],
  [{ age: 'off', clockStep: '1s' }, 'clockStep means nothing with age "off"'],
  [{ clockStep: 'long' }, 'clockStep'],
  [{ region: 'x' }, 's3() has no option "region"; it knows bucket, commands, prefix'],
])('%j is refused: %s', (change, words) => {
  const attempt = () => s3(client, { ...options, ...change } as S3Options);
  expect(attempt).toThrow(InvalidOptionError);
  expect(attempt).toThrow(words);
});

test.each([
  [undefined, 'not undefined'],
  [{}, 'not a value of type object'],
  [{ send: 'x' }, 'not a value of type object'],
])('%j is no client', (value, words) => {
  const attempt = () => s3(value as never, options);
  expect(attempt).toThrow(InvalidOptionError);
  expect(attempt).toThrow(`takes an S3Client of @aws-sdk/client-s3, ${words}`);
});

test('no options are no options', () => {
  expect(() => s3(client, undefined as never)).toThrow(
    'takes options such as { bucket, commands }',
  );
});

test('an election is the object of its name, behind the prefix, or what objectName says', () => {
  expect(checkOptions(options).keyOf('billing')).toBe('billing');
  expect(checkOptions({ ...options, prefix: 'e/' }).keyOf('a/b c')).toBe('e/a/b c');
  const objectName = (election: string) => `${election}.json`;
  expect(checkOptions({ ...options, prefix: 'e/', objectName }).keyOf('x')).toBe('x.json');
  expect(checkOptions({ ...options, prefix: 'e/' }).probeKey).toBe('e/.incumbent-probe');
});

test.each([
  ['..', '"." and ".."'],
  ['a/./b', '"." and ".."'],
  ['.incumbent-probe', 'on which the endpoint is proved: give it another name'],
])('the election %j cannot be an object', (name, words) => {
  const attempt = () => createElection({ name, backend: s3(client, options) });
  expect(attempt).toThrow(InvalidOptionError);
  expect(attempt).toThrow(words);
});

test.each([undefined, '', 7])('objectName that makes %j is refused', (made) => {
  const backend = s3(client, { ...options, objectName: () => made as string });
  const attempt = () => createElection({ name: 'x', backend });
  expect(attempt).toThrow('objectName of the election "x" makes');
});

test('it is asked seldom unless one says otherwise, for each request costs money', () => {
  const backend = s3(client, options);
  const { timing } = createElection({ name: 'x', backend });
  expect(timing).toMatchObject({ leaseMs: 45_000, pollEveryMs: 22_500, renewEveryMs: 9_000 });
  expect(backend).toMatchObject({ kind: 's3', description: 'objects of the S3 bucket "b"' });
});
