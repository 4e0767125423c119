import { open } from 'node:fs/promises';

const tables = ['/proc/net/tcp', '/proc/net/tcp6'];
const listens = '0A';

/**
 * The sockets of this machine that listen at the port, by their numbers, as kill-listener.ts looks for
 * them. A process that is started again has another socket.
 * @returns undefined where that cannot be seen
 */
export async function listenersAt(port: number): Promise<readonly string[] | undefined> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const [found, found6] = await Promise.all(
    tables.map((table) => listenersIn(table, `:${hex}`).catch(() => undefined)),
  );
  return found && [...found, ...(found6 ?? [])];
}

/** proc_net_tcp(5): sl local_address rem_address st … uid timeout inode */
async function listenersIn(table: string, end: string): Promise<readonly string[]> {
  const found: string[] = [];
  const file = await open(table);
  try {
    const buffer = Buffer.alloc(65_536);
    for (let rest = ''; ; ) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) return found;
      const lines = (rest + buffer.toString('latin1', 0, bytesRead)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
        if (state === 'st') continue;
        // Those that listen come first. There may be many thousands of others.
        if (state !== listens) return found;
        if (local.endsWith(end)) found.push(inode);
      }
    }
  } finally {
    await file.close();
  }
}
