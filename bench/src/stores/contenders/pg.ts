import { postgres } from 'incumbent/postgres';
import pg from 'pg';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';
import { ours } from './ours.ts';
import { probeTable, readProbe, urlOf, writeProbe } from './postgres-probe.ts';

export const open: OpenContender = async ({ port }, leaseMs) => {
  const pool = new pg.Pool({ connectionString: urlOf(port) });
  await pool.query(probeTable(probeName));
  return ours(
    postgres(pool),
    { lease: leaseMs },
    {
      read: () => pool.query({ name: 'read', text: readProbe, values: [probeName] }),
      write: () => pool.query({ name: 'write', text: writeProbe, values: [probeName, probeText] }),
    },
  );
};
