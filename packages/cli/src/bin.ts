#!/usr/bin/env node
// Everything here is loaded by every command, also by `incumbent --help`: keep it small.
import { commands } from './command-table.ts';
import type { Host } from './context.ts';
import { main } from './main.ts';

// Whoever read our output is gone (`incumbent watch | head -1`): there is nobody left to tell.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
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
  async openStore(url) {
    const { openStore } = await import('./open-store.ts');
    return openStore(url, { env: process.env, cwd: process.cwd(), platform: process.platform });
  },
};

void main(process.argv.slice(2), commands, host).then((code) => {
  // Forced, because a store that hangs would keep us; but not before everything is written.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
});
