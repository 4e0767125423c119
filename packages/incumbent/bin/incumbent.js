#!/usr/bin/env node
// The library carries no runtime dependency, so its command only hands over to @incumbent/cli.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** @returns {string | undefined} where the real command is */
function locate() {
  try {
    return import.meta.resolve('@incumbent/cli/bin');
  } catch {
    // Layouts that isolate packages (pnpm) hide it from us but not from the project we run in.
  }
  try {
    const fromProject = createRequire(join(process.cwd(), 'package.json'));
    return pathToFileURL(fromProject.resolve('@incumbent/cli/bin')).href;
  } catch {
    return undefined;
  }
}

const command = locate();
if (command === undefined) {
  console.error('The incumbent command lives in @incumbent/cli. Install it with:');
  console.error('npm install @incumbent/cli');
  process.exitCode = 69; // EX_UNAVAILABLE
} else {
  await import(command);
}
