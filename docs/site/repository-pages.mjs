// Files outside of docs/ to which pages link become pages. Markdown stays as it is, another file
// becomes code, and a folder becomes the list of its files.
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import MarkdownIt from 'markdown-it';
import { keptPages } from './kept-pages.mjs';
import { pageOf, targetOf } from './links.mjs';
import { docs, generated, repository } from './paths.mjs';

const markdown = new MarkdownIt({ html: true });

/** Pages of the sidebar, whether a page links to them or not. */
const always = [
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'README.md',
  'SECURITY.md',
  'packages/incumbent/README.md',
  'packages/redis-failover/ARCHITECTURE.md',
  'packages/zookeeper/ARCHITECTURE.md',
  'packages/zookeeper/README.md',
  'packages/zookeeper-testing/README.md',
  'simulation/README.md',
  'chaos/README.md',
];

/** @returns how many pages were made */
export function makeRepositoryPages() {
  rmSync(generated.repository, { recursive: true, force: true });
  const seen = new Set(always);
  const waiting = [...keptPages(docs).map((page) => `docs/${page}`), ...always];
  let made = 0;
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const text = textOf(file);
    const isPage = file.endsWith('.md');
    for (const next of isPage ? linkedFiles(file, text) : []) {
      if (seen.has(next)) continue;
      seen.add(next);
      waiting.push(next);
    }
    if (isPage && file.startsWith('docs/')) continue;
    const path = join(docs, pageOf(file));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, isPage ? text : codePage(file, text));
    made += 1;
  }
  return made;
}

function textOf(file) {
  const path = join(repository, file);
  return statSync(path).isDirectory()
    ? readdirSync(path).sort().join('\n')
    : readFileSync(path, 'utf8');
}

/** Pictures are the bundler's. */
function linkedFiles(file, text) {
  return markdown
    .parse(text, {})
    .flatMap(({ children }) => children ?? [])
    .filter(({ type }) => type === 'link_open')
    .map((link) => targetOf(file, link.attrGet('href'))?.file)
    .filter((target) => target !== undefined && !isShown(target));
}

function isShown(file) {
  return file.startsWith('docs/') && file.endsWith('.md');
}

const languages = { mjs: 'js', mts: 'ts', proto: 'proto', yml: 'yaml' };

function codePage(file, text) {
  const extension = extname(file).slice(1);
  const language = languages[extension] ?? extension;
  return `---\nsearch: false\noutline: false\n---\n\n# ${file}\n\n\`\`\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\`\`\n`;
}
