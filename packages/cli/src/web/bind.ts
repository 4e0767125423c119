import type { AddressInfo, Server } from 'node:net';
import { CommandError, exitCodes } from '../failure.ts';
import type { ListenAddress } from '../options.ts';

/**
 * Listens at an address that the user has given by `--listen`.
 * @returns HOST:PORT as URLs have it
 * @throws CommandError when it cannot be listened on
 */
export async function bind(server: Server, { host, port }: ListenAddress): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'somebody listens there already' : error.message;
      reject(
        new CommandError('CANNOT_LISTEN', exitCodes.usage, `--listen ${host}:${port}: ${why}`),
      );
    });
    server.listen(port, host, resolve);
  });
  // Later errors are of single connections.
  server.on('error', () => {});
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return `${shown}:${bound.port}`;
}
