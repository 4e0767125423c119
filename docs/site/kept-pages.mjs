// The pages that are kept in git: what is generated is left out.
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { generated } from './paths.mjs';

const left = new Set(['node_modules', '.vitepress', 'public', 'site', 'test']);

/** Paths of the Markdown files below a folder, relative to it. */
export function keptPages(folder) {
  const found = [];
  const walk = (path) => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const child = join(path, entry.name);
      if (Object.values(generated).includes(child) || left.has(entry.name)) continue;
      if (entry.isDirectory()) walk(child);
      else if (entry.name.endsWith('.md')) found.push(relative(folder, child));
    }
  };
  walk(folder);
  return found.sort();
}
