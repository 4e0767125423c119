/**
 * Which calls, and which work of a `write`, may be sent again. The connection is a real one on a
 * driver that the test plays. Real servers: `test-integration/client-api.test.ts`.
 */
import { describe, expect, test } from 'vitest';
import type { Command } from '../../src/client/commands.ts';
import { Connection } from '../../src/client/connection.ts';
import { IterationBrokenError, NotSentError } from '../../src/client/errors.ts';
import { callJob, writeJob } from '../../src/client/jobs.ts';
import type { RoutedCall, Tour } from '../../src/client/routed-client.ts';
import type { Reign } from '../../src/client/view.ts';
import type { FakeClient, FakeConnection } from '../support/fake-driver.ts';
import { FakeDriver, ReplyError } from '../support/fake-driver.ts';
import { atRest, HandClock, watch } from '../support/hand-clock.ts';

const readOnly = "READONLY You can't write against a read only replica.";
const reign: Reign = { term: 3, primary: 'a:1' };
const yes = () => true;

async function opened() {
  const clock = new HandClock();
  const driver = new FakeDriver();
  const connection = await Connection.open<FakeClient>(driver, 'a:1', {
    ...{ connectTimeoutMs: 2_000, commandTimeoutMs: 5_000, role: undefined },
    ...{ clock, timers: clock },
  });
  const made: FakeConnection = driver.at('a:1');
  return { driver, connection, made, client: made.client };
}

function callOf(more: Partial<Command & { isPipeline: boolean }> = {}): RoutedCall<FakeClient> {
  const { isPipeline = false, ...command } = more;
  return {
    command: { label: 'set', goesTo: 'primary', refused: undefined, isScript: false, ...command },
    isPipeline,
    send: (client) => client.set('k', 'v'),
  };
}

describe('a call', () => {
  test('is a read when it may go anywhere, and has the label of its command', () => {
    expect(callJob(callOf({ label: 'GET', goesTo: 'any' }))).toMatchObject({
      ...{ isRead: true, label: 'GET' },
    });
    expect(callJob(callOf())).toMatchObject({ isRead: false, label: 'set' });
  });

  test('is sent on the connection that it is given, and gives what the driver gives', async () => {
    const { connection, client } = await opened();
    const call = watch(callJob(callOf()).use(connection, reign, yes));
    expect(client.last.words).toEqual(['set', 'k', 'v']);
    client.last.reply('OK');
    await atRest();
    expect(call.now).toEqual({ state: 'resolved', value: 'OK' });
  });

  test('has errors of the kind that its command makes of them', () => {
    const noReplicas = new ReplyError('NOREPLICAS Not enough good replicas to write.');
    expect(callJob(callOf()).kindOf(noReplicas)).toBe('refused');
    expect(callJob(callOf({ isScript: true })).kindOf(noReplicas)).toBe('answered');
    expect(callJob(callOf({ isPipeline: true })).kindOf(noReplicas)).toBe('answered');
  });

  test('was refused as a whole when each command of its pipeline was', () => {
    const refused = [[new ReplyError(readOnly), null]];
    expect(callJob(callOf({ isPipeline: true })).isRefused(refused)).toBe(true);
    expect(callJob(callOf({ isPipeline: true })).isRefused([[null, 'OK']])).toBe(false);
    // For one command it is a value like others.
    expect(callJob(callOf()).isRefused(refused)).toBe(false);
  });
});

describe('an iteration', () => {
  test('stays in the term of its first reply, on whatever connection', async () => {
    const { connection, client } = await opened();
    const tour: Tour = { reign: undefined };
    void callJob(callOf({ label: 'scan' }), tour).use(connection, reign, yes);
    expect(tour.reign).toBe(reign);
    void callJob(callOf({ label: 'scan' }), tour).use(connection, reign, yes);
    expect(client.sent).toHaveLength(2);
  });

  test('ends when the primary was moved: a cursor means nothing to another', async () => {
    const { connection, client } = await opened();
    const tour: Tour = { reign: { term: 2, primary: 'b:2' } };
    const job = callJob(callOf({ label: 'scan' }), tour);
    const error = await job.use(connection, reign, yes).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(IterationBrokenError);
    expect(error).toMatchObject({
      code: 'ITERATION_BROKEN',
      message: 'the primary was moved in the middle of the iteration (scan): begin it anew',
    });
    expect(client.sent).toEqual([]);
    // So no other replica is tried.
    expect(job.kindOf(error)).toBe('misused');
  });
});

