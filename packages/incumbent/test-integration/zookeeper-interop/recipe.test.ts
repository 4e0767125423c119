/** The recipe of ZooKeeper's documentation, and zkElection, one of the libraries that follow it. */
import { randomUUID } from 'node:crypto';
import type { TestContext } from 'vitest';
import { it } from 'vitest';
import { connect } from '../../../zookeeper/src/index.ts';
import { OurCandidate } from './support/our-candidate.ts';
import { placesOf } from './support/places.ts';
import { requirePeer, useStage } from './support/stage.ts';

const stage = useStage({ peers: [] });

async function hold(context: TestContext) {
  requirePeer(context);
  const { address } = stage();
  const path = `/recipe/${randomUUID()}`;
  const dispose = <T extends AsyncDisposable>(member: T): T => {
    context.onTestFinished(() => member[Symbol.asyncDispose]());
    return member;
  };
  const client = dispose(await connect(`zk://${address}`));
  await client.ensurePath(path);
  /** A member made by hand, with the name that its library would give it. */
  const theirs = async (prefix: string, data: string): Promise<string> =>
    (await client.create(`${path}/${prefix}`, data, { ephemeral: true, sequential: true })).path;
  const ours = async (id: string) =>
    dispose(await OurCandidate.connect({ address, layout: 'recipe', path, id }));
  return { client, path, theirs, ours };
}

/** The number, as zkElection looks for it. It ends with a panic where there is none. */
function zkElectionNumber(child: string): number {
  const between = child.split('-')[1] as string;
  return Number(between.split('_')[1]);
}

it.concurrent('follows a guid-n_ of the documentation, and is one', async (context) => {
  const { expect } = context;
  const { client, path, theirs, ours } = await hold(context);
  const first = await theirs(`${randomUUID()}-n_`, 'theirs-1');
  const b = await ours('ours-2');
  const { term } = await b.join();
  const places = await placesOf(client, path);
  expect(places[1]?.name).toMatch(/^[0-9a-f]{32}-n_0000000001$/);
  expect(places[1]?.data).toBe('ours-2');
  expect(await b.ids()).toEqual(['theirs-1', 'ours-2']);
  await client.delete(first);
  expect((await term).isLeading()).toBe(true);
});

it.concurrent('follows members of zkElection, who can read its names', async (context) => {
  const { expect } = context;
  const { client, path, theirs, ours } = await hold(context);
  // Protected by go-zookeeper, without data.
  const guid = () => `_c_${randomUUID().replaceAll('-', '')}-p_`;
  const first = await theirs(guid(), '');
  const b = await ours('ours-2');
  const { term } = await b.join();
  await theirs(guid(), '');
  const names = (await placesOf(client, path)).map(({ name }) => name);
  expect(names.map(zkElectionNumber)).toEqual([0, 1, 2]);
  expect(await b.ids()).toEqual([names[0], 'ours-2', names[2]]);
  await client.delete(first);
  expect((await term).isLeading()).toBe(true);
});
