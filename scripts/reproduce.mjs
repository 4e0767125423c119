// Runs the reproductions of what an attack on the elections found, one after the other. Each is a
// program of its own in scripts/reproduce. It starts the real servers it needs, prints what it saw,
// and ends with `ok: …` or `FAILED: …`.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, run, seconds } from './lib/run.mjs';

const usage = `npm run reproduce                     all of them
npm run reproduce -- try-after-restart  the named ones
npm run reproduce -- --list            their names
npm run reproduce -- redis-failover-data --runs 20    so often each`;

const directory = join(root, 'scripts/reproduce');
const names = readdirSync(directory)
  .filter((file) => file.endsWith('.mjs'))
  .map((file) => file.slice(0, -'.mjs'.length))
  .sort();
const { chosen, runs } = choose();
let failed = 0;
for (const name of chosen) {
  console.log(`\n${name}`);
  const program = [process.execPath, join(directory, `${name}.mjs`)];
  if (runs !== undefined) program.push('--runs', runs);
  // One play of all scenarios of a Redis failover takes minutes.
  const limitMs = (name === 'redis-failover-data' ? 15 : 5) * Number(runs ?? 1) * 60_000;
  const { code, ms } = await run(program, { output: 'both', limitMs });
  if (code !== 0) failed += 1;
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds(ms)})`);
}
console.log(`\n${chosen.length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;

function choose() {
  let parsed;
  try {
    parsed = parseArgs({
      options: {
        list: { type: 'boolean' },
        help: { type: 'boolean' },
        runs: { type: 'string' },
      },
      allowPositionals: true,
    });
  } catch (error) {
    refuse(error.message);
  }
  const { values, positionals } = parsed;
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  if (values.list) {
    console.log(names.join('\n'));
    process.exit(0);
  }
  const unknown = positionals.filter((name) => !names.includes(name));
  if (unknown.length > 0) refuse(`there is no "${unknown[0]}"; there are: ${names.join(', ')}`);
  if (values.runs !== undefined && !/^[1-9]\d{0,3}$/.test(values.runs)) {
    refuse(`--runs is a whole number from 1 to 9999, not "${values.runs}"`);
  }
  return { chosen: positionals.length === 0 ? names : positionals, runs: values.runs };
}

function refuse(message) {
  console.error(`${message}\n\n${usage}`);
  process.exit(64);
}
