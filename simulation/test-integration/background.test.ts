import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const program = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const seeds = ['--mechanism', 'lease', '--seeds', '100'];

function start(...args: string[]) {
  const child = spawn(process.execPath, [program, ...seeds, ...args], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return { child, exited: once(child, 'exit') };
}

/** How many threads of a process have the lowest priority. */
function lowest(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const stats = readdirSync(tasks).flatMap((task) => {
    try {
      return [readFileSync(join(tasks, task, 'stat'), 'utf8')];
    } catch {
      return []; // It has ended.
    }
  });
  // The name, in brackets, may contain spaces.
  return stats.filter((stat) => stat.slice(stat.lastIndexOf(')')).split(' ')[17] === '19').length;
}

test.skipIf(process.platform !== 'linux')(
  'seeds run at the lowest priority until the input ends, and take the same course then',
  async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'incumbent-background-'));
    onTestFinished(() => rmSync(scratch, { recursive: true, force: true }));
    const [early, late] = [join(scratch, 'early'), join(scratch, 'late')];
    const { child, exited } = start('--background', '--hashes', late);
    const pid = child.pid as number;
    while (lowest(pid) === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    child.stdin?.end();
    while (child.exitCode === null && lowest(pid) > 0) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    // It did not take all seeds to be heard.
    expect(child.exitCode).toBe(null);
    expect(await exited).toEqual([0, null]);
    const plain = start('--hashes', early);
    expect(await plain.exited).toEqual([0, null]);
    expect(readFileSync(late, 'utf8')).toBe(readFileSync(early, 'utf8'));
    expect(readFileSync(late, 'utf8').split('\n')).toHaveLength(101);
  },
);
