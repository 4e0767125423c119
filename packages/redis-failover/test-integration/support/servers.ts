import { redisAvailable } from '@incumbent/servers';
import type { TestServer } from '@incumbent/zookeeper-testing';
import { serverAvailable, startServer } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll } from 'vitest';

/** Why there is no server to test with. In CI that is a failure. */
export const missing: string | undefined = redisAvailable() ?? serverAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

/** One ZooKeeper for the file. Each test has a root of its own on it. */
export function useZooKeeper(): { readonly server: TestServer } {
  let server: TestServer | undefined;
  beforeAll(async () => {
    if (missing === undefined) server = await startServer({ tickTimeMs: 200 });
  });
  afterAll(async () => server?.close());
  return {
    get server() {
      return server as TestServer;
    },
  };
}
