#!/usr/bin/env node
// Everything here is loaded by every command, also by `incumbent-zk --help`: keep it small.
import { ProcessHost } from '../terminal/process.ts';
import type { Host } from './context.ts';
import { main } from './main.ts';

class ZooKeeperHost extends ProcessHost implements Host {
  stdin(): AsyncIterable<Uint8Array> {
    return process.stdin;
  }
}

const host = new ZooKeeperHost('incumbent-zk');
void main(process.argv.slice(2), host).then((code) => host.end(code));
