#!/usr/bin/env node
import type { Host } from './cli/context.ts';
import { main } from './cli/main.ts';

/** How long what is still going on may take to end by itself. */
const hangingMs = 500;

process.stderr.on('error', () => {});
// Also when nobody listens any more: an error of the last write comes late.
process.stdout.on('error', () => {});

const host: Host = {
  env: process.env,
  stdin: () => process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  onSignal(name, listener) {
    process.on(name, listener);
    return () => process.off(name, listener);
  },
  onOutputError(listener) {
    process.stdout.on('error', listener);
    return () => process.stdout.off('error', listener);
  },
  exit: (code) => process.exit(code),
};

void main(process.argv.slice(2), host).then((code) => {
  process.exitCode = code;
  process.stdout.write('', () =>
    process.stderr.write('', () => {
      // Everything is written; what is left may hang, such as a stdin that nobody closes.
      setTimeout(() => process.exit(), hangingMs).unref();
    }),
  );
});
