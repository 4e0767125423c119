// Tries the packages as a user gets them. Packs them, installs the tarballs into an empty project,
// runs the commands and an example of each README there, and type-checks the example.
//
//   npm run test:packed
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { obtainNode } from './lib/node-release.mjs';
import { pack, publicPackages } from './lib/pack.mjs';
import { must, root, run, seconds, shown, tsc } from './lib/run.mjs';

const exampleLimitMs = 60_000;

/** Kills its child, which leads, and waits until a companion that is packed has given the seat back. */
const crash = `
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';

const backend = file(join(process.cwd(), 'crashes'));
const election = createElection({ name: 'jobs', backend, releaseOnCrash: true });
if (process.argv[2] === 'lead') {
  await election.lead(async ({ signal }) => {
    // The companion is up by then.
    await sleep(1_000);
    process.send('leads');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  });
} else {
  const child = fork('crash.mjs', ['lead']);
  child.once('message', () => child.kill('SIGKILL'));
  await new Promise((resolve) => child.once('exit', resolve));
  console.log('killed');
  while (process.platform === 'linux' && (await election.inspect()).unfenced.length === 0) await sleep(20);
  console.log('its seat was given back');
}
`;

let failures = 0;
const scratch = mkdtempSync(join(tmpdir(), 'incumbent-packed-'));
try {
  const [library, cli, zookeeper, zookeeperTesting, redisFailover, shards] = await Promise.all(
    publicPackages.map((path) => pack(path, scratch)),
  );

  const elections = newProject('elections');
  await install(elections, library);
  await step(
    elections,
    'without @incumbent/cli, the command says what to install',
    ['npx', '--no', '--', 'incumbent'],
    {
      code: 69,
      says: /^npm install @incumbent\/cli$/m,
    },
  );
  await install(elections, library, cli, zookeeper, redisFailover, shards);
  await step(elections, 'npx incumbent --help', ['npx', '--no', '--', 'incumbent', '--help'], {
    says: /\bincumbent\b/,
  });
  const cliFile = join(elections, 'node_modules/@incumbent/cli/dist/bin.js');
  await loads(
    elections,
    'incumbent --help',
    [cliFile, '--help'],
    [
      ['@incumbent/cli', 3],
      ['incumbent', 0],
    ],
  );
  const program = ['--', '/bin/sh', '-c', 'echo "token $INCUMBENT_TOKEN"'];
  const run = ['run', '-e', 'packed', '--store', `file:${join(elections, 'store')}`, ...program];
  await step(elections, 'npx incumbent run', ['npx', '--no', '--', 'incumbent', ...run], {
    says: /^token 1$/m,
  });
  await loads(
    elections,
    'incumbent run on a file store',
    [cliFile, ...run],
    [
      // The last is the guard, of which the supervisor uses a part.
      ['@incumbent/cli', 6],
      ['incumbent', 4],
    ],
  );
  const imports = "import 'incumbent'; import 'incumbent/file';";
  await loads(
    elections,
    'the library with a file store',
    ['--input-type=module', '-e', imports],
    [['incumbent', 4]],
  );
  writeFileSync(join(elections, 'crash.mjs'), crash);
  await step(
    elections,
    'a service with releaseOnCrash is killed',
    [process.execPath, 'crash.mjs'],
    {
      says: process.platform === 'linux' ? /^its seat was given back$/m : /^killed$/m,
    },
  );
  await step(
    elections,
    'npx incumbent --version',
    ['npx', '--no', '--', 'incumbent', '--version'],
    {
      says: /^\d+\.\d+\.\d+$/m,
    },
  );
  await step(
    elections,
    'npx incumbent status on a ZooKeeper that is not there',
    [
      'npx',
      '--no',
      '--',
      'incumbent',
      'status',
      '-e',
      'x',
      '--store',
      'zk://127.0.0.1:1',
      '--timeout',
      '1s',
    ],
    { code: 69, says: /no session with ZooKeeper/ },
  );
  await step(
    elections,
    'npx incumbent-zk --help',
    ['npx', '--no', '--', 'incumbent-zk', '--help'],
    {
      says: /\bincumbent-zk\b/,
    },
  );
  await tryExample(elections, /from ['"]incumbent(?:\/[^'"]*)?['"]/, [
    'packages/incumbent/README.md',
    'README.md',
  ]);

  const client = newProject('zookeeper');
  // The one with the server in it: it needs no other.
  await install(client, zookeeper, zookeeperTesting);
  await tryExample(client, /from ['"]@incumbent\/zookeeper-testing['"]/, [
    'packages/zookeeper-testing/README.md',
  ]);

  const sharing = newProject('shards');
  await install(sharing, library, shards);
  await tryExample(sharing, /from ['"]@incumbent\/shards['"]/, ['packages/shards/README.md']);

  const failover = newProject('redis-failover');
  await install(failover, library, zookeeper, redisFailover, shards, cli);
  const incumbentRedis = ['npx', '--no', '--', 'incumbent-redis'];
  await step(failover, 'npx incumbent-redis --help', [...incumbentRedis, '--help'], {
    says: /\bincumbent-redis manage\b/,
  });
  await step(
    failover,
    'npx incumbent-redis status on a ZooKeeper that is not there',
    [...incumbentRedis, 'status', '-z', '127.0.0.1:1', '--timeout', '1s'],
    { code: 3, says: /ZooKeeper at 127\.0\.0\.1:1 did not answer within 1s/ },
  );
  // It reads YAML, and knows what a manager would refuse.
  writeFileSync(join(failover, 'redis.yml'), 'nodes: [a:1]\nzookeeper: h\nmax_failures: x\n');
  await step(
    failover,
    'npx incumbent-redis manage with a file that cannot be used',
    [...incumbentRedis, 'manage', '--config', 'redis.yml'],
    { code: 2, says: /redis\.yml:3:1: max_failures is a whole number/ },
  );
  // Its example needs servers, and the types of `redis` need Node's.
  const example = firstExample(/from ['"]@incumbent\/redis-failover['"]/, [
    'docs/reference/redis-failover.md',
  ]);
  writeFileSync(join(failover, 'example.mts'), example.code);
  await installNodeTypes(failover);
  writeConfig(failover, ['node']);
  await step(failover, `the example of ${example.readme}, types`, tsc('-p', failover));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exitCode = failures > 0 ? 1 : 0;

function newProject(name) {
  const project = join(scratch, `project-${name}`);
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }\n');
  return project;
}

/** Runs and type-checks the first example in `readmes` whose imports match. */
async function tryExample(project, imported, readmes) {
  const example = firstExample(imported, readmes);
  if (example === undefined) {
    console.log(`skipped: none of ${readmes.join(', ')} has a ts block that imports ${imported}`);
    if (process.env.CI === 'true') failures += 1;
    return;
  }
  const { code, readme } = example;
  writeFileSync(join(project, 'example.mjs'), code);
  writeFileSync(join(project, 'example.mts'), code);
  const { path: node24, version } = await obtainNode('24');
  const name = `the example of ${readme}`;
  await step(project, `${name} on Node ${process.version}`, [process.execPath, 'example.mjs']);
  await step(project, `${name} on Node ${version}`, [node24, 'example.mjs']);

  // Users may or may not have Node's types: without them our own types must stand on the
  // compiler's default libraries. Theirs is a strict compiler that looks into ours.
  const typeCheck = tsc('-p', project);
  writeConfig(project, []);
  await step(project, `${name}, types, without @types/node`, typeCheck);
  await installNodeTypes(project);
  writeConfig(project, ['node']);
  await step(project, `${name}, types, with @types/node`, typeCheck);
}

async function installNodeTypes(project) {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  await install(project, `@types/node@${devDependencies['@types/node']}`);
}

function writeConfig(project, types) {
  const compilerOptions = { strict: true, module: 'nodenext', noEmit: true, types };
  const config = { compilerOptions, files: ['example.mts'] };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config));
}

