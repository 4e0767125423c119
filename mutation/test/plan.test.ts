import { expect, test } from 'vitest';
import type { Plan } from '../src/plan.ts';
import { isTestOf } from '../src/plan.ts';

const plan: Plan = {
  root: '/repo',
  tests: undefined,
  processes: 1,
  sources: { '/repo/packages/redis-failover/src/layout.ts': '' },
  noteReached: '',
};

test.each([
  ['unit', 'packages/cli/test/a.test.ts', true],
  ['integration', 'packages/redis-failover/test-integration/a.test.ts', true],
  ['integration', 'packages/redis/test-integration/a.test.ts', false],
  ['integration', 'examples/test-integration/a.test.ts', false],
] as const)('of the %s tests, %s is asked: %s', (suite, path, isAsked) => {
  expect(isTestOf(plan, suite, `/repo/${path}`)).toBe(isAsked);
});
