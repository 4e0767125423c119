import { readFile } from 'node:fs/promises';

const tables = ['/proc/net/tcp', '/proc/net/tcp6'];
const listens = '0A';

/**
 * Whether a process of this machine listens at the port, as kill-listener.ts looks for it.
 * @returns undefined where that cannot be seen
 */
export async function isListenedAt(port: number): Promise<boolean | undefined> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const found = await Promise.all(tables.map((table) => readFile(table, 'latin1').catch(() => '')));
  if (found[0] === '') return undefined;
  return found
    .flatMap((text) => text.split('\n'))
    .some((line) => {
      const [, local, , state] = line.trim().split(/\s+/);
      return state === listens && local?.endsWith(`:${hex}`) === true;
    });
}
