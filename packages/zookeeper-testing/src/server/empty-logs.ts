import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Removes transaction logs that hold nothing. A server that is killed while it begins a log leaves one, and then
 * refuses to start: it cannot read the head of the file.
 */
export async function removeEmptyLogs(dataDirectory: string): Promise<void> {
  const folder = join(dataDirectory, 'version-2');
  // There is none before the first start.
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((each) => each.startsWith('log.'))) {
    const path = join(folder, name);
    const { size } = await stat(path);
    if (size === 0) await rm(path);
  }
}
