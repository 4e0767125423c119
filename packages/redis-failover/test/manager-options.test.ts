import { describe, expect, it } from 'vitest';
import { NodeManager } from '../src/manager/node-manager.ts';
import type { ManagerOptions } from '../src/manager/options.ts';
import { resolveOptions } from '../src/manager/options.ts';

const least = { nodes: ['a:1', 'b:1'], zookeeper: 'zk1:2181' };

describe('what a manager is given', () => {
  it('needs the nodes and ZooKeeper, and has the defaults that are documented', () => {
    expect(resolveOptions(least)).toMatchObject({
      nodes: ['a:1', 'b:1'],
      root: '/redis_failover',
      maxFailures: 3,
      checkEveryMs: 500,
      nodeTimeoutMs: 500,
      nodeStrategy: 'majority',
      requiredNodeManagers: 1,
      sessionTimeoutMs: 6_000,
      clientViewMs: 1_000,
    });
  });

  it('has an id that no other process has', () => {
    const ids = [1, 2].map(() => resolveOptions(least).id);
    expect(ids[0]).not.toBe(ids[1]);
    expect(ids[0]).toMatch(/^[\w.@-]+-\d+-[0-9a-f]{8}$/);
  });

  it.each<[Record<string, unknown>, RegExp]>([
    [{ nodes: [] }, /^nodes is a list of every Redis of the set.*not \[\]/],
    [{ nodes: 'a:1' }, /^nodes is a list of every Redis/],
    [{ nodes: ['a:1', 'a:1'] }, /^nodes names a:1 twice/],
    [{ nodes: ['a'] }, /^nodes\[0\] is not host:port.*"a"/],
    [{ nodes: ['a:0'] }, /^nodes\[0\] is not host:port/],
    [{ nodes: ['redis://a:1'] }, /^nodes\[0\] is not host:port/],
    [{ zookeeper: '' }, /^zookeeper is a connection string such as/],
    [{ zookeeper: 'zk1:2181//x' }, /^zookeeper: the connection string/],
    [{ root: 'x' }, /^root is the path of a node such as \/redis_failover/],
    [{ root: '/x/' }, /^root is the path of a node/],
    [{ root: '/x/../y' }, /^root is the path of a node/],
    [{ id: 'a b' }, /^id has 1 to 100 letters/],
    [{ maxFailures: 0 }, /^maxFailures is a whole number from 1 to 100, not 0/],
    [{ maxFailures: 1.5 }, /^maxFailures is a whole number from 1 to 100, not 1.5/],
    [{ checkEvery: 1 }, /^checkEvery is from 10ms to 1m, not 1ms/],
    [{ nodeStrategy: 'most' }, /^nodeStrategy is one of majority, consensus, single, not "most"/],
    [{ failoverStrategy: 'x' }, /^failoverStrategy is one of latency, not "x"/],
    [{ requiredNodeManagers: -1 }, /^requiredNodeManagers is a whole number/],
    [{ clientView: '2m' }, /^clientView is from 100ms to 1m, not 2m/],
    [{ maxFailure: 3 }, /^NodeManager has no option "maxFailure"; it knows nodes, /],
  ])('%j is refused, with the value, the rule and the way out', (more, message) => {
    const options = { ...least, ...more } as ManagerOptions;
    expect(() => new NodeManager(options)).toThrow(message);
  });
});
