import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { Layout } from '@incumbent/servers/interop';
import { compilePeer, peerMissing } from '@incumbent/servers/interop';
import type { TestServer } from '@incumbent/zookeeper-testing';
import { serverAvailable, startServer } from '@incumbent/zookeeper-testing';
import type { TestContext } from 'vitest';
import { afterAll, beforeAll } from 'vitest';

/** Shared by all tests of a file. */
export interface Stage {
  readonly server: TestServer;
  /** `host:port` */
  readonly address: string;
  /** The directory for files of the tests. The compiled peers are there as well. */
  readonly directory: string;
}

/** Starts a server for the file, and compiles these peers if what they need is there. */
export function useStage({ peers }: { readonly peers: readonly Layout[] }): () => Stage {
  let stage: Stage | undefined;
  let directory = '';
  beforeAll(async () => {
    if (serverAvailable() !== undefined) return;
    directory = mkdtempSync(join(tmpdir(), 'incumbent-interop-'));
    for (const peer of peers) {
      if (peerMissing(peer) === undefined) compilePeer(peer, directory);
    }
    const server = await startServer({ tickTimeMs: 200 });
    stage = { server, address: `${server.host}:${server.port}`, directory };
  });
  afterAll(async () => {
    await stage?.server.close();
    if (directory !== '') rmSync(directory, { recursive: true, force: true });
  });
  return () => {
    if (stage === undefined) throw new Error('there is no server');
    return stage;
  };
}

/** Skips a test, with the reason, where it cannot run. In CI it fails instead. */
export function requirePeer(context: Pick<TestContext, 'skip'>, layout?: Layout): void {
  const reason = serverAvailable() ?? (layout === undefined ? undefined : peerMissing(layout));
  if (reason === undefined) return;
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
}
