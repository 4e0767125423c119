import { postgresAvailable, startPostgres } from '@incumbent/servers';
import { startProxy } from '@incumbent/zookeeper-testing';
import pg from 'pg';
import postgresJs from 'postgres';
import type { PostgresClient } from '../src/backends/postgres/index.ts';
import { postgres } from '../src/backends/postgres/index.ts';
import { describeFaults } from './support/fault-suite.ts';
import { faultTiming } from './support/fault-trial.ts';
import { sentAtOnce } from './support/postgres.ts';

interface Opened {
  readonly client: PostgresClient;
  close(): Promise<void>;
}

function openPg(url: string): Opened {
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  return { client: pool, close: () => pool.end() };
}

/** By default it asks for types when it connects. A reset meanwhile would end the process. */
function openPostgresJs(url: string): Opened {
  const options = { max: 3, onnotice: () => {}, fetch_types: false, connection: sentAtOnce };
  const sql = postgresJs(url, options);
  return { client: sql, close: () => sql.end({ timeout: 1 }) };
}

for (const [title, open] of [
  ['PostgreSQL by pg', openPg],
  ['PostgreSQL by postgres', openPostgresJs],
] as const) {
  describeFaults({
    title,
    missing: postgresAvailable(),
    async start() {
      const server = await startPostgres({ settings: { max_connections: 300 } });
      return {
        timing: faultTiming(1_500),
        // Only a write has a record in it: the database parses no JSON of ours.
        isWrite: (chunk) => Buffer.from(chunk).includes('"nonce":'),
        async connect() {
          const proxy = await startProxy(server);
          const { client, close } = open(`postgres://postgres@127.0.0.1:${proxy.port}/postgres`);
          return { backend: postgres(client), proxy, close };
        },
        close: () => server.close(),
      };
    },
  });
}
