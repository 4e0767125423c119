// Links are written for people who read the files in the repository. Here they are made links of
// the site. A page of docs/ is found where it is; any other file of the repository is a page below
// /repository/, which `repository-pages.mjs` makes.
import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path/posix';
import { repository } from './paths.mjs';

const prefix = 'repository/';

/** Where the source of a page is, seen from the root of the repository. */
function sourceOf(page) {
  return page.startsWith(prefix) ? page.slice(prefix.length) : `docs/${page}`;
}

/**
 * The file of the repository to which a link leads, or undefined: a link to elsewhere.
 *
 * @param {string} source the file with the link, seen from the root of the repository
 * @returns {{ file: string, anchor: string } | undefined}
 */
export function targetOf(source, href) {
  if (/^([a-z][a-z0-9+.-]*:|\/|#|$)/i.test(href)) return undefined;
  const [, path, anchor] = /^([^#]*)(#.*)?$/.exec(href);
  const file = normalize(join(dirname(source), decodeURI(path))).replace(/\/$/, '');
  const absolute = join(repository, file);
  if (file.startsWith('..') || !existsSync(absolute)) {
    throw new Error(`${source}: a link leads to ${file}, which does not exist`);
  }
  if (!statSync(absolute).isDirectory()) return { file, anchor: anchor ?? '' };
  const index = ['README.md', 'index.md'].find((name) => existsSync(join(absolute, name)));
  return { file: index === undefined ? file : `${file}/${index}`, anchor: anchor ?? '' };
}

/** The page of the site that shows a file or folder, as a path below the folder of the pages. */
export function pageOf(file) {
  if (file.startsWith('docs/') && file.endsWith('.md')) return file.slice('docs/'.length);
  // Pages in hidden folders would be left out of the site.
  const path = `${prefix}${file.replaceAll(/(^|\/)\.+/g, '$1')}`;
  return path.endsWith('.md') ? path : `${path}.md`;
}

/** A plugin of markdown-it. */
export function repositoryLinks(md) {
  md.core.ruler.push('repository-links', ({ tokens, env }) => {
    const page = env.relativePath;
    // Links of the API are TypeDoc's, from one of its pages to another.
    if (page === undefined || page.startsWith('reference/api/')) return;
    const source = sourceOf(page);
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === 'link_open') {
        const target = targetOf(source, token.attrGet('href'));
        if (target) token.attrSet('href', `/${pageOf(target.file)}${target.anchor}`);
      }
      if (token.type === 'image') {
        const target = targetOf(source, token.attrGet('src'));
        if (target) token.attrSet('src', picture(page, target.file));
      }
    }
  });
}

/** The bundler takes pictures by relative paths. */
function picture(page, file) {
  const path = relative(join('docs', dirname(page)), file);
  return path.startsWith('.') ? path : `./${path}`;
}
