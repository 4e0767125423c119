import { expect, test } from 'vitest';
import { Connections } from '../../packages/redis-failover/src/client/connections.ts';
import { kindOf } from '../../packages/redis-failover/src/client/outcome.ts';
import { Router } from '../../packages/redis-failover/src/client/router.ts';
import { ViewFollower } from '../../packages/redis-failover/src/client/view-follower.ts';
import {
  decodePrimary,
  encodeRequest,
  pathsBelow,
} from '../../packages/redis-failover/src/layout.ts';
import { NodeManager } from '../../packages/redis-failover/src/manager/node-manager.ts';
import {
  errorOfReply,
  NodeUnreachableError,
} from '../../packages/redis-failover/src/redis/errors.ts';
import { readReplication } from '../../packages/redis-failover/src/redis/replication.ts';
import * as errors from '../../packages/zookeeper/src/errors.ts';
import { follow, followChildren } from '../../packages/zookeeper/src/follow.ts';
import { TransactionError } from '../../packages/zookeeper/src/transaction.ts';
import { runSeed } from '../src/harness/run-seed.ts';
import type { Library } from '../src/redis-failover/library.ts';
import { RedisFailoverSimulation } from '../src/redis-failover/simulation.ts';

/** Of the sources, and not of what is built. */
const library = {
  ...{ Connections, kindOf, Router, ViewFollower, decodePrimary, encodeRequest, pathsBelow },
  ...{ NodeManager, errorOfReply, NodeUnreachableError, readReplication },
  ...{ errors, follow, followChildren, TransactionError },
} as unknown as Library;

const prepare = (seed: number, readable: boolean) =>
  new RedisFailoverSimulation(library, seed, readable);

test('some seeds of the failover of Redis keep all promises', async () => {
  for (let seed = 1; seed <= 3; seed += 1) {
    const { violation } = await runSeed(prepare, seed);
    expect(violation, `seed ${seed}`).toBeUndefined();
  }
});

test('a seed of the failover of Redis takes the same course again', async () => {
  const first = await runSeed(prepare, 7);
  const second = await runSeed(prepare, 7, { readable: true });
  expect(second.hash).toBe(first.hash);
  expect(second.events).toBe(first.events);
  expect(second.lines.join('\n')).toContain('record: r1:6379 in term 1');
});
