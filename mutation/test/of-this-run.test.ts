import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createVitest } from 'vitest/node';
import { hasFailed, ofThisRun } from '../src/of-this-run.ts';

// A run of vitest in which a test fails leaves its exit code to the process.
let exitCode: typeof process.exitCode;
beforeEach(() => {
  exitCode = process.exitCode;
});
afterEach(() => {
  process.exitCode = exitCode;
});

const fixture = fileURLToPath(new URL('fixtures/failing-tests', import.meta.url));

test('a file that failed in the run before does not count as failed in this one', async () => {
  const vitest = await createVitest('test', {
    ...{ root: fixture, config: false, watch: false, reporters: [{}] },
    include: ['*.fixture.ts'],
  });
  try {
    const [project] = vitest.projects;
    const run = async (name: string) => {
      const asked = [project!.createSpecification(`${fixture}/${name}.fixture.ts`)];
      const { testModules } = await vitest.runTestSpecifications(asked);
      const states = (modules: typeof testModules) => modules.map((module) => module.state());
      return { all: states(testModules), own: states([...ofThisRun(testModules, asked)]) };
    };
    expect((await run('fails')).own).toEqual(['failed']);
    const second = await run('passes');
    expect(second.own).toEqual(['passed']);
    // Else this test would say nothing.
    expect(second.all).toContain('failed');
  } finally {
    await vitest.close();
  }
});

test('a file whose first failure has ended the run counts as failed', async () => {
  const vitest = await createVitest('test', {
    ...{ root: fixture, config: false, watch: false, reporters: [{}] },
    ...{ include: ['*.fixture.ts'], bail: 1 },
  });
  try {
    const [project] = vitest.projects;
    const asked = [project!.createSpecification(`${fixture}/fails-beside-others.fixture.ts`)];
    const { testModules } = await vitest.runTestSpecifications(asked);
    expect(testModules.map(hasFailed)).toEqual([true]);
    // Else this test would say nothing.
    expect(testModules.map((module) => module.state())).toEqual(['pending']);
  } finally {
    await vitest.close();
  }
});