/** A `write` whose `work` is going on. */
async function working<Value>(
  work: (redis: FakeClient, at: Reign) => Promise<Value> | Value,
  mayGoOn: () => boolean = yes,
) {
  const stage = await opened();
  const job = writeJob(stage.driver, work);
  const call = watch(job.use(stage.connection, reign, mayGoOn));
  await atRest();
  const kindNow = () => (call.now.state === 'rejected' ? job.kindOf(call.now.error) : undefined);
  return { ...stage, job, call, kindNow };
}

describe('a write of several commands', () => {
  test('is no read, and its value is never a refusal', () => {
    const job = writeJob(new FakeDriver(), () => 1);
    expect(job).toMatchObject({ isRead: false, label: 'a write' });
    expect(job.isRefused(1)).toBe(false);
  });

  test('has all of its commands on one connection, and is told the term', async () => {
    let at: Reign | undefined;
    const { client, call } = await working(async (redis, where) => {
      at = where;
      await redis.set('k', 'v');
      return redis.get('k');
    });
    expect(at).toEqual({ term: 3, primary: 'a:1' });
    client.last.reply('OK');
    await atRest();
    expect(client.sent.map(({ words }) => words)).toEqual([
      ['set', 'k', 'v'],
      ['get', 'k'],
    ]);
    client.last.reply('v');
    await atRest();
    expect(call.now).toEqual({ state: 'resolved', value: 'v' });
  });

  test('may wait for replicas, which no other call may', async () => {
    const { client } = await working((redis) => redis.wait(1, 500));
    expect(client.last.words).toEqual(['wait', 1, 500]);
  });

  test('sees whether its connection is open', async () => {
    let redis: { readonly isOpen?: boolean } = {};
    const { made } = await working((given) => {
      redis = given as never;
      return new Promise(() => {});
    });
    expect(redis.isOpen).toBe(true);
    made.breakOff();
    expect(redis.isOpen).toBe(false);
  });

  test('what the work throws is the caller’s, also in the words of Redis', async () => {
    for (const thrown of [new Error('no stock'), new ReplyError(readOnly), 'a string', null]) {
      const { call, job } = await working(() => {
        throw thrown;
      });
      expect(call.now).toEqual({ state: 'rejected', error: thrown });
      expect(job.kindOf(thrown)).toBe('misused');
    }
  });

  test.each([readOnly, 'NOREPLICAS Not enough good replicas to write.'])(
    'a first command that was refused leaves nothing behind, so all of it may be sent again: %s',
    async (said) => {
      const { client, kindNow } = await working((redis) => redis.set('k', 'v'));
      client.last.fail(new ReplyError(said));
      await atRest();
      expect(kindNow()).toBe('refused');
    },
  );

  test('a read before it leaves nothing behind either', async () => {
    const { client, kindNow } = await working(async (redis) => {
      await redis.get('k');
      await redis.set('k', 'v');
    });
    client.last.reply('old');
    await atRest();
    client.last.fail(new ReplyError(readOnly));
    await atRest();
    expect(kindNow()).toBe('refused');
  });

  test('where only reads were sent, a connection that breaks leaves nothing open', async () => {
    const { made, kindNow } = await working((redis) => redis.get('k'));
    made.breakOff();
    await atRest();
    expect(kindNow()).toBe('refused');
  });

  test('and an answer to a read is an answer', async () => {
    const { client, kindNow } = await working((redis) => redis.get('k'));
    client.last.fail(new ReplyError('WRONGTYPE'));
    await atRest();
    expect(kindNow()).toBe('answered');
  });

  test('after a write that was applied, a refusal of the next is an answer: nothing is repeated', async () => {
    const { client, kindNow } = await working(async (redis) => {
      await redis.set('first', '1');
      await redis.set('second', '2');
    });
    client.last.reply('OK');
    await atRest();
    client.last.fail(new ReplyError(readOnly));
    await atRest();
    expect(kindNow()).toBe('answered');
  });

  test('after a write that was applied, one that could not be sent leaves the outcome open', async () => {
    const { client, made, kindNow, call } = await working(async (redis) => {
      await redis.set('first', '1');
      await redis.set('second', '2');
    });
    made.connected = false;
    client.last.reply('OK');
    await atRest();
    expect(call.now).toMatchObject({ error: expect.any(NotSentError) });
    expect(kindNow()).toBe('unknown');
  });

  test('a connection that breaks under a write leaves the outcome open', async () => {
    const { made, kindNow } = await working((redis) => redis.set('k', 'v'));
    made.breakOff();
    await atRest();
    expect(kindNow()).toBe('unknown');
  });

  test('an error that a write is answered with is an answer', async () => {
    const { client, kindNow } = await working((redis) => redis.set('k', 'v'));
    client.last.fail(new ReplyError('WRONGTYPE'));
    await atRest();
    expect(kindNow()).toBe('answered');
  });

  test('a script that was refused may have begun, unless its words are those of Redis', async () => {
    const { client, kindNow } = await working((redis) => redis.eval('return 1'));
    client.last.fail(new ReplyError('NOREPLICAS Not enough good replicas to write.'));
    await atRest();
    expect(kindNow()).toBe('answered');
  });

  test('sends nothing more once the view has lapsed', async () => {
    let mayGoOn = true;
    const { client, call, kindNow } = await working(
      async (redis) => {
        await redis.get('k');
        await redis.set('k', 'v');
      },
      () => mayGoOn,
    );
    mayGoOn = false;
    client.last.reply('old');
    await atRest();
    expect(client.sent).toHaveLength(1);
    expect(call.now).toMatchObject({
      error: { name: 'NotSentError', message: 'the view of the primary has lapsed meanwhile' },
    });
    // Nothing was applied, so it may begin again.
    expect(kindNow()).toBe('refused');
  });

  test('sends nothing once its work is over: another run may have begun', async () => {
    let kept: FakeClient | undefined;
    const { client, call } = await working((redis) => {
      kept = redis;
    });
    expect(call.now.state).toBe('resolved');
    await expect(kept?.set('k', 'v')).rejects.toMatchObject({
      code: 'NOT_ROUTABLE',
      message: 'the client that write() gives is not to be used after its work',
    });
    expect(client.sent).toEqual([]);
  });

  test('also what the work did not wait for belongs to it', async () => {
    const { client, call } = await working((redis) => {
      void redis.set('k', 'v');
      return 'done';
    });
    expect(call.now.state).toBe('pending');
    client.last.reply('OK');
    await atRest();
    expect(call.now).toEqual({ state: 'resolved', value: 'done' });
  });

  test('also when the work throws before', async () => {
    const { client, call } = await working((redis) => {
      redis.set('k', 'v').catch(() => {});
      throw new Error('no stock');
    });
    expect(call.now.state).toBe('pending');
    client.last.fail(new ReplyError('ERR'));
    await atRest();
    expect(call.now).toMatchObject({ error: { message: 'no stock' } });
  });

  test('each run is judged for itself', async () => {
    const stage = await opened();
    const job = writeJob(stage.driver, (redis) => redis.set('k', 'v'));
    const before = watch(job.use(stage.connection, reign, yes));
    await atRest();
    stage.client.last.reply('OK');
    await atRest();
    const again = watch(job.use(stage.connection, reign, yes));
    await atRest();
    stage.client.last.fail(new ReplyError(readOnly));
    await atRest();
    expect(before.now.state).toBe('resolved');
    expect(again.now.state === 'rejected' && job.kindOf(again.now.error)).toBe('refused');
  });
});
