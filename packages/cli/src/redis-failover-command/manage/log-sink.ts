import { isatty } from 'node:tty';
import { pino } from 'pino';
import type { LogSink } from '../context.ts';

/** Output that is kept while the reader does not read. More than that is dropped. */
const maxBytes = 1024 * 1024;
const endWithinMs = 1_000;
const stdoutFd = 1;

/**
 * Writes to stdout in the background. A pipe without a reader, or a terminal that was stopped with
 * Ctrl-S, must not keep a manager from its work.
 */
export function openStdoutLog(): LogSink {
  const stream = pino.destination({ fd: stdoutFd, sync: false, maxLength: maxBytes });
  let isBroken = false;
  // The reader or the terminal is gone. The manager goes on.
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
