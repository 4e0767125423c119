import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { resetSocket } from '../src/net/reset.ts';

it.each([
  ['in use', (_: Socket) => {}],
  ['whose side was ended', (socket: Socket) => void socket.end()],
])('a socket %s is closed, and its handle too', async (_, before) => {
  const server = createServer((peer) => peer.on('error', () => {}).resume());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  before(socket);
  // The end is sent only in the next turn.
  await new Promise((resolve) => process.nextTick(resolve));
  const closed = once(socket, 'close');
  resetSocket(socket);
  await closed;
  expect(socket.destroyed).toBe(true);
  server.close();
  await once(server, 'close');
});
