/** The stores on which pages are tried: one polled by itself, one that notifies, one with sessions. */
import { postgresAvailable, startPostgres } from '@incumbent/servers';
import { connect } from '@incumbent/zookeeper';
import { serverAvailable, startServer } from '@incumbent/zookeeper-testing';
import type { Backend } from 'incumbent';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { postgres } from 'incumbent/postgres';
import { zookeeper } from 'incumbent/zookeeper';
import pg from 'pg';

export interface PageStore {
  /** For `--store`. */
  readonly url: string;
  /** For programs that a test starts. */
  readonly where: readonly [kind: string, where: string];
  readonly backend: Backend;
  close(): Promise<void>;
}

export interface PageStoreKind {
  readonly name: string;
  /** Why it cannot be tried on this machine. */
  readonly missing: string | undefined;
  /** @param directory for a store that is one */
  open(directory: string): Promise<PageStore>;
}

export const pageStores: readonly PageStoreKind[] = [
  {
    name: 'file',
    missing: undefined,
    async open(directory) {
      return {
        url: `file:${directory}`,
        where: ['file', directory],
        backend: file(directory),
        close: async () => {},
      };
    },
  },
  {
    name: 'PostgreSQL',
    missing: postgresAvailable(),
    async open() {
      const server = await startPostgres();
      const pool = new pg.Pool({ connectionString: server.url });
      const backend = postgres(pool);
      await createElection({ name: 'any', backend }).init();
      const close = async () => {
        await pool.end();
        await server.close();
      };
      return { url: server.url, where: ['postgres', server.url], backend, close };
    },
  },
  {
    name: 'ZooKeeper',
    missing: serverAvailable({}),
    async open() {
      const server = await startServer();
      const zk = await connect(server.connectionString);
      const backend = zookeeper(zk);
      const close = async () => {
        await zk.close();
        await server.close();
      };
      const { connectionString } = server;
      return { url: connectionString, where: ['zookeeper', connectionString], backend, close };
    },
  },
];
