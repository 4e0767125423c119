#!/usr/bin/env node
// Everything here is loaded by every command, also by `incumbent --help`: keep it small.
import { commands } from './command-table.ts';
import type { Host } from './context.ts';
import { exitCodes } from './failure.ts';
import { main } from './main.ts';

/** How long what is still going on may take to end by itself. */
const hangingMs = 500;

// Deprecated calls in drivers are for us to fix. A warning on stderr does not help the user.
if (!process.env['INCUMBENT_DEBUG']) process.noDeprecation = true;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of our output is gone (`incumbent watch | head -1`): it cannot be told.
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`incumbent: the output cannot be written: ${error.message}\n`);
  process.exit(exitCodes.output);
});
process.stderr.on('error', () => {});

const host: Host = {
  env: process.env,
  cwd: process.cwd(),
  platform: process.platform,
  stdout: process.stdout,
  stderr: process.stderr,
  onSignal(name, listener) {
    process.on(name, listener);
    return () => process.off(name, listener);
  },
  exit: (code) => process.exit(code),
  async openStore(url, needs) {
    const { openStore } = await import('./open-store.ts');
    const { env, platform } = process;
    return openStore(url, needs, { env, cwd: process.cwd(), platform });
  },
};

void main(process.argv.slice(2), commands, host).then((code) => {
  process.exitCode = code;
  process.stdout.write('', () =>
    process.stderr.write('', () => {
      // Everything is written. Only work that hangs is left, such as a write to a dead disk.
      setTimeout(() => process.exit(), hangingMs).unref();
    }),
  );
});
