// A leader leaves in order at an awkward moment, seen from the next in line.
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { expect, it } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect } from '../../zookeeper/src/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import { createElection } from '../src/index.ts';

it('a leader that leaves between the two reads of a look is followed by the next in line', async () => {
  await using fake = await FakeZooKeeper.start({ tickTimeMs: 200, realTime: true });
  const open: AsyncDisposable[] = [];
  const candidate = async (id: string, wrap = (client: ZooKeeper) => client) => {
    const client = await connect(fake.connectionString, { sessionTimeoutMs: 4_000 });
    const election = createElection({
      ...{ name: 'e', candidate: { id } },
      // The seat is left vacant.
      backend: zookeeper(wrap(client), { tickTime: 200, nameSuccessor: false }),
    });
    open.push(client, election);
    return election;
  };
  const waits = async (count: number) => {
    while (
      [...fake.tree().keys()].filter((path) => path.startsWith('/incumbent/e/')).length < count
    )
      await new Promise((resolve) => setImmediate(resolve));
  };
  try {
    const first = await (await candidate('first')).campaign();
    let leaves: (() => Promise<void>) | undefined;
    let record: Promise<unknown> | undefined;
    const next = await candidate('next', (client) => {
      return new Proxy(client, {
        get(target, name) {
          const method: unknown = Reflect.get(target, name, target);
          if (typeof method !== 'function') return method;
          if (name === 'get') {
            return (...args: readonly unknown[]) => {
              record = method.apply(target, args) as Promise<unknown>;
              return record;
            };
          }
          if (name !== 'getChildren') return method.bind(target);
          return async (...args: readonly unknown[]) => {
            const now = leaves;
            leaves = undefined;
            if (now !== undefined) {
              await record;
              await now();
            }
            return method.apply(target, args);
          };
        },
      });
    });
    const winning = next.campaign();
    await waits(2);
    const last = (await candidate('last')).campaign();
    await waits(3);
    leaves = async () => first[Symbol.asyncDispose]();
    // Any notification makes it look again. A write to the node of the place before does.
    const [place = ''] = [...fake.tree().keys()].filter((path) => path.startsWith('/incumbent/e/'));
    const operator = await connect(fake.connectionString);
    open.push(operator);
    await operator.set(place, (await operator.get(place)).data);
    const winner = await Promise.race([winning, last]);
    expect(winner.candidate).toBe('next');
    void last.catch(() => {});
    await winner[Symbol.asyncDispose]();
    await (await last)[Symbol.asyncDispose]();
  } finally {
    for (const one of open.reverse()) await one[Symbol.asyncDispose]();
  }
});
