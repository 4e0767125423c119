/** As much of a socket of `node:net` as is needed here: users need no types of Node for it. */
export interface ResettableSocket {
  readonly connecting: boolean;
  readonly destroyed: boolean;
  readonly writableEnded: boolean;
  destroy(): unknown;
  resetAndDestroy(): unknown;
}

/**
 * Closes a TCP socket at once with a reset, if that is possible: bytes that the kernel has not sent
 * yet are discarded. A socket that is connecting has nothing to reset. A socket whose own side was
 * ended must not be reset. Node would leave its handle open, and spin for ever at the exit of the
 * process.
 */
export function resetSocket(socket: ResettableSocket): void {
  if (socket.connecting || socket.destroyed || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
