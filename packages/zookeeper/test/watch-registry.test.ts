import { describe, expect, it } from 'vitest';
import type {
  OneShot,
  PersistentListener,
  RawEvent,
  WatchEvent,
} from '../src/session/watch-registry.ts';
import { WatchRegistry } from '../src/session/watch-registry.ts';

function setup() {
  const unused: string[] = [];
  const told: string[] = [];
  const registry = new WatchRegistry(
    (path) => path,
    (path, type) => unused.push(type === 'any' ? path : `${type} of ${path}`),
  );
  const say = (event: RawEvent | WatchEvent) =>
    event.type === 'lost' ? event.reason : `${event.type} ${event.path}`;
  const oneShot =
    (name: string): OneShot =>
    (event) =>
      told.push(`${name}: ${say(event)}`);
  const listener = (name: string): PersistentListener => ({
    onEvent: (event) => told.push(`${name}: ${say(event)}`),
    onGap: (reason) => told.push(`${name}: gap ${reason}`),
    onLost: (reason) => told.push(`${name}: lost ${reason}`),
  });
  const tell = (type: RawEvent['type'], path: string) =>
    registry.dispatch({ type, path, zxid: undefined });
  const lists = () => {
    const { data, exist, child, persistent, persistentRecursive } = registry.lists();
    return [data, exist, child, persistent, persistentRecursive].map((paths) => [...paths]);
  };
  return { registry, unused, told, oneShot, listener, tell, lists };
}

describe('one-shot watches', () => {
  it('fans the one event of a deletion out to data, exist and child watches', () => {
    const { registry, told, oneShot, tell } = setup();
    registry.add('data', '/a', oneShot('data 1'));
    registry.add('data', '/a', oneShot('data 2'));
    registry.add('exist', '/a', oneShot('exist'));
    registry.add('child', '/a', oneShot('child'));
    tell('deleted', '/a');
    expect(told.sort()).toEqual([
      'child: deleted /a',
      'data 1: deleted /a',
      'data 2: deleted /a',
      'exist: deleted /a',
    ]);
    tell('deleted', '/a');
    expect(told).toHaveLength(4);
    expect(registry.size).toBe(0);
  });

  it('tells each kind only of what concerns it', () => {
    const { registry, told, oneShot, tell } = setup();
    registry.add('data', '/a', oneShot('data'));
    registry.add('child', '/a', oneShot('child'));
    registry.add('exist', '/b', oneShot('exist'));
    tell('children-changed', '/a');
    expect(told).toEqual(['child: children-changed /a']);
    tell('changed', '/a');
    tell('created', '/b');
    expect(told.slice(1)).toEqual(['data: changed /a', 'exist: created /b']);
  });

  it('is told once that it is lost', () => {
    const { registry, told, oneShot } = setup();
    registry.add('data', '/a', oneShot('data'));
    registry.expire();
    registry.close();
    expect(told).toEqual(['data: expired']);
  });
});

describe('a watch that the server may have and that is not needed', () => {
  it('goes with the last listener of its kind on the server', () => {
    const { registry, unused, oneShot } = setup();
    const [data, exist, child] = ['data', 'exist', 'child'].map(oneShot) as [
      OneShot,
      OneShot,
      OneShot,
    ];
    registry.add('data', '/a', data);
    registry.add('exist', '/a', exist);
    registry.add('child', '/a', child);
    registry.add('data', '/b', data);
    registry.cancel('data', '/a', data);
    expect(unused).toEqual([]);
    registry.cancel('exist', '/a', exist);
    expect(unused).toEqual(['data of /a']);
    registry.cancel('child', '/a', child);
    expect(unused).toEqual(['data of /a', 'children of /a']);
    // It is told once, and a listener that was told already removes nothing.
    registry.cancel('child', '/a', child);
    expect(unused).toHaveLength(2);
  });

  it('is not taken from under a read that may have set it again', () => {
    const { registry, unused, told, oneShot, tell } = setup();
    const first = oneShot('first');
    registry.add('data', '/a', first);
    const read = registry.beginRead('exist', '/a');
    registry.cancel('data', '/a', first);
    expect(unused).toEqual([]);
    registry.add('data', '/a', oneShot('second'));
    registry.endRead(read, true);
    expect(unused).toEqual([]);
    tell('changed', '/a');
    expect(told).toEqual(['first: cancelled', 'second: changed /a']);
  });

  it('goes when the last read has ended that kept it', () => {
    const { registry, unused, oneShot } = setup();
    const listener = oneShot('one');
    registry.add('data', '/a', listener);
    const reads = [registry.beginRead('data', '/a'), registry.beginRead('data', '/a')];
    registry.cancel('data', '/a', listener);
    // The server has refused both, and still has the watch of the first listener.
    registry.endRead(reads[0]!, false);
    expect(unused).toEqual([]);
    registry.endRead(reads[1]!, false);
    expect(unused).toEqual(['data of /a']);
  });

  it('goes with a read that was given up, and not with one that was refused', () => {
    const { registry, unused } = setup();
    registry.endRead(registry.beginRead('child', '/a'), false);
    expect(unused).toEqual([]);
    registry.endRead(registry.beginRead('child', '/a'), true);
    expect(unused).toEqual(['children of /a']);
  });

  it('stays while a persistent watch of the path does', () => {
    const { registry, unused, oneShot, listener } = setup();
    const [one, tree] = [oneShot('one'), listener('tree')];
    const read = registry.beginRead('child', '/a');
    registry.add('data', '/a', one);
    registry.addPersistent('/a', false, tree);
    registry.cancel('data', '/a', one);
    registry.endRead(read, true);
    expect(unused).toEqual([]);
    registry.removePersistent('/a', tree);
    expect(unused).toEqual(['/a']);
  });

  it.each(['data', 'exist', 'child'] as const)(
    'goes when a gap has taken the last rider (%s) of a persistent watch',
    (kind) => {
      const { registry, unused, oneShot, listener } = setup();
      const tree = listener('tree');
      registry.addPersistent('/a', true, tree);
      registry.add(kind, '/a', oneShot('rider'));
      registry.removePersistent('/a', tree);
      expect(unused).toEqual([]);
      registry.gap('reconnected');
      expect(unused).toEqual(['/a']);
      expect(registry.size).toBe(0);
    },
  );

  it('goes when the last rider was told of a child', () => {
    const { registry, unused, told, oneShot, listener, tell } = setup();
    const tree = listener('tree');
    registry.addPersistent('/a', true, tree);
    registry.add('child', '/a', oneShot('rider'));
    registry.removePersistent('/a', tree);
    tell('created', '/a/b');
    expect(told).toEqual(['rider: children-changed /a']);
    expect(unused).toEqual(['/a']);
  });
});

