// Runs in a package before `npm pack` and `npm publish`. A package ships its code without comments.
// It ships only the types that an import of the package leads to, which is half of what is built.
// The comments of the public API are in the types.
//
// Both changes leave the build as it is for this repository: it still runs, and `tsc -b` compiles
// nothing anew.
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { parse } from '@babel/parser';

const dist = 'dist';
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const built = filesBelow(dist);
const modules = filesBelow('src')
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -'.ts'.length));

for (const name of modules) stripComments(join(dist, `${name}.js`));
const shipped = new Set([...modules.map((name) => `${name}.js`), ...typesThatAreReached()]);
// npm reads it, and does not pack it.
const left = built.filter((file) => !shipped.has(file));
writeFileSync(join(dist, '.npmignore'), left.map((file) => `/${file}\n`).join(''));

function filesBelow(directory) {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => statSync(join(directory, file)).isFile());
}

/** Relative to `dist`. @throws Error when a type is missing */
function typesThatAreReached() {
  const waiting = Object.values(manifest.exports).flatMap(({ types }) =>
    types === undefined ? [] : [posix.relative(dist, types)],
  );
  const reached = new Set(waiting);
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const text = readFileSync(join(dist, file), 'utf8');
    for (const [, specifier] of text.matchAll(/\b(?:from|import)\b\s*\(?\s*['"](\.[^'"]+)['"]/g)) {
      const next = posix.join(dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts'));
      if (reached.has(next)) continue;
      reached.add(next);
      waiting.push(next);
    }
  }
  return reached;
}

/** Another process may read the file meanwhile: it sees the old one or the new one. */
function stripComments(path) {
  const text = readFileSync(path, 'utf8');
  const { comments, tokens } = read(text);
  if (comments.length === 0) return;
  const stripped = withoutComments(text, comments);
  const kept = read(stripped).tokens;
  if (kept.length !== tokens.length || kept.some((token, i) => token !== tokens[i])) {
    throw new Error(`${path} would be other code without its comments`);
  }
  writeFileSync(`${path}.stripped`, stripped, { mode: statSync(path).mode });
  renameSync(`${path}.stripped`, path);
}

function read(text) {
  const { comments, tokens } = parse(text, { sourceType: 'module', tokens: true });
  const ofCode = tokens.filter(({ type }) => typeof type !== 'string');
  return { comments, tokens: ofCode.map(({ start, end }) => text.slice(start, end)) };
}

/** Nothing else is changed: a template may hold empty lines. */
function withoutComments(text, comments) {
  let result = '';
  let at = 0;
  for (const { start, end } of comments) {
    result += text.slice(at, start);
    at = end;
    const isFirst = /(^|\n)[ \t]*$/.test(result);
    const isLast = text[end] === undefined || text[end] === '\n';
    if (isLast) result = result.replace(/[ \t]+$/, '');
    if (isFirst && isLast) at += 1;
    else if (!isLast) result += ' '; // what stood apart must not become one word
  }
  return result + text.slice(at);
}
