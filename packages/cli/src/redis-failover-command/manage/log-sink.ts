import { isatty } from 'node:tty';
import { pino } from 'pino';
import type { LogSink } from '../context.ts';

/** Kept for a reader that does not read; what comes on top is dropped. */
const maxBytes = 1024 * 1024;
const endWithinMs = 1_000;
const stdoutFd = 1;

/**
 * Stdout, written to in the background: a pipe that nobody reads, or a terminal that was stopped with
 * Ctrl-S, must not keep a manager from its work.
 */
export function openStdoutLog(): LogSink {
  const stream = pino.destination({ fd: stdoutFd, sync: false, maxLength: maxBytes });
  let isBroken = false;
  // Whoever read is gone, or the terminal is: the manager goes on.
  stream.on('error', () => {
    isBroken = true;
  });
  return {
    isTerminal: isatty(stdoutFd),
    write(line) {
      if (!isBroken) stream.write(line);
    },
    async end() {
      if (isBroken) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, endWithinMs);
        const done = () => {
          clearTimeout(timer);
          resolve();
        };
        stream.once('error', done);
        stream.flush(done);
      });
    },
  };
}