describe('persistent watches', () => {
  it('tells a recursive one of descendants, and derives what it does not say of children', () => {
    const { registry, told, oneShot, listener, tell } = setup();
    registry.addPersistent('/a', true, listener('tree'));
    registry.add('child', '/a', oneShot('child'));
    tell('changed', '/a/b/c');
    expect(told).toEqual(['tree: changed /a/b/c']);
    tell('created', '/a/b');
    expect(told.slice(1)).toEqual([
      'tree: created /a/b',
      'child: children-changed /a',
      'tree: children-changed /a',
    ]);
  });

  it('tells the root of everything', () => {
    const { registry, told, listener, tell } = setup();
    registry.addPersistent('/', true, listener('root'));
    tell('changed', '/a/b');
    tell('created', '/x');
    expect(told).toEqual(['root: changed /a/b', 'root: created /x', 'root: children-changed /']);
    // The root is no descendant of its own.
    tell('changed', '/');
    expect(told.slice(3)).toEqual(['root: changed /']);
  });

  it('is not set as a one-shot where it would replace a persistent one', () => {
    const { registry, unused, told, oneShot, listener, tell, lists } = setup();
    const tree = listener('tree');
    registry.addPersistent('/a', false, tree);
    const read = registry.beginRead('data', '/a');
    expect(read.ride).toBeDefined();
    registry.add('data', '/a', oneShot('data'));
    registry.endRead(read, true);
    expect(lists()).toEqual([[], [], [], ['/a'], []]);
    // It stays on the server for its last rider.
    registry.removePersistent('/a', tree);
    expect(unused).toEqual([]);
    tell('changed', '/a');
    expect(told).toEqual(['data: changed /a']);
    expect(unused).toEqual(['/a']);
  });

  it('tells a rider whose persistent watch was refused', () => {
    const { registry, told, oneShot, listener } = setup();
    const tree = listener('tree');
    registry.addPersistent('/a', true, tree);
    const read = registry.beginRead('data', '/a');
    registry.refusePersistent('/a', tree);
    registry.add('data', '/a', oneShot('data'));
    registry.endRead(read, true);
    expect(told).toEqual(['data: removed']);
    expect(registry.beginRead('data', '/a').ride).toBeUndefined();
  });

  it('is never turned back from recursive', () => {
    const { registry, listener, lists } = setup();
    expect(registry.addPersistent('/a', true, listener('1'))).toBe(true);
    expect(registry.addPersistent('/a', false, listener('2'))).toBe(true);
    expect(lists()[4]).toEqual(['/a']);
  });

  it('makes gaps visible, and lets riders read again', () => {
    const { registry, told, oneShot, listener } = setup();
    registry.addPersistent('/a', false, listener('tree'));
    registry.add('data', '/a', oneShot('rider'));
    registry.add('data', '/b', oneShot('alone'));
    registry.gap('reconnected');
    expect(told).toEqual(['tree: gap reconnected', 'rider: reconnected']);
  });

  it('asks for nothing in a session that is gone', () => {
    const { registry, unused, oneShot, listener, lists } = setup();
    const tree = listener('tree');
    registry.addPersistent('/a', false, tree);
    registry.add('data', '/a', oneShot('rider'));
    registry.removePersistent('/a', tree);
    registry.expire();
    expect(unused).toEqual([]);
    expect(lists().flat()).toEqual([]);
  });
});
