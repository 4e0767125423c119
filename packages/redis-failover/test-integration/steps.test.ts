// A manager that is suspended or killed in the middle of a move, at every step of it. By default
// half of the combinations; all of them with INCUMBENT_REDIS_ALL=1.
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { managerSteps } from '../src/manager/events.ts';
import type { NodeAddress } from '../src/node-address.ts';
import type { ManagerProcess, StepName } from './support/manager-process.ts';
import { missing, useZooKeeper } from './support/servers.ts';
import { Stage } from './support/stage.ts';
import type { Writer } from './support/writer.ts';

const zooKeeper = useZooKeeper();
const steps: readonly StepName[] = managerSteps.flatMap(
  (step) => [`before ${step}`, `after ${step}`] as const,
);
type Primary = 'was killed' | 'answers';
const everything = process.env['INCUMBENT_REDIS_ALL'] === '1';
const primaries = (first: Primary, second: Primary) => (everything ? [first, second] : [first]);

describe.skipIf(missing !== undefined).concurrent('in the middle of a move', () => {
  for (const primary of primaries('was killed', 'answers')) {
    test.for(steps)(
      `from a primary that ${primary} a manager stands still %s, and goes on later`,
      async (step, context) => {
        const scene = await open(context, step, 'SIGSTOP', primary);
        const { stage, writer, former } = scene;
        await carriedOn(scene);
        const reign = await stage.reign();
        former.thaw();
        await former.story.told('ousted');
        await stage.formed();
        await writer.writes();
        // It has not done what it was about to do.
        expect(await stage.reign()).toEqual(reign);
        await stage.verdict(writer);
      },
    );
  }

  for (const primary of primaries('answers', 'was killed')) {
    test.for(steps)(
      `from a primary that ${primary} a manager is killed %s`,
      async (step, context) => {
        const scene = await open(context, step, 'SIGKILL', primary);
        await carriedOn(scene);
        await scene.stage.verdict(scene.writer);
      },
    );
  }
});

describe.skipIf(missing !== undefined).concurrent('right after it was sure of its term', () => {
  const broken = ['no-assert'] as const;

  test('a manager stands still, and changes no Redis when it goes on', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 3 });
    const stopAt = 'before redirect';
    const former = await stage.managerProcess('former', { stopAt, by: 'SIGSTOP', broken });
    await former.story.told('elected');
    const first = await stage.published();
    const writer = await stage.writer();
    await stage.set.at(first.primary as NodeAddress).kill();
    await former.hasStopped();
    // It has promoted this node, and is about to make all others its replicas.
    const chosen = former.story.all('step').find(({ step }) => step === 'promote')?.node;
    await stage.set.at(chosen as NodeAddress).freeze();
    stage.manager('successor');
    const next = await stage.published(undefined, first.term);
    expect(next.primary).not.toBe(chosen);
    await writer.writes('a write to the new primary', ({ node }) => node === next.primary);
    former.thaw();
    await former.story.told('ousted');
    expect((await stage.set.roles())[next.primary as NodeAddress]).toBe('primary');
    stage.set.at(chosen as NodeAddress).thaw();
    await stage.formed();
    expect(await stage.record()).toMatchObject({ term: next.term, primary: next.primary });
    await stage.verdict(writer);
  });

  test('a manager stands still, and changes no znode when it goes on', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const former = await stage.managerProcess('former', {
      ...{ stopAt: 'before revoke', by: 'SIGSTOP', broken },
      // The session outlives the suspension: ZooKeeper itself would refuse the writes of an expired
      // one.
      options: { sessionTimeout: '15s' },
    });
    await former.story.told('elected');
    const first = await stage.published();
    const primary = stage.set.at(first.primary as NodeAddress);
    await primary.freeze();
    await former.hasStopped();
    primary.thaw();
    const election = `${stage.root}/${stage.paths.election}`;
    const { children } = await stage.zk.getChildren(election);
    for (const place of children) await stage.zk.delete(`${election}/${place}`);
    const { story } = stage.manager('successor');
    await story.told('elected');
    await story.told(
      'judged',
      ({ node, state }) => node === first.primary && state === 'available',
    );
    const reign = await stage.reign();
    expect(reign).toMatchObject({ term: first.term, primary: first.primary });
    former.thaw();
    await former.story.told('ousted');
    expect(await stage.reign()).toEqual(reign);
  });
});

interface Scene {
  readonly stage: Stage;
  readonly writer: Writer;
  /** The manager that has stopped itself at the step. */
  readonly former: ManagerProcess;
  /** If the move was requested: resolves when the requester has its answer. */
  readonly answered: Promise<unknown>;
}

async function open(
  context: TestContext,
  stopAt: StepName,
  by: 'SIGSTOP' | 'SIGKILL',
  primary: Primary,
): Promise<Scene> {
  const stage = await Stage.open(context, zooKeeper.server);
  const former = await stage.managerProcess('former', { stopAt, by });
  await former.story.told('elected');
  const { primary: first } = await stage.published();
  const writer = await stage.writer();
  await writer.writes();
  let answered: Promise<unknown> = Promise.resolve();
  if (primary === 'was killed') {
    await stage.set.at(first as NodeAddress).kill();
  } else {
    const client = await stage.client();
    // The outcome does not matter here.
    answered = client.manualFailover().catch(() => {});
  }
  await former.hasStopped();
  return { stage, writer, former, answered };
}

/** Another manager has put the set in order, and clients write. */
async function carriedOn({ stage, writer, answered }: Scene): Promise<void> {
  const { story } = stage.manager('successor');
  await story.told('elected');
  await answered;
  const { primary, term } = await stage.formed();
  await writer.writes(
    'a write to the primary that is published',
    (write) => write.node === primary && write.term === term,
  );
}
