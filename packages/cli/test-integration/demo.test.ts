import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { cliFile } from '../src/trial/candidate-process.ts';
import { processesOf } from '../src/trial/processes.ts';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'demo-test-'));
});

afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

/** Runs the demo without a terminal, in a temporary directory of its own. */
function demo(options: readonly string[], onText: (text: string, pid: number) => void = () => {}) {
  const child = spawn(process.execPath, [cliFile, 'demo', ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // Without a home, as in a container: the demo does not use the default store.
    env: { PATH: process.env['PATH'], TMPDIR: directory },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      onText(text, child.pid!);
    });
  }
  return new Promise<{ code: number | null; output: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, output }));
  });
}

it('plays to its end and finds 0 overlaps', async () => {
  const { code, output } = await demo([]);
  expect(output).toMatch(
    /leads\n.*killed \(SIGKILL\)\n.*leads after .* s\n.*frozen \(SIGSTOP\)\n.*leads after .* s\n.*thawed \(SIGCONT\)\n.*it finds its term over, and waits\n.*asked to resign\n.*leads after .* s\n.* effects of 4 terms in the fenced log: 0 overlaps\n$/,
  );
  expect(code).toBe(0);
  expect(readdirSync(directory)).toEqual([]);
});

it.each(['SIGINT', 'SIGTERM'] as const)('leaves nothing behind after %s', async (signal) => {
  let log = '';
  const { code, output } = await demo(['--json'], (text, pid) => {
    // While a candidate is frozen: it has to be woken or killed, too.
    if (!text.includes('"frozen"')) return;
    log = join(directory, readdirSync(directory)[0]!, 'fenced.log');
    expect(processesOf(log).length).toBeGreaterThan(5);
    process.kill(pid, signal);
  });
  const lines = output.trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual([
    ...['leads', 'killed', 'leads', 'frozen'],
  ]);
  expect(code).toBe(signal === 'SIGINT' ? 130 : 143);
  expect(log).not.toBe('');
  expect(processesOf(log)).toEqual([]);
  expect(readdirSync(directory)).toEqual([]);
});
