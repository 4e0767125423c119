#!/usr/bin/env node
// Everything here is loaded by every command, also by `incumbent-redis --help`: keep it small.
import { commands } from './command-table.ts';
import type { Host } from './context.ts';
import { exitCodes } from './failure.ts';
import { main } from './main.ts';

/** How long pending work may take to end by itself. */
const hangingMs = 500;

// Deprecated calls of drivers are our business. A reader of stderr cannot change them.
if (!process.env['INCUMBENT_DEBUG']) process.noDeprecation = true;
process.stderr.on('error', () => {});
let isLogging = false;

const host: Host = {
  env: process.env,
  cwd: process.cwd(),
  get stdout() {
    return stdout();
  },
  stderr: process.stderr,
  async openLog() {
    isLogging = true;
    const { openStdoutLog } = await import('./manage/log-sink.ts');
    return openStdoutLog();
  },
  onSignal(name, listener) {
    process.on(name, listener);
    return () => process.off(name, listener);
  },
  exit: (code) => process.exit(code),
};

let isWatched = false;

/**
 * Used only by commands that write there: Node sets its descriptor to non-blocking, and the log has
 * its own.
 */
function stdout(): NodeJS.WriteStream {
  if (!isWatched) {
    isWatched = true;
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      // The reader of our output is gone (`incumbent-redis watch | head -1`), so there is nothing
      // left to do.
      if (error.code === 'EPIPE') process.exit(0);
      process.stderr.write(`incumbent-redis: the output cannot be written: ${error.message}\n`);
      process.exit(exitCodes.output);
    });
  }
  return process.stdout;
}

void main(process.argv.slice(2), commands, host).then((code) => {
  process.exitCode = code;
  const end = () =>
    process.stderr.write('', () => {
      // Everything is written. Only work that hangs is left, such as a connection to a dead server.
      setTimeout(() => process.exit(), hangingMs).unref();
    });
  if (isLogging) end();
  else stdout().write('', end);
});
