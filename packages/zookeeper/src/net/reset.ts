import type { Socket } from 'node:net';

/**
 * Closes a TCP socket at once with a reset, where that is possible: what the kernel has not sent yet
 * is thrown away. One that is connecting has nothing to reset. One whose side was ended must not be:
 * Node would then leave its handle open, and spin for ever at the exit of the process.
 */
export function resetSocket(socket: Socket): void {
  if (socket.connecting || socket.destroyed || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
