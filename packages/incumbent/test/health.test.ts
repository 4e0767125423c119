// When a candidate counts as healthy.
import { expect, test } from 'vitest';
import { resolveTiming } from '../src/base/timing.ts';
import type { HealthOptions } from '../src/core/health.ts';
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
  return { clock, gate, seen, end };
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

test.each<[Pick<HealthOptions, 'every' | 'timeout'>, boolean]>([
  [{ every: 10, timeout: 10 }, true],
  [{ every: 10 }, true],
  [{ every: 9, timeout: 10 }, false],
  [{ every: 10, timeout: 9 }, false],
])('a check every 10 ms, with a limit of 10 ms, is the shortest: %j', (given, isTaken) => {
  const clock = new SimulatedClock();
  const scope = {
    ...{ election: 'jobs', clock, timing: resolveTiming(), random: () => 0.5 },
    ...{ uniqueId: () => 'id', onTrouble: () => {} },
  };
  const make = () =>
    new HealthGate({ check: () => true, ...given }, scope, { election: 'jobs', candidate: 'a' });
  if (isTaken) expect(make).not.toThrow();
  else expect(make).toThrow('health.every and health.timeout must be 10 ms or longer');
});

test('a caller that has given up already hears that, and not how healthy the process is', async () => {
  const { clock, gate, end } = setUp(1, true);
  await clock.advance(0);
  let reason: unknown;
  gate.until(true, AbortSignal.abort(new Error('enough'))).catch((error: unknown) => {
    reason = error;
  });
  await clock.advance(0);
  expect(reason).toMatchObject({ message: 'enough' });
  await end();
});

test.each([0, -1, 1.5, Number.NaN, '2'])('failures: %j is refused, with the value', (failures) => {
  const clock = new SimulatedClock();
  const scope = {
    ...{ election: 'jobs', clock, timing: resolveTiming(), random: () => 0.5 },
    ...{ uniqueId: () => 'id', onTrouble: () => {} },
  };
  const options = { check: () => true, failures } as unknown as HealthOptions;
  const make = () => new HealthGate(options, scope, { election: 'jobs', candidate: 'a' });
  expect(make).toThrow('health.failures must be a whole number from 1, not');
});
