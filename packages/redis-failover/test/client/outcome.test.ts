import { Redis, ReplyError } from 'ioredis';
import { createClient, ErrorReply, MultiErrorReply, SimpleError } from 'redis';
import { describe, expect, test } from 'vitest';
import { NotSentError } from '../../src/client/errors.ts';
import { isAllRefused, kindOf } from '../../src/client/outcome.ts';

const command = { isPipeline: false, isScript: false };
const script = { isPipeline: false, isScript: true };
const pipeline = { isPipeline: true, isScript: false };

const refusals = [
  "READONLY You can't write against a read only replica.",
  'LOADING Redis is loading the dataset in memory',
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
];

for (const [library, reply] of [
  ['node-redis', (text: string) => new SimpleError(text)],
  ['ioredis', (text: string) => new ReplyError(text)],
] as const) {
  describe(`what ${library} rejects with`, () => {
    test.each(refusals)('was surely not applied: %s', (text) => {
      expect(kindOf(reply(text), command)).toBe('refused');
      expect(kindOf(reply(text), script)).toBe('refused');
    });

    test('was not applied either where a script has called a command: Redis adds where', () => {
      const text = `${refusals[0]} script: 892ef9e9, on @user_script:1.`;
      expect(kindOf(reply(text), script)).toBe('refused');
    });

    test('was not applied either, unless a script says it, which may have begun', () => {
      const text = 'NOREPLICAS Not enough good replicas to write.';
      expect(kindOf(reply(text), command)).toBe('refused');
      expect(kindOf(reply(text), script)).toBe('answered');
    });

    test.each([
      'WRONGTYPE Operation against a key',
      'READONLY my script says so',
      'BUSYGROUP exists',
      'ERR no',
    ])('is an answer: %s', (text) => {
      expect(kindOf(reply(text), command)).toBe('answered');
    });

    test('says nothing of the other commands of a pipeline', () => {
      expect(kindOf(reply(refusals[0] as string), pipeline)).toBe('answered');
    });
  });
}

test('a transaction that was discarded because of a refusal was not applied', () => {
  const discarded = new ReplyError('EXECABORT Transaction discarded because of previous errors.');
  expect(kindOf(discarded, command)).toBe('answered');
  Object.assign(discarded, { previousErrors: [new ReplyError(refusals[0])] });
  expect(kindOf(discarded, command)).toBe('refused');
});

test('neither was one of which Redis says so itself', () => {
  const text = `EXECABORT Transaction discarded because of: ${refusals[0]}`;
  expect(kindOf(new SimpleError(text), command)).toBe('refused');
});

test('a pipeline of ioredis was not applied if each of its commands was refused', () => {
  const refused = [new ReplyError(refusals[0]), null];
  expect(isAllRefused([refused, refused])).toBe(true);
  expect(isAllRefused([refused, [null, 'OK']])).toBe(false);
  // Each of these may have begun.
  expect(isAllRefused([[new ReplyError('WRONGTYPE'), null]])).toBe(false);
  expect(isAllRefused([[new Error(refusals[0]), null]])).toBe(false);
  expect(isAllRefused([refused, 'OK'])).toBe(false);
  expect(isAllRefused([])).toBe(false);
  expect(isAllRefused(null)).toBe(false);
});

test('whatever else a connection says leaves the outcome open', () => {
  for (const message of [
    'Socket closed unexpectedly',
    'Connection is closed.',
    'read ECONNRESET',
  ]) {
    expect(kindOf(new Error(message), command)).toBe('unknown');
  }
  // It looks like an answer, but Redis has not given it.
  expect(kindOf(new Error(refusals[0]), command)).toBe('unknown');
  expect(kindOf('READONLY', command)).toBe('unknown');
});

test('what was never sent is known not to be applied', () => {
  expect(kindOf(new NotSentError('closed'), command)).toBe('refused');
  expect(kindOf(new TypeError('"arguments[1]" must be of type string'), command)).toBe('misused');
});

test('some replies of a transaction are errors, and the others were applied', () => {
  const error = new MultiErrorReply([new ErrorReply(refusals[0])], [0]);
  expect(kindOf(error, command)).toBe('answered');
});

test('a driver that is not connected rejects at once', async () => {
  const node = createClient({ disableOfflineQueue: true });
  await expect(node.get('k')).rejects.toThrow('The client is closed');
  const io = new Redis({ lazyConnect: true, enableOfflineQueue: false });
  io.disconnect();
  await expect(io.get('k')).rejects.toThrow('Connection is closed');
});
