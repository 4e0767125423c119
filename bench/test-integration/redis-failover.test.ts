import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { redisAvailable } from '@incumbent/servers';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { expect, test } from 'vitest';

const program = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const missing =
  redisAvailable() ??
  serverAvailable() ??
  (existsSync(program) ? undefined : 'the benchmarks are not built');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

// Nothing is asked of the times, but that there are some.
test.skipIf(missing !== undefined)(
  'the short form moves a primary and finds what was written',
  async () => {
    const args = [program, 'redis-failover', '--quick', '--only', 'planned,bare', '--json'];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const figure = (start: string) => lines.find(({ name }) => name?.startsWith(start));
    expect(figure('planned failover: longest pause')).toMatchObject({ spread: { count: 2 } });
    expect(figure('acknowledged writes lost in 2')).toMatchObject({ value: 0 });
    expect(figure('floor: ')).toMatchObject({ spread: { count: 2 } });
    expect(lines.filter(({ kind }) => ['failed', 'wrong', 'skipped'].includes(kind))).toEqual([]);
  },
  180_000,
);