async function step(project, name, command, { code: wanted = 0, says } = {}) {
  const options = { cwd: project, limitMs: exampleLimitMs };
  const { code, output, timedOut, ms } = await run(command, options);
  const ok = code === wanted && !timedOut && (says?.test(output) ?? true);
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name} (${seconds(ms)})`);
  if (ok) return;
  failures += 1;
  const end = timedOut ? `still running after ${seconds(exampleLimitMs)}` : `exit code ${code}`;
  const expected = says ? `${wanted}, and output that matches ${says}` : wanted;
  console.log(`$ ${shown(command)}\n${output}${end}; expected ${expected}`);
}

/**
 * Counts the files that a start reads, because each costs time. `limits`: at most so many of a
 * package, and none of others.
 */
async function loads(project, name, args, limits) {
  // V8 names all scripts that it has compiled.
  const coverage = mkdtempSync(join(scratch, 'loaded-'));
  const env = { NODE_V8_COVERAGE: coverage };
  const { code, output } = await run([process.execPath, ...args], { cwd: project, env });
  // The guard is a process that tells of its own.
  const urls = readdirSync(coverage).flatMap((file) =>
    JSON.parse(readFileSync(join(coverage, file), 'utf8')).result.map(({ url }) => url),
  );
  const counts = {};
  for (const url of new Set(urls)) {
    const found = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1];
    if (found !== undefined) counts[found] = (counts[found] ?? 0) + 1;
  }
  const allowed = Object.fromEntries(limits);
  const isMore = Object.entries(counts).some(([of, count]) => count > (allowed[of] ?? 0));
  const ok = code === 0 && !isMore;
  const said = Object.entries(counts).map(([of, count]) => `${count} of ${of}`);
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name} loads ${said.join(', ')}`);
  if (ok) return;
  failures += 1;
  console.log(`at most ${JSON.stringify(allowed)} was expected; exit code ${code}\n${output}`);
}

async function install(project, ...specs) {
  await must(['npm', 'install', '--no-audit', '--no-fund', ...specs], { cwd: project });
}

/** The first ```ts block that begins with imports, one of which matches. */
function firstExample(imported, readmes) {
  for (const readme of readmes) {
    const path = join(root, readme);
    if (!existsSync(path)) continue;
    for (const [, code] of readFileSync(path, 'utf8').matchAll(
      /^```ts(?: runnable)?\n(.*?)^```$/gms,
    )) {
      const imports = /^(?:\s*\/\/[^\n]*\n|\s*import\b[^;]*;)+/.exec(code)?.[0] ?? '';
      if (imported.test(imports)) return { readme, code };
    }
  }
  return undefined;
}
