// Every process that starts from one Node startup snapshot is a copy of the process that built it. Two
// copies of one election handle must never lead at the same time. So createElection refuses while a
// snapshot is built; and if a handle gets into one all the same, its copies are candidates of their own.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const scenes = {
  // The first attempt of a user.
  plain: `
    import { startupSnapshot } from 'node:v8';
    const election = make('plain');
    startupSnapshot.setDeserializeMainFunction(() => contend(election));`,
  // The way that the error names.
  right: `
    import { startupSnapshot } from 'node:v8';
    startupSnapshot.setDeserializeMainFunction(() => contend(make('right')));`,
  // The refusal is got round, so that the handle is in the snapshot.
  forced: `
    import { startupSnapshot } from 'node:v8';
    startupSnapshot.isBuildingSnapshot = () => false;
    const election = make('forced');
    startupSnapshot.setDeserializeMainFunction(() => contend(election));`,
};

// Each copy campaigns for so long; every look at its term is noted by the clock of the machine.
const program = (directory, scene) => `
  import { createElection } from 'incumbent';
  import { file } from 'incumbent/file';
  const make = (name) =>
    createElection({ name, backend: file(${JSON.stringify(directory)}), lease: '1s' });
  const now = () => Number(process.hrtime.bigint() / 1000n) / 1000;
  async function contend(election) {
    const looks = [];
    const incarnations = new Set();
    const until = AbortSignal.timeout(5000);
    const work = async (term) => {
      const { leader } = await election.leader();
      if (leader) incarnations.add(leader.incarnation);
      while (!term.signal.aborted) {
        const atMs = now();
        if (term.isLeading()) looks.push([atMs, String(term.token)]);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    };
    await election.lead(work, { signal: until }).catch((error) => {
      if (!until.aborted) throw error;
    });
    console.log(JSON.stringify({ looks, incarnations: [...incarnations] }));
  }
  ${scene}`;

const directory = mkdtempSync(join(tmpdir(), 'incumbent-snapshot-'));
const overdue = setTimeout(() => end('FAILED: not done within two minutes'), 120_000);
let verdict;
try {
  verdict = await reproduce();
} finally {
  clearTimeout(overdue);
  rmSync(directory, { recursive: true, force: true });
}
end(verdict);

async function reproduce() {
  const plain = await build('plain');
  console.log(
    `a handle at the top of the script: ${plain.refusal ?? 'is taken into the snapshot'}`,
  );
  const refused = plain.refusal?.includes('setDeserializeMainFunction') === true;
  for (const name of ['right', 'forced']) {
    const { blob, refusal } = await build(name);
    if (refusal !== undefined) return `FAILED: ${name}: no snapshot could be built: ${refusal}`;
    const copies = await Promise.all([start(blob), start(blob)]);
    const problem = judge(name, copies);
    if (problem !== undefined) return `FAILED: ${name}: ${problem}`;
  }
  if (!refused) return 'FAILED: createElection did not refuse while a snapshot was built';
  return 'ok: createElection refuses, and two copies of one handle never led at the same time';
}

/** Bundled into one file, as a snapshot needs it. */
async function build(name) {
  const { rolldown } = await import('rolldown');
  const root = fileURLToPath(new URL('../..', import.meta.url));
  // In the repository, so that it finds the packages.
  const source = join(root, `.startup-snapshot-${process.pid}-${name}.mjs`);
  const entry = join(directory, `${name}.cjs`);
  const blob = join(directory, `${name}.blob`);
  writeFileSync(source, program(directory, scenes[name]));
  try {
    const bundle = await rolldown({ input: source, platform: 'node', logLevel: 'silent' });
    await bundle.write({ file: entry, format: 'cjs' });
    await bundle.close();
  } finally {
    rmSync(source, { force: true });
  }
  const built = spawnSync(process.execPath, ['--snapshot-blob', blob, '--build-snapshot', entry], {
    encoding: 'utf8',
  });
  if (built.status === 0) return { blob };
  const said = built.stderr.split('\n').find((line) => line.includes('Error: '));
  return { refusal: said ?? `it ended with ${built.status ?? built.signal}\n${built.stderr}` };
}

async function start(blob) {
  const child = spawn(process.execPath, ['--snapshot-blob', blob, 'main'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`a copy ended with ${code}`);
  return JSON.parse(text);
}

/** The fault that was found; undefined: none. */
function judge(name, copies) {
  const looks = copies
    .flatMap(({ looks }, copy) => looks.map(([atMs, token]) => ({ atMs, token, copy })))
    .sort((a, b) => a.atMs - b.atMs);
  if (looks.length === 0) return 'nobody led';
  const spans = new Map();
  for (const { atMs, token, copy } of looks) {
    const key = `${copy} ${token}`;
    const span = spans.get(key) ?? { copy, token, fromMs: atMs, toMs: atMs };
    span.toMs = atMs;
    spans.set(key, span);
  }
  const all = [...spans.values()];
  let bothMs = 0;
  for (const a of all) {
    for (const b of all) {
      if (a.copy >= b.copy) continue;
      bothMs = Math.max(bothMs, Math.min(a.toMs, b.toMs) - Math.max(a.fromMs, b.fromMs));
    }
  }
  const incarnations = new Set(copies.flatMap((copy) => copy.incarnations));
  console.log(
    `${name}: two copies, ${all.length} terms, ${incarnations.size} incarnations, ` +
      `both led for ${Math.max(0, bothMs).toFixed(0)} ms`,
  );
  return bothMs > 0 ? `both led for ${bothMs.toFixed(0)} ms` : undefined;
}

function end(text) {
  console.log(text);
  process.exit(text.startsWith('ok') ? 0 : 1);
}
