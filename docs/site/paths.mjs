// Where things are: the repository, the folder of the pages, and what is generated into it.
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const docs = resolve(dirname(fileURLToPath(import.meta.url)), '..');
export const repository = resolve(docs, '..');
export const built = join(docs, '.vitepress/dist');
/** Ignored by git. */
export const generated = {
  api: join(docs, 'reference/api'),
  commands: join(docs, 'reference/commands'),
  /** Files of the repository to which pages link. */
  repository: join(docs, 'repository'),
};
