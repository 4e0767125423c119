/**
 * The outcomes of a request for a failover: answered, refused, withdrawn, or unknown. A few znodes
 * play ZooKeeper. Real managers: `test-integration/requests.test.ts`.
 */
import { BadVersionError } from '@incumbent/zookeeper';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Bounds } from '../../src/client/bound.ts';
import {
  FailoverRefusedError,
  NoManagerError,
  OutcomeUnknownError,
} from '../../src/client/errors.ts';
import {
  askManagers,
  askRubyManagers,
  checkTarget,
  checkTimeout,
} from '../../src/client/manual-failover.ts';
import type { RequestOptions } from '../../src/client/request-failover.ts';
import { requestFailover } from '../../src/client/request-failover.ts';
import { ViewFollower } from '../../src/client/view-follower.ts';
import type { FailoverRequest } from '../../src/layout.ts';
import { decodeRequest, encodeRequest } from '../../src/layout.ts';
import { a, b, nodesText, paths } from '../support/client-world.ts';
import { FakeZooKeeper } from '../support/fake-zookeeper.ts';
import { atRest, HandClock, watch } from '../support/hand-clock.ts';

const path = `${paths.requests}/request-0000000001`;

/** The test ends the time of a request. */
let timeUp: AbortController;
let timeouts: number[];
beforeEach(() => {
  timeUp = new AbortController();
  timeouts = [];
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    timeouts.push(ms);
    return timeUp.signal;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

class Stage {
  readonly zk = new FakeZooKeeper(new HandClock());

  ask(
    options: Partial<RequestOptions> = {},
    request: Parameters<typeof requestFailover>[2] = { node: b, requestedBy: 'me' },
  ) {
    const all = { timeoutMs: 30_000, ...options };
    return watch(requestFailover(this.zk.client, paths, request, all));
  }

  /** Writes into the request, as a manager does. */
  async write(more: Partial<FailoverRequest>): Promise<void> {
    const request = decodeRequest(path, this.zk.text(path) as string);
    await this.zk.put({ [path]: encodeRequest({ ...request, ...more }) });
  }

  named(name: string) {
    return this.zk.calls.filter((call) => call.name === name);
  }
}

/** A request that is not answered yet. */
async function asked(options: Partial<RequestOptions> = {}) {
  const stage = new Stage();
  const call = stage.ask(options);
  await atRest();
  return { stage, call, zk: stage.zk };
}

const aborted = async () => {
  timeUp.abort();
  await atRest();
};

describe('a request', () => {
  test('is left so that it ends with the session, and a lost reply leaves no second one', async () => {
    const { stage, zk } = await asked({ timeoutMs: 1_500.2 });
    expect(zk.calls.map(({ name }) => name)).toEqual(['ensurePath', 'create']);
    expect(stage.named('ensurePath')[0]?.args[0]).toBe('/set/failover_requests');
    expect(stage.named('create')[0]?.args).toMatchObject([
      '/set/failover_requests/request-',
      '{"node":"b:2","requestedBy":"me","waitMs":1501}',
      { ephemeral: true, sequential: true, protected: true, signal: expect.any(AbortSignal) },
    ]);
    expect(timeouts).toEqual([1_501]);
  });

  test('that is done names the primary, and is deleted', async () => {
    const { stage, call, zk } = await asked();
    await stage.write({ outcome: { done: true, primary: b, term: 4 } });
    expect(call.now).toEqual({ state: 'resolved', value: { primary: b, term: 4 } });
    expect(zk.text(path)).toBe(undefined);
    expect(stage.named('delete')[0]?.args).toEqual([path, { timeoutMs: 5_000 }]);
    expect(zk.following).toBe(0);
  });

  test('that is refused has the manager’s words', async () => {
    const { stage, call } = await asked();
    await stage.write({ outcome: { done: false, error: 'b:2 is no replica' } });
    expect(call.now).toMatchObject({ error: { message: 'b:2 is no replica' } });
    expect(call.now).toMatchObject({ error: expect.any(FailoverRefusedError) });
  });

  test('that is answered is deleted first, so that no manager finds it afterwards', async () => {
    const { stage, call, zk } = await asked();
    let go = () => {};
    zk.instead.set(
      'delete',
      () =>
        new Promise<void>((resolve) => {
          go = resolve;
        }),
    );
    await stage.write({ outcome: { done: true, primary: b, term: 4 } });
    expect(call.now.state).toBe('pending');
    go();
    await atRest();
    expect(call.now.state).toBe('resolved');
  });

  test('that was answered is so also where it cannot be taken away: the session ends', async () => {
    const { stage, call, zk } = await asked();
    zk.instead.set('delete', () => {
      throw new Error('gone');
    });
    await stage.write({ outcome: { done: true, primary: b, term: 4 } });
    expect(call.now.state).toBe('resolved');
  });

  test('tells what the manager waits for, when that is another thing than before', async () => {
    const told: string[] = [];
    const { stage, call } = await asked({ onProgress: (progress) => told.push(progress) });
    for (const progress of ['10 %', '10 %', '20 %', '10 %']) await stage.write({ progress });
    expect(told).toEqual(['10 %', '20 %', '10 %']);
    expect(call.now.state).toBe('pending');
  });

  test('goes on, whatever the listener of its progress does, and without one', async () => {
    const thrower = await asked({
      onProgress: () => {
        throw new Error('not mine');
      },
    });
    for (const { stage, call } of [thrower, await asked()]) {
      await stage.write({ progress: '10 %' });
      await stage.write({ outcome: { done: true, primary: b, term: 4 } });
      expect(call.now.state).toBe('resolved');
    }
  });

  test('that vanishes leaves the outcome open', async () => {
    const { call, zk } = await asked();
    await zk.remove(path);
    expect(call.now).toMatchObject({ error: expect.any(OutcomeUnknownError) });
    expect(call.now).toMatchObject({
      error: { message: expect.stringContaining(`the request ${path} for a failover vanished`) },
    });
  });
});

describe('a request was not made', () => {
  test('when its signal had aborted before', async () => {
    const stage = new Stage();
    const reason = new Error('enough');
    const call = stage.ask({ signal: AbortSignal.abort(reason) });
    await atRest();
    expect(call.now).toEqual({ state: 'rejected', error: reason });
    expect(stage.zk.calls).toEqual([]);
  });

  test('when ZooKeeper did not answer in time: nothing was requested', async () => {
    const stage = new Stage();
    const cause = new Error('aborted');
    stage.zk.instead.set('ensurePath', () => {
      timeUp.abort();
      throw cause;
    });
    const call = stage.ask();
    await atRest();
    expect(call.now).toMatchObject({ error: expect.any(NoManagerError) });
    expect(call.now).toMatchObject({
      error: { message: 'ZooKeeper did not answer within 30s; nothing was requested', cause },
    });
    expect(stage.named('create')).toEqual([]);
  });

  test('when ZooKeeper refuses it, or the signal aborts: that is what is told', async () => {
    const stage = new Stage();
    const error = new Error('NO_AUTH');
    stage.zk.instead.set('ensurePath', () => {
      throw error;
    });
    const call = stage.ask();
    await atRest();
    expect(call.now).toEqual({ state: 'rejected', error });
  });

  test('or was it? ZooKeeper did not confirm it', async () => {
    const stage = new Stage();
    const cause = new Error('the connection broke');
    stage.zk.instead.set('create', () => {
      throw cause;
    });
    const call = stage.ask();
    await atRest();
    expect(call.now).toMatchObject({
      error: {
        ...{ code: 'OUTCOME_UNKNOWN', cause },
        message: expect.stringMatching(/^ZooKeeper did not confirm .*: the connection broke$/),
      },
    });
  });

  test('and what ZooKeeper is asked ends with the signal, and with the time', async () => {
    for (const end of ['signal', 'time'] as const) {
      const controller = new AbortController();
      const stage = new Stage();
      let given: AbortSignal | undefined;
      stage.zk.instead.set('ensurePath', (_: string, { signal }: { signal: AbortSignal }) => {
        given = signal;
        return new Promise(() => {});
      });
      stage.ask({ signal: controller.signal });
      await atRest();
      expect(given?.aborted).toBe(false);
      (end === 'signal' ? controller : timeUp).abort();
      expect(given?.aborted).toBe(true);
      timeUp = new AbortController();
    }
  });
});

describe('a request is withdrawn', () => {
  test('when its time is over: no manager carries it out later', async () => {
    const { stage, call, zk } = await asked();
    await aborted();
    expect(call.now).toMatchObject({ error: expect.any(NoManagerError) });
    expect(call.now).toMatchObject({
      error: {
        message:
          'no manager answered the request for a failover within 30s, so it was withdrawn (a move ' +
          'that had begun goes on): does one run with this root?',
      },
    });
    expect(zk.text(path)).toBe(undefined);
    // The delete names the version that was read, so no manager has written an outcome since.
    expect(stage.named('delete')[0]?.args).toEqual([path, { version: 0, timeoutMs: 5_000 }]);
    expect(zk.following).toBe(0);
  });

  test('when its signal aborts, with that reason', async () => {
    const controller = new AbortController();
    const { call, zk } = await asked({ signal: controller.signal });
    const reason = new Error('enough');
    controller.abort(reason);
    await atRest();
    expect(call.now).toEqual({ state: 'rejected', error: reason });
    expect(zk.text(path)).toBe(undefined);
  });

  test('also when a manager has told meanwhile what it waits for, which is said then', async () => {
    const { stage, call, zk } = await asked();
    await stage.write({ progress: 'b:2 is still copying the data, 40 %' });
    await aborted();
    expect(call.now).toMatchObject({ error: expect.any(FailoverRefusedError) });
    expect(call.now).toMatchObject({
      error: {
        message:
          'b:2 is still copying the data, 40 %; nothing was changed within 30s, and the request is withdrawn',
      },
    });
    expect(stage.named('delete').map(({ args }) => args[1])).toMatchObject([
      { version: 0 },
      { version: 1 },
    ]);
    expect(stage.named('get')[0]?.args).toEqual([path, { timeoutMs: 5_000 }]);
    expect(zk.text(path)).toBe(undefined);
  });

  test.each([
    [{ done: true, primary: b, term: 4 }, { value: { primary: b, term: 4 } }],
    [{ done: false, error: 'no' }, { error: { code: 'REQUEST_REFUSED', message: 'no' } }],
  ] as const)('unless it was answered in the last moment: %j', async (outcome, expected) => {
    const { stage, call, zk } = await asked();
    // The outcome is not heard of before the time is over.
    const request = decodeRequest(path, zk.text(path) as string);
    let isFirst = true;
    zk.instead.set('delete', () => {
      if (!isFirst) return;
      isFirst = false;
      zk.write({ [path]: encodeRequest({ ...request, outcome }) });
      throw new BadVersionError({ operation: 'delete' } as never);
    });
    await aborted();
    expect(call.now).toMatchObject(expected);
    expect(stage.named('delete')).toHaveLength(2);
  });

  test('or has vanished: its outcome is unknown', async () => {
    for (const name of ['delete', 'get']) {
      timeUp = new AbortController();
      const { stage, call, zk } = await asked();
      if (name === 'get') {
        await stage.write({ progress: '1 %' });
        zk.instead.set('get', () => {
          zk.instead.delete('get');
          return zk.remove(path).then(() => zk.get(path));
        });
      } else {
        zk.instead.set('delete', () => {
          zk.instead.delete('delete');
          return zk.remove(path).then(() => zk.delete(path));
        });
      }
      await aborted();
      await atRest();
      expect(call.now).toMatchObject({
        error: { code: 'OUTCOME_UNKNOWN', message: expect.stringContaining('vanished') },
      });
    }
  });

  test('or cannot be: it may still be carried out', async () => {
    const { call, zk } = await asked();
    const cause = new Error('the connection broke');
    zk.instead.set('delete', () => {
      throw cause;
    });
    await aborted();
    expect(call.now).toMatchObject({
      error: {
        ...{ code: 'OUTCOME_UNKNOWN', cause },
        message: expect.stringMatching(/could not be withdrawn: .*: the connection broke$/),
      },
    });
  });
});

test('our managers are told the name of the requester', async () => {
  const stage = new Stage();
  void askManagers(stage.zk.client, paths, null, { timeoutMs: 1_000 });
  await atRest();
  const request = decodeRequest(path, stage.zk.text(path) as string);
  expect(request).toMatchObject({
    ...{ node: null, waitMs: 1_000 },
    requestedBy: expect.stringMatching(new RegExp(`^.+-${process.pid}$`)),
  });
});

describe('Ruby managers', () => {
  async function ruby(node: string | null, timeoutMs = 1_000) {
    const clock = new HandClock();
    const zk = new FakeZooKeeper(clock);
    zk.write({ [paths.nodes]: nodesText(a, [b]) });
    const view = new ViewFollower(zk.client, paths, clock, { rubyViewMs: 9_000, safeMode: true });
    await atRest();
    const controller = new AbortController();
    const bound = new Bounds(clock).begin(timeoutMs, controller.signal);
    const start = () => {
      const asking = askRubyManagers(zk.client, paths, node, view, bound, timeoutMs);
      onTestFinished(() => view.close());
      return watch(asking);
    };
    return { clock, zk, start, controller };
  }

  test('are asked as the gem does, and have answered when nodes shows it', async () => {
    const { zk, start } = await ruby(b);
    const call = start();
    await atRest();
    expect(zk.text(paths.manualFailover)).toBe(b);
    expect(zk.calls[0]?.args[2]).toMatchObject({ signal: expect.any(AbortSignal) });
    await zk.remove(paths.nodes);
    expect(call.now.state).toBe('pending');
    await zk.put({ [paths.nodes]: nodesText(b, [a]) });
    expect(call.now).toEqual({ state: 'resolved', value: { primary: b, term: undefined } });
  });

  test('are asked for any replica, and any other primary will do', async () => {
    const { zk, start } = await ruby(null);
    const call = start();
    await atRest();
    expect(zk.text(paths.manualFailover)).toBe('ANY_SLAVE');
    await zk.put({ [paths.nodes]: nodesText(a, []) });
    expect(call.now.state).toBe('pending');
    await zk.put({ [paths.nodes]: nodesText(b, [a]) });
    expect(call.now).toMatchObject({ value: { primary: b } });
  });

  test('are asked again where a request stands that they have not taken', async () => {
    const { zk, start } = await ruby(a);
    zk.write({ [paths.manualFailover]: 'old:1' });
    const call = start();
    await atRest();
    expect(zk.text(paths.manualFailover)).toBe(a);
    expect(zk.calls.at(-1)).toMatchObject({
      name: 'set',
      args: [paths.manualFailover, a, { signal: expect.any(AbortSignal) }],
    });
    // It is the primary.
    expect(call.now).toMatchObject({ value: { primary: a } });
  });

  test('cannot be asked where ZooKeeper refuses it', async () => {
    const { zk, start } = await ruby(b);
    const error = new Error('NO_AUTH');
    zk.instead.set('create', () => {
      throw error;
    });
    const call = start();
    await atRest();
    expect(call.now).toEqual({ state: 'rejected', error });
    expect(zk.calls.map(({ name }) => name)).toEqual(['create']);
  });

  test('nor can they where a request stands that may not be written to', async () => {
    const { zk, start } = await ruby(b);
    zk.write({ [paths.manualFailover]: 'old:1' });
    const error = new Error('NO_AUTH');
    zk.instead.set('set', () => {
      throw error;
    });
    const call = start();
    await atRest();
    expect(call.now).toEqual({ state: 'rejected', error });
  });

  test.each([
    [b, 'b:2'],
    [null, 'another primary'],
  ])('say nothing when they do not do it: silence means it (%s)', async (node, what) => {
    const { clock, start } = await ruby(node);
    const call = start();
    await clock.pass(1_000);
    expect(call.now).toMatchObject({
      error: {
        code: 'NO_MANAGER',
        message:
          `/set/nodes did not show ${what} within 1s; the Ruby managers may still take what was ` +
          'written to /set/manual_failover',
      },
    });
  });

  test('cannot be asked in time while ZooKeeper is away: that is said, too', async () => {
    const { clock, zk, start } = await ruby(b);
    zk.instead.set('create', (_path: never, _data: never, { signal }: { signal: AbortSignal }) => {
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    });
    const call = start();
    await clock.pass(1_000);
    expect(call.now).toMatchObject({ error: { code: 'NO_MANAGER' } });
  });

  test('are waited for until the signal aborts', async () => {
    const { start, controller } = await ruby(b);
    const call = start();
    await atRest();
    const reason = new Error('enough');
    controller.abort(reason);
    await atRest();
    expect(call.now).toEqual({ state: 'rejected', error: reason });
  });
});

describe('the target of a failover', () => {
  test('is a host and a port, or nothing', () => {
    expect(checkTarget({ host: '10.0.0.7', port: 1 })).toBe('10.0.0.7:1');
    expect(checkTarget({ host: '::1', port: 65_535 })).toBe('[::1]:65535');
    expect(checkTarget(undefined)).toBe(null);
    expect(checkTarget(null)).toBe(null);
  });

  test.each([
    ['10.0.0.7:6379', 'takes { host, port } of a replica'],
    [7, 'takes { host, port } of a replica'],
    [{ port: 6379 }, 'host is not properly specified'],
    [{ host: '', port: 6379 }, 'host is not properly specified: ""'],
    [{ host: 7, port: 6379 }, 'host is not properly specified: 7'],
    [{ host: 'h' }, 'port is not properly specified'],
    [{ host: 'h', port: 0 }, 'port is not properly specified: 0'],
    [{ host: 'h', port: 65_536 }, 'port is not properly specified: 65536'],
    [{ host: 'h', port: 1.5 }, 'port is not properly specified: 1.5'],
    [{ host: 'h', port: '6379' }, 'port is not properly specified: "6379"'],
    [{ host: 'a b', port: 6379 }, 'host and port is not host:port'],
  ])('is not %j', (target, message) => {
    expect(() => checkTarget(target)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(message),
      }),
    );
  });

  test('is waited for as long as is said, else for 30 s', () => {
    expect(checkTimeout({})).toBe(30_000);
    expect(checkTimeout({ timeout: '2s' })).toBe(2_000);
    expect(() => checkTimeout({ timeout: 'soon' as never })).toThrow('timeout "soon"');
  });
});
