import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { etcdAvailable, postgresAvailable, redisAvailable } from '@incumbent/servers';
import { expect, test } from 'vitest';
import { contenders } from '../src/stores/messages.ts';

const program = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const missing =
  postgresAvailable() ??
  redisAvailable() ??
  etcdAvailable() ??
  (existsSync(program) ? undefined : 'the benchmarks are not built');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

// Nothing is asked of the numbers, but that there are some, and that nobody led beside another one.
test.skipIf(missing !== undefined)(
  'the short form hands over on every store, ours and theirs',
  async () => {
    const run = promisify(execFile);
    const only = 'hand-over,round-trips';
    const { stdout } = await run(process.execPath, [
      program,
      'stores',
      '--quick',
      '--only',
      only,
      '--json',
    ]);
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const figures = lines.filter(({ kind }) => kind === 'figure');
    for (const [name, { store }] of Object.entries(contenders)) {
      const figureNamed = (label: string) => figures.find((figure) => figure.name === label);
      expect(figureNamed(`hand-over: ${name}`), name).toMatchObject({ spread: { count: 2 } });
      if (store === 'file') continue;
      const trips = figureNamed(`round trips of a hand-over, counted: ${name}`);
      expect(trips?.value, name).toBeGreaterThanOrEqual(1);
    }
    expect(lines.filter(({ kind }) => ['failed', 'wrong', 'skipped'].includes(kind))).toEqual([]);
  },
  180_000,
);
