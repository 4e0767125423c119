#!/usr/bin/env node
// Everything here is loaded by every command, also by `incumbent --help`: keep it small.
import { commands } from './command-table.ts';
import type { Host } from './context.ts';
import { main } from './main.ts';
import { ProcessHost } from './terminal/process.ts';

class IncumbentHost extends ProcessHost implements Host {
  async openStore(...[url, needs]: Parameters<Host['openStore']>): ReturnType<Host['openStore']> {
    const { openStore } = await import('./open-store.ts');
    const { env, cwd, platform } = this;
    return openStore(url, needs, { env, cwd, platform });
  }
}

const host = new IncumbentHost('incumbent');
void main(process.argv.slice(2), commands, host).then((code) => host.end(code));
