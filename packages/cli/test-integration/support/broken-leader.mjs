// A candidate with a defect: its belief never ends, and it does not hear that its seat is lost. It
// serves /metrics as `incumbent run` does.
//
//   node broken-leader.mjs DIRECTORY LEASE PORT SCRATCH
//
// The library is copied to SCRATCH and broken there.
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Registry } from 'prom-client';

const [directory, lease, port, scratch] = process.argv.slice(2);
const library = fileURLToPath(new URL('../../../incumbent', import.meta.url));
cpSync(join(library, 'dist'), join(scratch, 'dist'), { recursive: true });
cpSync(join(library, 'package.json'), join(scratch, 'package.json'));
symlinkSync(
  fileURLToPath(new URL('../../../../node_modules', import.meta.url)),
  join(scratch, 'node_modules'),
);

breakIn(
  'base/belief.js',
  'return this.#countdown.look(readClocks(this.#clock));',
  'return 600_000;',
);
breakIn(
  'core/seat-keeper.js',
  "if (confirmation.outcome === 'lost') {",
  "if (confirmation.outcome === 'lost') { return false;",
);

const load = (file) => import(pathToFileURL(join(scratch, 'dist', file)).href);
const { createElection } = await load('index.js');
const { file } = await load('backends/file/index.js');
const { collectMetrics } = await load('metrics/index.js');
const registry = new Registry();
collectMetrics(registry);
createServer((_request, response) => {
  void registry.metrics().then((text) => response.end(text));
}).listen(Number(port), '127.0.0.1');
const election = createElection({
  name: 'work',
  backend: file(directory),
  lease,
  candidate: { id: 'BROKEN' },
});
await election.campaign();
console.log('leading');

function breakIn(name, from, to) {
  const path = join(scratch, 'dist', name);
  const text = readFileSync(path, 'utf8');
  if (text.split(from).length !== 2) throw new Error(`${name} has not once: ${from}`);
  writeFileSync(path, text.replace(from, to));
}
