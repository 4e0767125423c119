import { expect, test } from 'vitest';
import type { ZooKeeper } from '../../../zookeeper/src/client.ts';
import { AuthError, NoNodeError } from '../../../zookeeper/src/errors.ts';
import type { Visit, WalkOptions } from '../../src/zookeeper-command/walk.ts';
import { walk } from '../../src/zookeeper-command/walk.ts';

/** A client of nodes in memory. The test decides when its replies come. */
class Nodes {
  readonly children: Map<string, readonly string[]> = new Map();
  readonly asked: string[] = [];
  inFlight = 0;
  mostInFlight = 0;
  failures: Map<string, Error> = new Map();

  add(path: string, ...names: string[]): this {
    this.children.set(path, names);
    return this;
  }

  async getChildren(path: string) {
    this.asked.push(path);
    this.inFlight += 1;
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
    // Later reads are answered before earlier ones.
    const turns = 1 + (this.asked.length % 7);
    for (let i = 0; i < turns; i += 1) await Promise.resolve();
    this.inFlight -= 1;
    const failure = this.failures.get(path);
    if (failure !== undefined) throw failure;
    return { children: this.children.get(path) ?? [], stat: { version: 0 } };
  }
}

const all: WalkOptions = {
  maxDepth: Number.POSITIVE_INFINITY,
  stat: false,
  data: false,
  signal: new AbortController().signal,
};

async function visit(nodes: Nodes, root: string, options: WalkOptions = all): Promise<Visit[]> {
  const visits: Visit[] = [];
  for await (const each of walk(nodes as unknown as ZooKeeper, root, options)) visits.push(each);
  return visits;
}

test('parents come before their children, siblings by name and number', async () => {
  const nodes = new Nodes().add('/', 'b', 'a').add('/a', 'x-10', 'x-9').add('/b', 'c');
  const visits = await visit(nodes, '/');
  expect(visits.map(({ path }) => path)).toEqual(['/', '/a', '/a/x-9', '/a/x-10', '/b', '/b/c']);
  expect(visits.map(({ lasts }) => lasts)).toEqual([
    [],
    [false],
    [false, false],
    [false, true],
    [true],
    [true, true],
  ]);
});

test('a tree of any shape is read 64 nodes at a time at most, and not one by one', async () => {
  const nodes = new Nodes();
  const names = Array.from({ length: 500 }, (_, i) => `n${i}`);
  nodes.add('/', ...names);
  for (const name of names) nodes.add(`/${name}`, 'x', 'y');
  const visits = await visit(nodes, '/');
  expect(visits).toHaveLength(1501);
  expect(nodes.mostInFlight).toBeGreaterThan(16);
  expect(nodes.mostInFlight).toBeLessThanOrEqual(65);
});

test('nodes are visited before the rest is read', async () => {
  const nodes = new Nodes();
  const names = Array.from({ length: 1000 }, (_, i) => `n${i}`);
  nodes.add('/', ...names);
  for await (const { depth } of walk(nodes as unknown as ZooKeeper, '/', all)) {
    if (depth === 1) break;
  }
  expect(nodes.asked.length).toBeLessThan(100);
});

test('below the depth that is asked for nothing is asked', async () => {
  const nodes = new Nodes().add('/', 'a').add('/a', 'b');
  const visits = await visit(nodes, '/', { ...all, maxDepth: 1 });
  expect(visits.map(({ path }) => path)).toEqual(['/', '/a']);
  expect(nodes.asked).toEqual(['/']);
});

test('a node that vanishes is left out, one that may not be read is told, others are fatal', async () => {
  const nodes = new Nodes().add('/', 'a', 'b', 'c');
  nodes.failures.set('/a', new NoNodeError({ path: '/a' }));
  nodes.failures.set('/b', new AuthError('NO_AUTH', 'no'));
  const visits = await visit(nodes, '/');
  expect(visits.map(({ path, error }) => [path, error?.code])).toEqual([
    ['/', undefined],
    ['/b', 'NO_AUTH'],
    ['/c', undefined],
  ]);
  nodes.failures.set('/c', new Error('broken'));
  await expect(visit(nodes, '/')).rejects.toThrow('broken');
  await expect(visit(nodes, '/b')).rejects.toThrow(AuthError);
  await expect(visit(nodes, '/a')).rejects.toThrow(NoNodeError);
});
