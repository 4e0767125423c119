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
    (path) => unused.push(path),
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
  });

  it('is not set as a one-shot where it would replace a persistent one', () => {
    const { registry, unused, told, oneShot, listener, tell, lists } = setup();
    const tree = listener('tree');
    registry.addPersistent('/a', false, tree);
    const ride = registry.beginRead('/a');
    expect(ride).toBeDefined();
    registry.add('data', '/a', oneShot('data'));
    registry.endRide('/a', ride!);
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
    const ride = registry.beginRead('/a')!;
    registry.refusePersistent('/a', tree);
    registry.add('data', '/a', oneShot('data'));
    registry.endRide('/a', ride);
    expect(told).toEqual(['data: removed']);
    expect(registry.beginRead('/a')).toBeUndefined();
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
