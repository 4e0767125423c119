#!/usr/bin/env node
// Everything here is loaded by every command, also by `incumbent-redis --help`: keep it small.
import { commands } from './command-table.ts';
import type { Host } from './context.ts';
import { exitCodes } from './failure.ts';
import { main } from './main.ts';

/** How long what is still going on may take to end by itself. */
const hangingMs = 500;

// What drivers do that Node deprecates is our business, and not that of whoever reads stderr.
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

/** Touched only by who writes there: Node sets its descriptor to non-blocking, and the log has its own. */
function stdout(): NodeJS.WriteStream {
  if (!isWatched) {
    isWatched = true;
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      // Whoever read our output is gone (`incumbent-redis watch | head -1`): nobody is left to tell.
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
      // Everything is written, and nothing is left to do but what hangs, such as a dead server.
      setTimeout(() => process.exit(), hangingMs).unref();
    });
  if (isLogging) end();
  else stdout().write('', end);
});
