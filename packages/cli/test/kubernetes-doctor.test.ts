import { expect, test } from 'vitest';
import { rightsFinding } from '../src/doctor/kubernetes.ts';
import { serverClockFinding } from '../src/doctor/server-clock.ts';

const rights = (change: Readonly<Record<string, boolean | undefined>>) =>
  new Map(Object.entries({ get: true, create: true, update: true, watch: true, ...change }));

test.each([
  [{}, 'ok', 'we may get, create, update, watch leases of the namespace "ops"'],
  [
    { update: false },
    'broken',
    'we may not update leases of the namespace "ops": `incumbent schema',
  ],
  [{ update: false, watch: false }, 'broken', 'we may not update, watch leases'],
  [
    { watch: false },
    'warn',
    'we may not watch leases of the namespace "ops", so that changes are found by polling',
  ],
  [{ get: undefined }, 'note', 'the server does not say what we may do'],
])('rights with %j', (change, level, words) => {
  const finding = rightsFinding('ops', rights(change));
  expect(finding).toMatchObject({
    check: 'rights',
    level,
    message: expect.stringContaining(words),
  });
});

test.each([
  [0, 0, 'note', /^the clock of the server is .* ours \(± \S+\); it is of no use$/],
  [-3_600_000, 0, 'warn', /1h behind ours .*: set one of them right; it is of no use$/],
  [3_600_000, 0, 'warn', /1h ahead of ours/],
  // Whole seconds say less.
  [0, 1_000, 'note', /± 50\dms/],
])('a clock that is off by %i ms, told to %i ms', async (offMs, coarseMs, level, words) => {
  const ask = async () => {
    const now = Date.now() + offMs;
    return coarseMs === 0 ? now : Math.floor(now / coarseMs) * coarseMs;
  };
  const finding = await serverClockFinding(ask, 'it is of no use', coarseMs);
  expect(finding).toMatchObject({ check: 'clock', level });
  expect(finding.message).toMatch(words);
});
