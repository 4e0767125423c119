// Watches of every kind, and their notifications.
import { node } from './capture-nodes.mjs';
import { Session } from './session.mjs';
import { bytes, long } from './wire.mjs';

const [created, deleted, dataChanged, childrenChanged] = [1, 2, 3, 4];

export async function captureWatches(port, exchanges) {
  const session = await Session.open(port, exchanges);
  await session.attach('a session');
  await captureOneShot(session);
  await captureAddWatch(session);
  await captureSetWatches(session, await Session.open(port, exchanges));
}

async function captureOneShot(session) {
  const watched = (path) => ({ path, watch: true });
  await session.call('exists, absent, watched', 'exists', watched('/w'), { error: -101 });
  await session.call('create /w', 'create', node('/w'));
  await session.event('created', { type: created, path: '/w' });
  await session.call('getData, watched', 'getData', watched('/w'));
  await session.call('setData /w', 'setData', { path: '/w', data: bytes('x'), version: -1 });
  await session.event('data changed', { type: dataChanged, path: '/w' });
  await session.call('getChildren, watched', 'getChildren', watched('/w'));
  await session.call('create /w/a', 'create', node('/w/a'));
  await session.event('children changed', { type: childrenChanged, path: '/w' });
  await session.call('exists, watched', 'exists', watched('/w/a'));
  await session.call('getChildren2, watched', 'getChildren2', watched('/w/a'));
  await session.call('delete /w/a', 'delete', { path: '/w/a', version: -1 });
  await session.event('deleted', { type: deleted, path: '/w/a' });
}

async function captureAddWatch(session) {
  const plain = { path: '/w', mode: 0 };
  const recursive = { path: '/r', mode: 1 };
  const noWatcher = { error: -121 };
  await session.call('addWatch, persistent', 'addWatch', plain, { body: { error: 0 } });
  await session.call('addWatch, recursive', 'addWatch', recursive, { body: { error: 0 } });
  await session.call('create /r', 'create', node('/r'));
  await session.event('created, recursive', { type: created, path: '/r' });
  await session.call('create /r/a', 'create', node('/r/a'));
  await session.event('created below, recursive', { type: created, path: '/r/a' });
  await session.call('checkWatches', 'checkWatches', { path: '/w', type: 3 });
  await session.call('checkWatches, none', 'checkWatches', { path: '/none', type: 2 }, noWatcher);
  await session.call('removeWatches', 'removeWatches', { path: '/w', type: 3 });
  await session.call('removeWatches, gone', 'removeWatches', { path: '/w', type: 1 }, noWatcher);
  await session.call('addWatch, no such mode', 'addWatch', { path: '/w', mode: 7 }, { error: -5 });
}

/** All changes since transaction 1 are reported at once. */
async function captureSetWatches(before, after) {
  const { sessionId, password } = before.attached;
  await after.attach('re-attach, before the watches', { sessionId, password }, { sessionId });
  await before.closed();
  const lists = (data, exist, child) => ({
    relativeZxid: long(1),
    dataWatches: data,
    existWatches: exist,
    childWatches: child,
  });
  await after.call('setWatches', 'setWatches', lists(['/w', '/none'], ['/r'], ['/r']));
  for (const [path, type] of [
    ['/w', dataChanged],
    ['/none', deleted],
    ['/r', created],
    ['/r', childrenChanged],
  ]) {
    await after.event(`what setWatches tells: ${type} of ${path}`, { path, type });
  }
  await after.call('setWatches of nothing', 'setWatches', lists([], [], []));
  await after.call('setWatches2', 'setWatches2', {
    ...lists(['/w'], ['/none'], ['/none']),
    persistentWatches: ['/w'],
    persistentRecursiveWatches: ['/', '/zäh'],
  });
  await after.event('what setWatches2 tells: data', { path: '/w', type: dataChanged });
  await after.event('what setWatches2 tells: children', { path: '/none', type: deleted });
  after.drop();
}
