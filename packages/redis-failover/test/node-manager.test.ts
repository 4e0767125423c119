// The status of a manager, and how it begins and ends. ZooKeeper, the election and the clock are
// played.

import { NoNodeError } from '@incumbent/zookeeper';
import type { Election } from 'incumbent';
import type { ZooKeeperGuard } from 'incumbent/zookeeper';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { encodePrimary, pathsBelow } from '../src/layout.ts';
import type { ManagerEvent } from '../src/manager/events.ts';
import { NodeManager } from '../src/manager/node-manager.ts';
import { NodeUnreachableError } from '../src/redis/errors.ts';
import { FakeZooKeeper } from './support/fake-zookeeper.ts';
import { atRest, HandClock, watch } from './support/hand-clock.ts';

type Lead = (act: unknown, options: { readonly signal: AbortSignal }) => Promise<void>;

const election = {
  lead: (async () => {}) as Lead,
  close: async (): Promise<void> => {},
};

const paths = pathsBelow('/set');

class Played extends FakeZooKeeper {
  readonly session = { id: 1n, timeoutMs: 10_000, readOnly: false };
  attempts = 0;
  /** The error of every attempt to connect. */
  refusal: Error | undefined;
  holdsClose: Promise<void> = Promise.resolve();

  async connected(): Promise<void> {
    this.attempts += 1;
    await new Promise((resolve) => setImmediate(resolve));
    if (this.refusal !== undefined) throw this.refusal;
  }

  async *followChildren(_: string, { signal }: { readonly signal: AbortSignal }) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }

  transaction(): never {
    throw new Error('nothing is written here');
  }

  override async close(): Promise<void> {
    await super.close();
    await this.holdsClose;
  }
}

/** A promise, and the function that resolves it. */
function held(): { readonly promise: Promise<void>; readonly release: () => void } {
  let release = () => {};
  const promise = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { promise, release };
}

/**
 * Such steps take no time but several turns of the event loop. How many depends on the libraries.
 */
async function comesTo(condition: () => boolean): Promise<void> {
  for (let rests = 0; rests < 100 && !condition(); rests += 1) await atRest();
}

async function started(refusal?: Error) {
  const clock = new HandClock();
  const zk = new Played(clock);
  zk.refusal = refusal;
  zk.instead.set('get', () => Promise.reject(new NoNodeError({ path: '/' })));
  zk.instead.set('create', async () => ({ path: '/' }));
  const told: ManagerEvent[] = [];
  const options = {
    ...{ zookeeper: 'zk://z:2181', nodes: ['p:1', 'a:1'], root: '/set', id: 'm' },
    onEvent: (event: ManagerEvent) => void told.push(event),
  };
  const manager = new NodeManager(
    options,
    {},
    {
      ...{ clock, forElection: {}, openZooKeeper: () => zk.client },
      openElection: () =>
        ({
          lead: (...args: Parameters<Lead>) => election.lead(...args),
          close: () => election.close(),
        }) as Election<ZooKeeperGuard>,
      openNode: async (node) => {
        throw new NodeUnreachableError(node, 'is not there');
      },
    },
  );
  const stop = new AbortController();
  const run = watch(manager.run(stop.signal));
  onTestFinished(async () => {
    stop.abort();
    await comesTo(() => run.now.state !== 'pending');
  });
  await comesTo(() => manager.status.state !== 'starting' || manager.status.trouble !== undefined);
  const types = () => told.map(({ type }) => type).filter((type) => type !== 'sight');
  return { clock, zk, told, types, manager, stop, run };
}

const record = (primary: string, term: number) =>
  encodePrimary({
    ...{ term, primary, former: null, replicationId: 'a', runId: 'r', gemViews: false },
    ...{ viewMs: 1_000, manager: 'n', token: '1', manualSeen: '0' },
  });

beforeEach(() => {
  election.lead = (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  election.close = async () => {};
});

describe('a manager that is not elected', () => {
  it('tells that it has started, waits, and counts no moves', async () => {
    const { manager, told } = await started();
    expect(told[0]).toEqual({ type: 'started', id: 'm', nodes: ['p:1', 'a:1'] });
    expect(manager.status).toMatchObject({ state: 'waiting', moves: { done: 0, failed: 0 } });
  });

  it('says which primary is on record, and takes no older record for it', async () => {
    const { zk, manager, told } = await started();
    await zk.put({ [paths.primary]: record('p:1', 2) });
    await zk.put({ [paths.primary]: record('a:1', 1) });
    expect(manager.status).toMatchObject({ primary: 'p:1', term: 2 });
    await zk.put({ [paths.primary]: record('p:1', 2) });
    await zk.put({ [paths.primary]: record('a:1', 3) });
    expect(manager.status).toMatchObject({ primary: 'a:1', term: 3 });
    expect(told.filter(({ type }) => type === 'primary')).toEqual([
      { type: 'primary', primary: 'p:1', term: 2 },
      { type: 'primary', primary: 'a:1', term: 3 },
    ]);
  });

  it('says so if something else stands in place of the record', async () => {
    const { zk, manager } = await started();
    await zk.put({ [paths.primary]: 'x' });
    expect(manager.status.trouble?.code).toBe('LAYOUT');
  });
});

describe('a manager that has no session', () => {
  it('tries again a second later, and says what the trouble is', async () => {
    const error = Object.assign(new Error('not now'), { retryable: true });
    const { zk, clock, manager } = await started(error);
    const trouble = { code: 'ZOOKEEPER_AWAY', message: 'not now' };
    expect(manager.status).toMatchObject({ state: 'starting', trouble });
    await clock.pass(999);
    expect(zk.attempts).toBe(1);
    zk.refusal = undefined;
    await clock.pass(1);
    await comesTo(() => manager.status.state === 'waiting');
    expect(zk.attempts).toBe(2);
    expect(manager.status.state).toBe('waiting');
  });

  it('ends with what no waiting cures', async () => {
    const error = new Error('not you');
    const { run, manager } = await started(error);
    await comesTo(() => run.now.state !== 'pending');
    expect(run.now).toEqual({ state: 'rejected', error });
    expect(manager.status).toMatchObject({ state: 'stopped', zookeeper: 'closed' });
  });
});

describe('a manager that is stopped', () => {
  it('gives its place in the election back before it closes its client', async () => {
    const { promise, release } = held();
    election.close = () => promise;
    const { zk, stop, run } = await started();
    stop.abort();
    await atRest();
    expect(zk.closed).toBe(0);
    release();
    await comesTo(() => run.now.state !== 'pending');
    expect(zk.closed).toBe(1);
    expect(run.now.state).toBe('resolved');
  });

  it('says that it has stopped when its client is closed', async () => {
    const { zk, manager, stop, run, types } = await started();
    const { promise, release } = held();
    zk.holdsClose = promise;
    stop.abort();
    await comesTo(() => zk.closed > 0);
    expect(run.now.state).toBe('pending');
    expect(types()).toEqual(['started']);
    release();
    await comesTo(() => run.now.state !== 'pending');
    expect(run.now.state).toBe('resolved');
    expect(types()).toEqual(['started', 'stopped']);
    expect(manager.status).toMatchObject({ state: 'stopped', zookeeper: 'closed' });
  });
});
