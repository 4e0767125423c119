// Prepares a release: `npm run release`. Takes the owner's addresses from owner.json and writes them
// into every package and into SECURITY.md. Then it sets versions and changelogs by the changesets,
// and says which commands publish. It publishes nothing. `--check` only says whether a release could begin.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { publicPackages } from './lib/pack.mjs';
import { must, root, tool } from './lib/run.mjs';

/** The fields of owner.json, each with a value that would do. */
const fields = {
  repository: 'https://git.example.org/team/incumbent',
  homepage: 'https://incumbent.example.org',
  bugs: 'https://git.example.org/team/incumbent/issues',
  security: 'security@example.org',
};

const { values: options } = parseArgs({ options: { check: { type: 'boolean' } } });
const owner = readJson('owner.json');
const faults = [...faultsOf(owner), ...(changesets().length > 0 ? [] : ['there is no changeset'])];
if (faults.length > 0) {
  console.error(`A release cannot begin:\n${faults.map((fault) => `- ${fault}`).join('\n')}`);
  process.exit(1);
}
if (options.check) {
  console.log(`A release can begin, with ${changesets().length} changesets.`);
  process.exit(0);
}
for (const path of publicPackages) writeOwner(path);
writeContact(owner.security);
await must(tool('@changesets/cli/bin.js', 'version'), { output: 'inherit' });
console.log(`
The versions and changelogs are written. Now:

  npm install --package-lock-only   # the lockfile follows the versions
  bash .ci/run
  git commit --all --message "Release"
  npm run stage                     # the packages as they are published
  npx changeset publish
`);

function faultsOf(values) {
  return Object.entries(fields).flatMap(([name, example]) => {
    const value = values[name];
    if (typeof value === 'string' && value.trim() !== '') return [];
    return [`owner.json: "${name}" is empty; it takes a value such as "${example}"`];
  });
}

function changesets() {
  return readdirSync(join(root, '.changeset')).filter(
    (file) => file.endsWith('.md') && file !== 'README.md',
  );
}

/** The fields stand after the licence, where npm's documentation has them. */
function writeOwner(path) {
  const { license, ...rest } = readJson(join(path, 'package.json'));
  const entries = Object.entries(rest);
  const at = entries.findIndex(([name]) => name === 'type');
  const repository = { type: 'git', url: `git+${owner.repository}.git`, directory: path };
  const added = { license, repository, homepage: owner.homepage, bugs: { url: owner.bugs } };
  const before = Object.fromEntries(entries.slice(0, at));
  const after = Object.fromEntries(entries.slice(at));
  const text = JSON.stringify({ ...before, ...added, ...after }, undefined, 2);
  writeFileSync(join(root, path, 'package.json'), `${text}\n`);
}

function writeContact(contact) {
  const path = join(root, 'SECURITY.md');
  const text = readFileSync(path, 'utf8');
  const line = /^> \*\*Contact: .*\*\*$/m;
  if (!line.test(text)) throw new Error('SECURITY.md has no line "> **Contact: …**"');
  writeFileSync(
    path,
    text.replace(line, () => `> **Contact: ${contact}**`),
  );
}

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}
