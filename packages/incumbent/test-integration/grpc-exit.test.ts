/** Processes that follow a leader end by themselves: nothing of ours keeps them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { file } from '../src/backends/file/index.ts';
import { versions } from './support/grpc-ledger.ts';
import { GrpcStage } from './support/grpc-stage.ts';

const script = fileURLToPath(new URL('./support/grpc-process.mjs', import.meta.url));
const modules: Readonly<Record<string, string>> = {
  '1.14': '@grpc/grpc-js',
  '1.13': 'grpc-js-1.13',
};

describe.concurrent.each(versions)('a process with grpc-js %s', (version, grpc) => {
  test.for([
    ['led', 'close'],
    ['led', 'forget'],
    ['vacant', 'close'],
    ['vacant', 'forget'],
  ] as const)(
    'ends by itself: an election that is %s, channels it does %s',
    async ([state, ending], context) => {
      const stage = new GrpcStage(context, grpc);
      const directory = await mkdtemp(join(tmpdir(), 'incumbent-grpc-'));
      stage.keep(() => rm(directory, { recursive: true, force: true }));
      const server = await stage.server('a');
      const leader = stage.election({
        name: 'billing',
        backend: file(directory),
        // The machine may stall for longer than a short lease, and then no candidate would lead.
        lease: '60s',
        candidate: { id: 'a', addresses: [server.address] },
      });
      if (state === 'led') {
        const term = await leader.campaign();
        stage.keep(() => term[Symbol.asyncDispose]());
      }
      const child = spawn(
        process.execPath,
        [script, modules[version] ?? '', directory, 'billing', ending],
        { stdio: ['ignore', 'pipe', 'pipe'] },
      );
      stage.keep(() => child.kill('SIGKILL'));
      const exited = once(child, 'exit');
      const output = await Promise.all([text(child.stdout), text(child.stderr), exited]);
      const expected = state === 'led' ? 'a' : 'nobody leads election "billing" at the moment';
      expect(output).toEqual([
        JSON.stringify({ answers: Array.from({ length: 10 }, () => expected), open: [] }),
        '',
        [0, null],
      ]);
    },
  );
});
