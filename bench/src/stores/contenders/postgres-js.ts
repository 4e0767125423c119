import { postgres } from 'incumbent/postgres';
import postgresJs from 'postgres';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';
import { ours } from './ours.ts';
import { probeTable, readProbe, urlOf, wakeProbe, writeProbe } from './postgres-probe.ts';

export const open: OpenContender = async ({ port }, leaseMs) => {
  const sql = postgresJs(urlOf(port), { onnotice: () => {} });
  await sql.unsafe(probeTable(probeName));
  return ours(
    postgres(sql),
    { lease: leaseMs },
    {
      read: async () => sql.unsafe(readProbe, [probeName], { prepare: true }),
      write: async () => sql.unsafe(writeProbe, [probeName, probeText], { prepare: true }),
      wake: async (topic) =>
        sql.unsafe(wakeProbe, [probeName, probeText, topic], { prepare: true }),
      listen: (topic, onWoken) => sql.listen(topic, onWoken),
    },
  );
};
