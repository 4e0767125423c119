/** Elections of Comcast's go-leaderelection. Of its members a scripted stand-in plays the part. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { TestContext } from 'vitest';
import { it, vi } from 'vitest';
import type { ZooKeeper } from '../../../zookeeper/src/index.ts';
import { connect } from '../../../zookeeper/src/index.ts';
import { ElectionEndedError, StoreUnsuitableError } from '../../src/index.ts';
import { GoLeaMember, OverError } from './support/golea-member.ts';
import { OurCandidate } from './support/our-candidate.ts';
import { placesOf } from './support/places.ts';
import { requirePeer, useStage } from './support/stage.ts';

const stage = useStage({ peers: [] });
const patiently = { timeout: 30_000, interval: 10 };

async function hold(context: TestContext, { exists = true }: { exists?: boolean } = {}) {
  requirePeer(context);
  const { address } = stage();
  const resource = `/golea/${randomUUID()}`;
  const dispose = <T extends AsyncDisposable>(member: T): T => {
    context.onTestFinished(() => member[Symbol.asyncDispose]());
    return member;
  };
  const client: ZooKeeper = dispose(await connect(`zk://${address}`));
  await client.ensurePath(exists ? resource : '/golea');
  return {
    client,
    resource,
    theirs: (name: string) => GoLeaMember.nominate(client, resource, name),
    ours: async (id: string, options: { readonly create?: boolean } = {}) =>
      dispose(
        await OurCandidate.connect({ address, layout: 'golea', path: resource, id, ...options }),
      ),
  };
}

it.concurrent('its members see us as one of them, and we see them', async (context) => {
  const { expect } = context;
  const { client, resource, theirs, ours } = await hold(context);
  await theirs('theirs-1');
  const b = await ours('ours-2');
  await b.join();
  // Before it knew names it wrote a space.
  await theirs(' ');

  const places = await placesOf(client, resource);
  expect(places.map(({ name }) => name)).toEqual([
    'le_0000000000',
    'le_0000000001',
    'le_0000000002',
  ]);
  expect(places[1]).toMatchObject({
    data: 'ours-2',
    acl: [{ perms: 31, scheme: 'world', id: 'anyone' }],
  });
  expect(await b.ids()).toEqual(['theirs-1', 'ours-2', 'le_0000000002']);
  expect(await b.election.leader()).toMatchObject({ state: 'led', leader: { id: 'theirs-1' } });
});

it.concurrent('each side follows the other', async (context) => {
  const { expect } = context;
  const { theirs, ours } = await hold(context);
  const a = await theirs('theirs-1');
  await a.leads();
  const b = await ours('ours-2');
  const { term } = await b.join();
  const c = await theirs('theirs-3');
  const next = c.leads();

  await a.resign();
  const won = await term;
  expect(won.token).toBeGreaterThan(0n);
  await won[Symbol.asyncDispose]();
  await next;
  expect(await b.election.leader()).toMatchObject({ state: 'led', leader: { id: 'theirs-3' } });
});

it.concurrent('the resource must be there, unless we are to make it', async (context) => {
  const { expect } = context;
  const { client, resource, ours } = await hold(context, { exists: false });
  const a = await ours('ours-1');
  await expect(a.campaign()).rejects.toThrow(StoreUnsuitableError);
  expect(await client.exists(resource)).toBe(false);
  const b = await ours('ours-2', { create: true });
  const term = await b.campaign();
  expect(term.isLeading()).toBe(true);
});

it.concurrent('data of the resource that is not ours stays as it is', async (context) => {
  const { expect } = context;
  const { client, resource, ours } = await hold(context);
  await client.set(resource, 'they keep this here');
  const a = await ours('ours-1');
  const term = await a.campaign();
  expect(await a.election.leader()).toMatchObject({ state: 'led', leader: { id: 'ours-1' } });
  await term[Symbol.asyncDispose]();
  expect((await client.get(resource)).text).toBe('they keep this here');
});

it.concurrent('we end it as they do: DONE first, candidates from the last to the first', async (context) => {
  const { expect } = context;
  const { client, resource, theirs, ours } = await hold(context);
  const events: string[] = [];
  const watch = await client.addWatch(resource, { recursive: true });
  const watched = (async () => {
    for await (const event of watch) {
      if ('path' in event && event.path !== resource) {
        events.push(`${event.type} ${event.path.slice(resource.length + 1)}`);
      }
    }
  })();
  const a = await ours('ours-0');
  const term = await a.campaign();
  const b = await theirs('theirs-1');
  const c = await ours('ours-2');
  const { term: never } = await c.join();

  await c.election.end();
  await expect(b.leads()).rejects.toThrow(OverError);
  await expect(never).rejects.toThrow(ElectionEndedError);
  await vi.waitFor(() => expect(term.signal.aborted).toBe(true), patiently);
  // As long as our leader's work has not settled, its place is there and no candidate can follow.
  expect(await placesOf(client, resource)).toHaveLength(1);
  await term[Symbol.asyncDispose]();
  expect((await term.ended).reason).toBe('election-ended');

  expect((await client.get(`${resource}/DONE`)).text).toBe('done');
  await vi.waitFor(() => expect(events.at(-1)).toBe('deleted le_0000000000'), patiently);
  expect(events.filter((event) => !event.startsWith('created le_'))).toEqual([
    'created DONE',
    'deleted le_0000000002',
    'deleted le_0000000001',
    'deleted le_0000000000',
  ]);
  await expect(theirs('theirs-3')).rejects.toThrow(OverError);
  await expect((await ours('ours-4')).campaign()).rejects.toThrow(ElectionEndedError);
  watch.close();
  await watched;

  await c.election.reopen();
  await (await theirs('theirs-5')).leads();
});

it.concurrent('removed with its end, the election is gone for both sides, and reopen() makes it', async (context) => {
  const { expect } = context;
  const { client, resource, theirs, ours } = await hold(context);
  const a = await theirs('theirs-1');
  await a.leads();
  const b = await theirs('theirs-2');
  const follows = b.leads();
  follows.catch(() => {});
  const c = await ours('ours-3');
  const { term: never } = await c.join();
  expect((await c.election.end({ remove: true })).changed).toBe(true);
  await expect(follows).rejects.toThrow(OverError);
  await expect(never).rejects.toThrow(ElectionEndedError);
  expect(await client.exists(resource)).toBe(false);
  await expect(theirs('theirs-4')).rejects.toMatchObject({ code: 'NO_NODE' });
  // As theirs: gone already is a success.
  expect((await c.election.end({ remove: true })).changed).toBe(false);

  expect((await c.election.reopen()).changed).toBe(true);
  const d = await theirs('theirs-5');
  expect(d.path).toBe(`${resource}/le_0000000000`);
  await d.leads();
});

it.concurrent('we delete the candidates of both sides as DeleteCandidates does', async (context) => {
  const { expect } = context;
  const { client, resource, theirs, ours } = await hold(context);
  const a = await ours('ours-1');
  const term = await a.campaign();
  const b = await theirs('theirs-2');
  const follows = b.leads();
  follows.catch(() => {});
  const told = once(term.signal, 'abort');
  expect((await a.election.deleteCandidates()).changed).toBe(true);
  await expect(follows).rejects.toThrow(OverError);
  await told;
  expect(term.isLeading()).toBe(false);
  await term[Symbol.asyncDispose]();
  // The election goes on.
  expect(await placesOf(client, resource)).toEqual([]);
  await (await theirs('theirs-3')).leads();
});

it.concurrent('their leader is deleted when we end the election', async (context) => {
  const { expect } = context;
  const { client, resource, theirs, ours } = await hold(context);
  const a = await theirs('theirs-1');
  await a.leads();
  const b = await ours('ours-2');
  const { term } = await b.join();
  await b.election.end();
  await expect(term).rejects.toThrow(ElectionEndedError);
  await vi.waitFor(async () => expect(await placesOf(client, resource)).toEqual([]), patiently);
});

it.concurrent('they end it while we wait', async (context) => {
  const { expect } = context;
  const { client, resource, theirs, ours } = await hold(context);
  const a = await theirs('theirs-1');
  await a.leads();
  const { left } = await a.leavesAtEnd();
  const b = await ours('ours-2');
  const { term } = await b.join();
  await GoLeaMember.deleteElection(client, resource);
  await expect(term).rejects.toThrow(ElectionEndedError);
  await left;
});

it.concurrent('they end it while we lead', async (context) => {
  const { expect } = context;
  const { client, resource, theirs, ours } = await hold(context);
  const a = await ours('ours-1');
  const term = await a.campaign();
  // It leaves by itself when it hears of the end, as theirs do: else the deletion would wait for it.
  const b = await theirs('theirs-2');
  const left = b.leads().catch(() => b.resign());
  const told = term.signal.aborted ? Promise.resolve() : once(term.signal, 'abort');
  await GoLeaMember.deleteElection(client, resource);
  await told;
  await left.catch(() => {});
  // Not asked to go: its place is gone, and others of theirs may take no notice of the mark.
  expect(term.isLeading()).toBe(false);
  await term[Symbol.asyncDispose]();
  expect((await term.ended).reason).toMatch(/election-ended|record-gone/);
});

it.concurrent('they end it while we lead and one of theirs waits, who leaves by itself', async (context) => {
  const { expect } = context;
  const { client, resource, theirs, ours } = await hold(context);
  const term = await (await ours('ours-1')).campaign();
  const b = await theirs('theirs-2');
  const left = b.leads().catch(() => b.resign());
  const { term: never } = await (await ours('ours-3')).join();
  // While our work goes on: it waits for members that have not left.
  await GoLeaMember.deleteElection(client, resource);
  expect(await client.exists(resource)).toBe(false);
  await expect(never).rejects.toThrow(ElectionEndedError);
  await left.catch(() => {});
  expect(term.isLeading()).toBe(false);
  await term[Symbol.asyncDispose]();
  expect((await term.ended).reason).toMatch(/election-ended|record-gone/);
});

it.concurrent('ending an election that is not there succeeds', async (context) => {
  const { expect } = context;
  const { ours } = await hold(context, { exists: false });
  const a = await ours('ours-1');
  await expect(a.election.end()).resolves.toBeDefined();
});

it.concurrent('a member that is deleted by hand takes no other along', async (context) => {
  const { expect } = context;
  const { client, theirs, ours } = await hold(context);
  const a = await theirs('theirs-1');
  await a.leads();
  const b = await theirs('theirs-2');
  const c = await ours('ours-3');
  const { term } = await c.join();
  await client.delete(b.path);
  expect(await c.ids()).toEqual(['theirs-1', 'ours-3']);
  // Our own place: we are back behind all others.
  const d = await theirs('theirs-4');
  const deleted = (await placesOf(client, d.path.slice(0, d.path.lastIndexOf('/')))).find(
    ({ data }) => data === 'ours-3',
  );
  await client.delete(`${d.path.slice(0, d.path.lastIndexOf('/'))}/${deleted?.name}`);
  await vi.waitFor(
    async () => expect(await c.ids()).toEqual(['theirs-1', 'theirs-4', 'ours-3']),
    patiently,
  );
  await a.resign();
  await d.leads();
  await d.resign();
  expect((await term).isLeading()).toBe(true);
});
