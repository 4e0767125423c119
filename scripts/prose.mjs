// Checks the prose of the pages and of the comments: `node scripts/prose.mjs [PATH…]`. A path is a
// file or a folder of the repository; without one, all that is kept in it. Ends with 1 when a rule is
// broken. `--counts` prints the numbers of each folder.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './lib/run.mjs';
import { blocksOf } from './prose/blocks.mjs';
import { commentsOf } from './prose/comments.mjs';
import { exceptions } from './prose/exceptions.mjs';
import { countsOf, faultsOf, limits } from './prose/rules.mjs';

const usage = 'node scripts/prose.mjs [--counts] [PATH…]';
const { values, positionals } = parse();
if (values.help) {
  console.log(`${usage}\n\n  --counts  prints the numbers of each folder`);
  process.exit(0);
}
const listed = execFileSync('git', ['ls-files', '-z', '--', ...positionals], { cwd: root });
const pages = /\.md$/;
const sources = /\.[cm]?[jt]s$/;
const paths = String(listed)
  .split('\0')
  .filter((path) => pages.test(path) || sources.test(path));
if (paths.length === 0) {
  console.error(`No page and no source is kept under ${positionals.join(', ')}.`);
  process.exit(2);
}

const unused = new Set(exceptions.filter(({ path }) => paths.includes(path)));
const totals = new Map();
let faults = 0;
for (const path of paths) {
  const text = readFileSync(join(root, path), 'utf8');
  const blocks = pages.test(path)
    ? blocksOf(text)
    : commentsOf(text, path).flatMap((comment) => blocksOf(comment.text, comment.line));
  const counts = totalsOf(path);
  for (const block of blocks) {
    for (const [name, count] of Object.entries(countsOf(block))) counts[name] += count;
    for (const { rule, sentence, why } of faultsOf(block)) {
      if (excepted(path, sentence)) continue;
      counts[rule] += 1;
      report(path, block.line, why, sentence);
    }
  }
  const lines = text.split('\n');
  for (const number of proseLines(blocks)) {
    const columns = [...(lines[number - 1] ?? '')].length;
    if (columns <= limits.columns || excepted(path, lines[number - 1])) continue;
    counts.columns += 1;
    report(path, number, `${columns} columns; a line has at most ${limits.columns}`, '');
  }
}
for (const { path, start } of unused) {
  faults += 1;
  console.log(`scripts/prose/exceptions.mjs: nothing in ${path} begins with "${start}" any more`);
}
if (values.counts) console.table(Object.fromEntries(totals));
const all = sum([...totals.values()]);
console.log(
  `${all.sentences} sentences, ${all.longSentences} over ${limits.wished} words; ` +
    `${all.cells} cells, ${all.longCells} over ${limits.cell} words; ${faults} faults`,
);
process.exitCode = faults === 0 ? 0 : 1;

function report(path, line, why, sentence) {
  faults += 1;
  const start = sentence.length > 100 ? `${sentence.slice(0, 99)}…` : sentence;
  console.log(`${path}:${line}: ${why}${start === '' ? '' : `: ${start}`}`);
}

function excepted(path, text) {
  const exception = exceptions.find((each) => each.path === path && text.startsWith(each.start));
  unused.delete(exception);
  return exception !== undefined;
}

/** Lines of tables and headings cannot be wrapped. */
function proseLines(blocks) {
  const numbers = new Set();
  for (const { kind, line, lastLine } of blocks) {
    if (kind !== 'prose') continue;
    for (let number = line; number <= lastLine; number += 1) numbers.add(number);
  }
  return numbers;
}

/** The counts of a folder: of a package, or of what stands beside the packages. */
function totalsOf(path) {
  const [, folder] = /^((?:packages\/)?[^/]+)\//.exec(path) ?? [undefined, 'the root'];
  if (!totals.has(folder)) totals.set(folder, empty());
  return totals.get(folder);
}

function empty() {
  return {
    sentences: 0,
    longSentences: 0,
    cells: 0,
    longCells: 0,
    sentence: 0,
    opening: 0,
    columns: 0,
  };
}

function sum(counts) {
  const all = empty();
  for (const each of counts) for (const name of Object.keys(all)) all[name] += each[name];
  return all;
}

function parse() {
  const options = { counts: { type: 'boolean', default: false }, help: { type: 'boolean' } };
  try {
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    console.error(`${error.message}\nUsage: ${usage}`);
    process.exit(2);
  }
}
