// When a candidate counts as healthy.
import { expect, test } from 'vitest';
import { resolveTiming } from '../src/base/timing.ts';
import { HealthGate } from '../src/core/health.ts';
import { SimulatedClock } from '../src/testing/index.ts';

const everyMs = 100;

/** @param answers the results of one check after the other. The last one stays */
function setUp(failures: number, ...answers: readonly boolean[]) {
  const clock = new SimulatedClock();
  let checks = 0;
  const check = () => answers[Math.min(checks++, answers.length - 1)];
  const scope = {
    ...{ election: 'jobs', clock, timing: resolveTiming(), random: () => 0.5 },
    ...{ uniqueId: () => 'id', onTrouble: () => {} },
  };
  const gate = new HealthGate({ check, every: everyMs, failures }, scope, {
    ...{ election: 'jobs', candidate: 'a' },
  });
  const stop = new AbortController();
  const running = gate.run(stop.signal);
  const seen = { isSick: false };
  gate.until(false, stop.signal).then(
    () => {
      seen.isSick = true;
    },
    () => {},
  );
  const end = async () => {
    stop.abort();
    await running;
    expect(clock.pendingTimers).toBe(0);
  };
  return { clock, seen, end };
}

test('a healthy candidate stays so until as many checks in a row have failed as it allows', async () => {
  const { clock, seen, end } = setUp(3, true, false, false, true, false, false, false);
  await clock.advance(5 * everyMs);
  expect(seen.isSick).toBe(false);
  await clock.advance(everyMs);
  expect(seen.isSick).toBe(true);
  await end();
});

test('a candidate that has never been healthy is not after its first check has failed', async () => {
  const { clock, seen, end } = setUp(3, false);
  await clock.advance(0);
  expect(seen.isSick).toBe(true);
  await end();
});
