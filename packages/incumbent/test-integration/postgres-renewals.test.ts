/** Renewals of many elections share statements. The fate of one of them is its own. */
import type { PostgresServer } from '@incumbent/servers';
import { startMeter, startPostgres } from '@incumbent/servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPostgres } from '../src/backends/postgres/open.ts';
import type { PostgresStore } from '../src/backends/postgres/store.ts';
import type { Version } from '../src/mechanisms/lease/store.ts';
import type { LeaseRecord } from '../src/record/lease-record.ts';
import { drivers, missing, oldTable, openClient, scopeOf } from './support/postgres.ts';

const never = new AbortController().signal;
const elections = 100;
let server: PostgresServer;

beforeAll(async () => {
  if (missing !== undefined) return;
  server = await startPostgres();
  await server.sql(oldTable);
});

afterAll(() => server?.close());

function record(election: string, nonce: string): LeaseRecord {
  return {
    ...{ election, token: 7n, nonce, leaseMs: 4_000, ended: false },
    holding: {
      candidate: { id: 'gone’s “é𝄞\\', incarnation: 'gone-1', addresses: [], metadata: {} },
      ...{ electedAtUnixMs: 1, announced: true, actors: null, revoked: false, request: undefined },
    },
    ...{ reservation: undefined, unfenced: [], drains: [], history: [] },
  };
}

interface Held {
  readonly name: string;
  readonly store: PostgresStore;
  readonly version: Version;
}

for (const driver of drivers) {
  describe.skipIf(missing !== undefined)(`renewals by ${driver}`, () => {
    /** Elections with a record each, all on one client whose statements are counted. */
    async function hold(what: string) {
      const meter = await startMeter({ port: server.port, protocol: 'postgres' });
      const url = server.url.replace(`${server.port}`, `${meter.port}`);
      const { client, close } = openClient(driver, url, 10);
      const { openStore } = openPostgres(client, { listen: false });
      const held = await Promise.all(
        Array.from({ length: elections }, async (_, index): Promise<Held> => {
          const name = `${driver} ${what} “${index}’\\`;
          const store = openStore(scopeOf(name)) as PostgresStore;
          const { version } = await store.read(never);
          const result = await store.swap(version, record(name, 'first'), never);
          if (result.outcome !== 'ok') throw new Error('a swap without competition conflicted');
          return { name, store, version: result.version };
        }),
      );
      const renew = ({ name, store, version }: Held) =>
        store.swap(version, record(name, 'second'), never).then(
          ({ outcome }) => outcome,
          (error: Error) => error.message,
        );
      const nonces = () =>
        Promise.all(held.map(async ({ store }) => (await store.read(never)).record?.nonce));
      const end = async () => {
        await close();
        await meter.close();
      };
      return { held, renew, nonces, end, meter };
    }

    test('of one moment take a few statements, and each writes its own record', async () => {
      const { held, renew, nonces, end, meter } = await hold('all');
      const before = meter.requestCount;
      expect(await Promise.all(held.map(renew))).toEqual(held.map(() => 'ok'));
      // A connection prepares each text once.
      expect(meter.requestCount - before).toBeLessThan(elections / 4);
      expect(await nonces()).toEqual(held.map(() => 'second'));
      const records = await Promise.all(held.map(({ store }) => store.read(never)));
      expect(records.map((reading) => reading.record)).toEqual(
        held.map(({ name }) => record(name, 'second')),
      );
      const again = await Promise.all(held.map(renew));
      // The version that they expect has moved on.
      expect(again).toEqual(held.map(() => 'conflict'));
      await end();
    });

    test('fail alone: for a record that has moved on, and for a row that is locked', async () => {
      const { held, renew, nonces, end } = await hold('alone');
      const [moved, locked] = [held[40], held[60]] as [Held, Held];
      const other = new pg.Client(server.url);
      await other.connect();
      const update = 'update incumbent_election set version = $2 where name = $1';
      await other.query(update, [moved.name, 'of somebody else']);
      await other.query('begin');
      await other.query('select from incumbent_election where name = $1 for update', [locked.name]);
      const outcomes = await Promise.all(held.map(renew));
      await other.query('rollback');
      await other.end();
      expect(outcomes[40]).toBe('conflict');
      expect(outcomes[60]).toMatch(/lock timeout/);
      const others = outcomes.filter((_, index) => index !== 40 && index !== 60);
      expect(new Set(others)).toEqual(new Set(['ok']));
      const after = await nonces();
      expect(after[40]).toBe('first');
      expect(after[60]).toBe('first');
      expect(after.filter((nonce) => nonce === 'second').length).toBe(elections - 2);
      await end();
    });

    test('of another life of the store write nothing', async () => {
      const { held, renew, nonces, end } = await hold('life');
      const old = held.map(({ version, ...rest }) => ({
        ...rest,
        version: `an earlier life${String(version).slice(String(version).indexOf('/'))}`,
      }));
      expect(await Promise.all(old.map(renew))).toEqual(held.map(() => 'conflict'));
      expect(await nonces()).toEqual(held.map(() => 'first'));
      await end();
    });
  });
}
