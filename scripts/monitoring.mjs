// Writes the alert file, the dashboard and the reference of the metrics, from the table of
// instruments in packages/incumbent/src/metrics/instruments.ts.
//
//   node scripts/monitoring.mjs                             those that are kept in the repository
//   node scripts/monitoring.mjs --lease 45s --scrape 15s --to DIR    for other durations, elsewhere
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './lib/run.mjs';
import { alertFile } from './monitoring/alerts.mjs';
import { dashboard } from './monitoring/dashboard.mjs';
import { kept, reference } from './monitoring/reference.mjs';
import { settingsFor } from './monitoring/settings.mjs';

const { values } = parseArgs({
  options: { lease: { type: 'string' }, scrape: { type: 'string' }, to: { type: 'string' } },
});
const { to, ...durations } = values;
if (to === undefined && Object.keys(durations).length > 0) {
  console.error('the kept files are for the default durations: give --to DIR for others');
  process.exit(64);
}

const settings = settingsFor(durations);
const files = {
  [kept.alerts]: alertFile(settings),
  [kept.dashboard]: dashboard(),
  ...(to === undefined && { [kept.reference]: reference(settings) }),
};
for (const [file, text] of Object.entries(files)) {
  const path = to === undefined ? join(root, file) : join(resolve(to), file.split('/').at(-1));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  console.log(path);
}
