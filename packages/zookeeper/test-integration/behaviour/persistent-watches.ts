import { expect, it } from 'vitest';
import type { PersistentEvent } from '../../src/index.ts';
import { RefusedError } from '../../src/index.ts';
import type { World } from './world.ts';
import { refusal, soon, take } from './world.ts';

/** `addWatch`, recursive or not, other watches on the same path, and its removal. */
export function persistentWatches(world: World): void {
  it('tells of every change of one node, in order', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const watch = await client.addWatch('/n');
    await other.create('/n');
    await other.set('/n', '1');
    await other.set('/n', '2');
    await other.create('/n/child');
    await other.set('/n/child', 'x');
    await other.delete('/n/child');
    await other.delete('/n');
    await other.create('/n');
    expect(brief(await take(watch[Symbol.asyncIterator](), 7, 'events'))).toEqual([
      ...['created /n', 'changed /n', 'changed /n', 'children-changed /n', 'children-changed /n'],
      ...['deleted /n', 'created /n'],
    ]);
    watch.close();
  });

  it('tells of every change below, in order', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const watch = await client.addWatch('/', { recursive: true });
    await other.create('/n');
    await other.create('/n/a');
    await other.set('/n/a', '1');
    await other.create('/n/a/b');
    await other.transaction().delete('/n/a/b').set('/n', 'x').create('/m').commit();
    await other.delete('/n/a');
    expect(brief(await take(watch[Symbol.asyncIterator](), 8, 'events'))).toEqual([
      ...['created /n', 'created /n/a', 'changed /n/a', 'created /n/a/b'],
      ...['deleted /n/a/b', 'changed /n', 'created /m', 'deleted /n/a'],
    ]);
    watch.close();
  });

  it('tells of the own change before its reply', async () => {
    const client = await world.client();
    const watch = await client.addWatch('/n');
    const events = watch[Symbol.asyncIterator]();
    let told: string[] = [];
    void take(events, 1, 'the creation').then((first) => {
      told = brief(first);
    });
    await client.create('/n');
    // An iterator delivers in microtasks, so nothing else has been read from the socket since.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    expect(told).toEqual(['created /n']);
  });

  it('ends its iteration when it is closed, or the client is', async () => {
    const client = await world.client();
    const watch = await client.addWatch('/n');
    const pending = watch[Symbol.asyncIterator]().next();
    watch.close();
    watch.close();
    expect((await soon(pending, 'the end')).done).toBe(true);
    await client.create('/n');

    const another = await client.addWatch('/n');
    const last = another[Symbol.asyncIterator]().next();
    await client.close();
    expect((await soon(last, 'the end')).done).toBe(true);
  });

  it('stays beside one-shot watches of the same path', async () => {
    const [client, other] = [await world.client(), await world.client()];
    await client.create('/n');
    await other.sync('/');
    for (const recursive of [false, true]) {
      await client.set('/n', '');
      const before = await client.watch('/n');
      const persistent = await client.addWatch('/n', { recursive });
      const events = persistent[Symbol.asyncIterator]();
      const after = await client.watch('/n');
      const children = await client.watchChildren('/n');
      await other.set('/n', '1');
      expect(await soon(before.changed, 'the earlier one')).toMatchObject({ type: 'changed' });
      expect(await soon(after.changed, 'the later one')).toMatchObject({ type: 'changed' });
      await other.set('/n', '2');
      await other.set('/n', '3');
      await other.create('/n/child');
      expect(await soon(children.changed, 'the children')).toMatchObject({
        type: 'children-changed',
        path: '/n',
      });
      expect(brief(await take(events, 4, 'events'))).toEqual([
        ...['changed /n', 'changed /n', 'changed /n'],
        recursive ? 'created /n/child' : 'children-changed /n',
      ]);
      // A one-shot that rides on the persistent watch outlives it.
      const last = await client.watch('/n');
      persistent.close();
      await other.delete('/n/child');
      await other.set('/n', '4');
      expect(await soon(last.changed, 'the last one')).toMatchObject({ type: 'changed' });
    }
  });

  it('a plain and a recursive watch share a path', async () => {
    const client = await world.client();
    await client.create('/n');
    const plain = await client.addWatch('/n');
    const recursive = await client.addWatch('/n', { recursive: true });
    await client.create('/n/a');
    await client.create('/n/a/b');
    await client.set('/n', 'x');
    expect(brief(await take(plain[Symbol.asyncIterator](), 2, 'plain events'))).toEqual([
      ...['children-changed /n', 'changed /n'],
    ]);
    expect(brief(await take(recursive[Symbol.asyncIterator](), 3, 'all events'))).toEqual([
      ...['created /n/a', 'created /n/a/b', 'changed /n'],
    ]);
    recursive.close();
    await client.create('/n/c');
    await client.set('/n', 'y');
    expect(brief(await take(plain[Symbol.asyncIterator](), 2, 'plain events'))).toEqual([
      ...['children-changed /n', 'changed /n'],
    ]);
  });

  it('keeps a bound on what waits, and says so', async () => {
    const client = await world.client();
    await client.create('/n');
    const watch = await client.addWatch('/n', { maxBuffered: 3 });
    for (let i = 0; i < 10; i += 1) await client.set('/n', String(i));
    const [first] = await take(watch[Symbol.asyncIterator](), 1, 'the gap');
    expect(first).toEqual({ type: 'gap', reason: 'overflow' });
    watch.close();
  });

  it('says where there may be a gap, and goes on', async () => {
    const [client, proxy] = await world.behindProxy();
    const other = await world.client();
    await client.create('/n');
    const plain = (await client.addWatch('/n'))[Symbol.asyncIterator]();
    const recursive = (await client.addWatch('/', { recursive: true }))[Symbol.asyncIterator]();
    const states = client.states();
    await take(states, 1, 'the present state');
    proxy.refuse();
    await take(states, 1, 'the loss');
    await other.sync('/');
    await other.set('/n', 'unseen');
    await proxy.pass();
    await take(states, 1, 'the return');
    const gap = [{ type: 'gap', reason: 'reconnected' }];
    expect(await take(plain, 1, 'the gap')).toEqual(gap);
    expect(await take(recursive, 1, 'the gap')).toEqual(gap);
    // The use of a gap: this read comes behind the watches in the new connection, so it misses
    // nothing.
    expect((await client.get('/n')).text).toBe('unseen');
    await other.set('/n', 'seen');
    expect(brief(await take(plain, 1, 'the change'))).toEqual(['changed /n']);
    expect(brief(await take(recursive, 1, 'the change'))).toEqual(['changed /n']);
  });

  it('knows which watches the server has, and removes them', async () => {
    const client = await world.client();
    await client.create('/n');
    expect(await client.checkWatches('/n')).toBe(false);
    const data = await client.watch('/n');
    expect(await client.checkWatches('/n')).toBe(true);
    expect(await client.checkWatches('/n', 'data')).toBe(true);
    expect(await client.checkWatches('/n', 'children')).toBe(false);
    const children = await client.watchChildren('/n');
    expect(await client.checkWatches('/n', 'children')).toBe(true);

    await client.removeWatches('/n', 'data');
    expect(await soon(data.changed, 'the removal')).toMatchObject({
      type: 'lost',
      reason: 'removed',
    });
    expect(await client.checkWatches('/n', 'data')).toBe(false);
    await client.set('/n', 'x');
    await client.create('/n/child');
    expect(await soon(children.changed, 'the child')).toMatchObject({ type: 'children-changed' });
    await refusal(client.removeWatches('/n'), RefusedError, { code: 'NO_WATCHER', path: '/n' });

    const persistent = await client.addWatch('/n');
    expect(await client.checkWatches('/n')).toBe(true);
    const pending = persistent[Symbol.asyncIterator]().next();
    await client.removeWatches('/n');
    expect((await soon(pending, 'the end')).done).toBe(true);
    expect(await client.checkWatches('/n')).toBe(false);
  });
}

function brief(events: readonly PersistentEvent[]): string[] {
  return events.map((event) => `${event.type} ${'path' in event ? event.path : event.reason}`);
}
