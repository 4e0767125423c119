import { postgres } from 'incumbent/postgres';
import pg from 'pg';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';
import { ours } from './ours.ts';
import { probeTable, readProbe, urlOf, wakeProbe, writeProbe } from './postgres-probe.ts';

export const open: OpenContender = async ({ port }, leaseMs) => {
  const pool = new pg.Pool({ connectionString: urlOf(port) });
  await pool.query(probeTable(probeName));
  let listener: pg.Client | undefined;
  return ours(
    postgres(pool),
    { lease: leaseMs },
    {
      read: () => pool.query({ name: 'read', text: readProbe, values: [probeName] }),
      write: () => pool.query({ name: 'write', text: writeProbe, values: [probeName, probeText] }),
      wake: (topic) =>
        pool.query({ name: 'wake', text: wakeProbe, values: [probeName, probeText, topic] }),
      async listen(topic, onWoken) {
        if (listener === undefined) {
          listener = new pg.Client(urlOf(port));
          await listener.connect();
        }
        listener.once('notification', onWoken);
        await listener.query(`listen "${topic}"`);
      },
    },
  );
};
