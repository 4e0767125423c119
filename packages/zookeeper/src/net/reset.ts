/** Of Node's `Socket`. Without its name users need no types of Node. */
export interface ResettableSocket {
  readonly connecting: boolean;
  readonly destroyed: boolean;
  readonly writableEnded: boolean;
  destroy(): unknown;
  resetAndDestroy(): unknown;
}

/**
 * Closes a TCP socket at once with a reset, where that is possible: what the kernel has not sent yet
 * is thrown away. One that is connecting has nothing to reset. One whose side was ended must not be:
 * Node would then leave its handle open, and spin for ever at the exit of the process.
 */
export function resetSocket(socket: ResettableSocket): void {
  if (socket.connecting || socket.destroyed || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
