// Installs and builds what is missing, pages too; says nothing and takes a moment when nothing is.
//
//   node scripts/setup.mjs [--no-build | --for FOLDER]
//
// `--for packages/cli` builds that project and the ones that it refers to, and no other.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { must, root, seconds, tsc } from './lib/run.mjs';

const { values: options } = parseArgs({
  options: { 'no-build': { type: 'boolean' }, for: { type: 'string' } },
});

const reason = whyInstall();
if (reason !== undefined) {
  console.log(`setup: npm ci (${reason})`);
  const { ms } = await must(['npm', 'ci', '--no-audit', '--no-fund']);
  console.log(`setup: installed in ${seconds(ms)}`);
}

if (!options['no-build']) {
  const projects = options.for === undefined ? [] : [options.for];
  const before = buildTimes(projects);
  if (before.includes(undefined)) console.log(['setup: tsc -b', ...projects].join(' '));
  const { ms } = await must(tsc('-b', ...projects));
  if (buildTimes(projects).some((time, i) => time !== before[i])) {
    console.log(`setup: built in ${seconds(ms)}`);
  }
  if (pagesAreOld()) await must([process.execPath, 'packages/cli/web/build.mjs']);
}

/** The pages that commands serve are bundled, and so no part of `tsc -b`. */
function pagesAreOld() {
  const cli = join(root, 'packages/cli');
  const made = statSync(join(cli, 'assets'), { throwIfNoEntry: false });
  const sources = readdirSync(join(cli, 'web'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  // Types of the command are all that a page has of `src`, but for a few constants.
  return made === undefined || sources.some((file) => statSync(file).mtimeMs > made.mtimeMs);
}

/**
 * Why node_modules must be installed anew, or undefined. npm keeps a record of what it installed in
 * node_modules/.package-lock.json. Its content is compared, not its age: a checkout touches the
 * lockfile without changing it, and `npm ci` would delete node_modules under a running test.
 */
function whyInstall() {
  const wanted = packagesOf('package-lock.json');
  const installed = packagesOf('node_modules/.package-lock.json');
  if (wanted === undefined) throw new Error('package-lock.json is missing');
  if (installed === undefined) return 'node_modules is missing';
  for (const [path, want] of Object.entries(wanted)) {
    if (path === '') continue;
    const got = installed[path];
    // A package for another platform is left out.
    if (got === undefined && want.optional) continue;
    if (got?.version !== want.version || got?.integrity !== want.integrity) {
      return `${path} is not as package-lock.json says`;
    }
  }
  return undefined;
}

function packagesOf(lockfile) {
  try {
    return JSON.parse(readFileSync(join(root, lockfile), 'utf8')).packages;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** When each project was last built; undefined where it never was. Of all projects when none is named. */
function buildTimes(projects) {
  return (projects.length > 0 ? projects : allProjects()).map((path) => {
    const info = join(root, path, 'dist/.tsbuildinfo');
    return statSync(info, { throwIfNoEntry: false })?.mtimeMs;
  });
}

function allProjects() {
  const { references } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
  return references.map(({ path }) => path);
}
