import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createVitest } from 'vitest/node';
import { ofThisRun } from '../src/of-this-run.ts';

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
