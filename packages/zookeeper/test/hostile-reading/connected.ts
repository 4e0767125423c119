import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import type { ZooKeeper } from '../../src/index.ts';
import { createClient } from '../../src/index.ts';
import { TestClock } from './clock.ts';
import type { closeAfterEach } from './closing.ts';

/** The session timeout of these clients. */
export const timeoutMs = 9_000;

/** A client that is connected to a fake server, on a clock that only the test moves. */
export async function connectedClient(
  later: ReturnType<typeof closeAfterEach>,
): Promise<{ fake: FakeZooKeeper; clock: TestClock; client: ZooKeeper }> {
  const fake = later(await FakeZooKeeper.start({ tickTimeMs: 500 }));
  const clock = new TestClock();
  const client = later(
    createClient(fake.connectionString, { clock, sessionTimeoutMs: timeoutMs }),
    clock,
  );
  await client.connected();
  return { fake, clock, client };
}
