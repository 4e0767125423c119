// For comparison: kazoo's Semaphore with three leases, under the strikes of seats.test.ts. It prints
// how many terms began while three others held. Only with SEATS_STRIKES.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startServer } from '@incumbent/zookeeper-testing';
import { expect, test } from 'vitest';
import { Crew, judge, strike } from './support/seats-crew.ts';
import { missing as noZooKeeper } from './support/zookeeper.ts';

const python = '/usr/bin/python3';
const program = fileURLToPath(new URL('./support/kazoo-semaphore.py', import.meta.url));
const wanted = process.env['SEATS_STRIKES'];
const strikes = Number(wanted ?? 0);
const isThere =
  wanted !== undefined &&
  noZooKeeper === undefined &&
  spawnSync(python, ['-c', 'import kazoo']).status === 0;

test.skipIf(!isThere)(
  'holders of a semaphore of kazoo are killed and frozen: how often more than three hold it',
  { timeout: 120_000 + strikes * 60_000 },
  async () => {
    const server = await startServer({ tickTimeMs: 200 });
    const crew = new Crew([python, program, `127.0.0.1:${server.port}`]);
    try {
      const tookMs = await strike(crew, strikes);
      const { most, beyondThree } = judge([...crew.terms.values()]);
      expect(most).toBeGreaterThanOrEqual(3);
      console.log(
        `kazoo: ${strikes} strikes, at most ${most} holders, ${beyondThree} terms began beyond three; ` +
          `three again after ${tookMs[0]} to ${tookMs.at(-1)} ms`,
      );
    } finally {
      await crew.close();
      await server.close();
    }
  },
);
