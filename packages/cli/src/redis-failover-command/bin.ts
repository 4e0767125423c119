#!/usr/bin/env node
// Everything here is loaded by every command, also by `incumbent-redis --help`: keep it small.
import { ProcessHost } from '../terminal/process.ts';
import { commands } from './command-table.ts';
import type { Host, LogSink } from './context.ts';
import { main } from './main.ts';

class RedisHost extends ProcessHost implements Host {
  async openLog(): Promise<LogSink> {
    const { openStdoutLog } = await import('./manage/log-sink.ts');
    return openStdoutLog();
  }
}

const host = new RedisHost('incumbent-redis');
void main(process.argv.slice(2), commands, host).then((code) => host.end(code));
