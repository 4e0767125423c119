// Every request about nodes, outside of a multi.
import { Session } from './session.mjs';
import { bytes } from './wire.mjs';

export const anyone = [{ perms: 31, scheme: 'world', id: 'anyone' }];
export const node = (path, data = 'data', flags = 0) => ({
  path,
  data: data === null ? null : bytes(data),
  acl: anyone,
  flags,
});

export async function captureNodes(port, exchanges) {
  const session = await Session.open(port, exchanges);
  await session.attach('a session');
  await captureCreates(session);
  await captureReads(session);
  await captureWrites(session);
  await captureAcls(session);
  await session.call('closeSession', 'closeSession');
  await session.closed();
}

async function captureCreates(session) {
  const path = (value) => ({ body: { path: value } });
  await session.call('create', 'create', node('/a'), path('/a'));
  await session.call('create, taken', 'create', node('/a'), { error: -110 });
  await session.call('create, no parent', 'create', node('/no/a'), { error: -101 });
  await session.call('create, null ACL', 'create', { ...node('/x'), acl: null }, { error: -114 });
  await session.call('create, empty ACL', 'create', { ...node('/x'), acl: [] }, { error: -114 });
  await session.call('create, no such flags', 'create', node('/x', '', 77), { error: -8 });
  await session.call('create, null data', 'create', node('/null', null));
  await session.call('create, empty data', 'create', node('/empty', ''));
  await session.call('create, not ASCII', 'create', node('/zäh-日本', '日本'), path('/zäh-日本'));
  const long = `/a/${'long'.repeat(40)}`;
  await session.call('create, a long path', 'create', node(long), path(long));
  await session.call('create ephemeral', 'create', node('/e', 'x', 1), path('/e'));
  await session.call('create below an ephemeral', 'create', node('/e/f'), { error: -108 });
  await session.call('create sequential', 'create', node('/s-', 'x', 2), path('/s-0000000005'));
  await session.call('create ephemeral sequential', 'create', node('/t-', 'x', 3));
  await session.call('create2', 'create2', node('/b', 'data2'), {
    body: { path: '/b', stat: { version: 0, dataLength: 5, numChildren: 0 } },
  });
  await session.call('create2, taken', 'create2', node('/b'), { error: -110 });
  await session.call('create2 ephemeral', 'create2', node('/e2', 'x', 1));
  await session.call('create2 sequential', 'create2', node('/s-', 'x', 2));
  await session.call('create2 ephemeral sequential', 'create2', node('/t-', 'x', 3));
  await session.call('createContainer', 'createContainer', node('/c', 'x', 4), path('/c'));
  const ttl = (name, flags) => ({ ...node(name, 'x', flags), ttlMs: 600_000 });
  await session.call('createTtl', 'createTtl', ttl('/ttl', 5), path('/ttl'));
  await session.call('createTtl sequential', 'createTtl', ttl('/ttl-', 6));
  const never = { ...node('/ttl0', 'x', 5), ttlMs: 0 };
  await session.call('createTtl, no TTL', 'createTtl', never, { error: -8 });
}

async function captureReads(session) {
  const at = (path) => ({ path, watch: false });
  const absent = { error: -101 };
  const stat = { version: 0, dataLength: 4, numChildren: 1 };
  await session.call('exists', 'exists', at('/a'), { body: { stat } });
  await session.call('exists, of a container', 'exists', at('/c'));
  await session.call('exists, of a node with a TTL', 'exists', at('/ttl'));
  await session.call('exists, absent', 'exists', at('/none'), absent);
  const data = (value) => ({ body: { data: value === null ? null : bytes(value) } });
  await session.call('getData', 'getData', at('/a'), data('data'));
  await session.call('getData, null', 'getData', at('/null'), data(null));
  await session.call('getData, empty', 'getData', at('/empty'), data(''));
  await session.call('getData, not ASCII', 'getData', at('/zäh-日本'), data('日本'));
  await session.call('getData, absent', 'getData', at('/none'), absent);
  await session.call('getChildren', 'getChildren', at('/'));
  await session.call('getChildren, none', 'getChildren', at('/b'), { body: { children: [] } });
  await session.call('getChildren, absent', 'getChildren', at('/none'), absent);
  await session.call('getChildren2', 'getChildren2', at('/'));
  await session.call('getChildren2, none', 'getChildren2', at('/b'), { body: { children: [] } });
  await session.call('getChildren2, absent', 'getChildren2', at('/none'), absent);
  await session.call('getAllChildrenNumber', 'getAllChildrenNumber', { path: '/' });
  const none = { body: { totalNumber: 0 } };
  await session.call('getAllChildrenNumber, none', 'getAllChildrenNumber', { path: '/b' }, none);
  await session.call('getEphemerals', 'getEphemerals', { prefixPath: '/' });
  const empty = { body: { ephemerals: [] } };
  await session.call('getEphemerals, none', 'getEphemerals', { prefixPath: '/none' }, empty);
  await session.call('sync', 'sync', { path: '/a' }, { body: { path: '/a' } });
}

async function captureWrites(session) {
  const set = (path, data, version) => ({ path, data: data && bytes(data), version });
  await session.call('setData', 'setData', set('/b', 'new data', 0), {
    body: { stat: { version: 1, dataLength: 8 } },
  });
  await session.call('setData, any version', 'setData', set('/b', 'x', -1));
  await session.call('setData, null', 'setData', set('/b', null, -1), {
    body: { stat: { dataLength: 0 } },
  });
  await session.call('setData, other version', 'setData', set('/b', 'x', 1), { error: -103 });
  await session.call('setData, absent', 'setData', set('/none', 'x', -1), { error: -101 });
  await session.call(
    'delete, other version',
    'delete',
    { path: '/b', version: 7 },
    { error: -103 },
  );
  await session.call('delete, not empty', 'delete', { path: '/a', version: -1 }, { error: -111 });
  await session.call('delete', 'delete', { path: '/b', version: 3 });
  await session.call('delete, absent', 'delete', { path: '/b', version: -1 }, { error: -101 });
}

async function captureAcls(session) {
  const acl = (perms, scheme, id) => ({ perms, scheme, id });
  await session.call('getAcl', 'getAcl', { path: '/a' }, { body: { acl: anyone } });
  await session.call('getAcl, absent', 'getAcl', { path: '/none' }, { error: -101 });
  const auth = bytes('us\u00e4r:secret');
  await session.call('auth', 'auth', { type: 0, scheme: 'digest', auth });
  const several = [
    acl(1, 'world', 'anyone'),
    acl(31, 'digest', 'us\u00e4r:OvL8pqgtJNpMzb2sv3EsTDCFhXE='),
    acl(5, 'ip', '10.0.0.0/8'),
    acl(16, 'auth', ''),
  ];
  const body = { stat: { aversion: 1 } };
  await session.call('setAcl', 'setAcl', { path: '/a', acl: several, version: 0 }, { body });
  await session.call('getAcl, several', 'getAcl', { path: '/a' });
  const beyond = [...anyone, acl(1, 'digest', '😀:OvL8pqgtJNpMzb2sv3EsTDCFhXE=')];
  await session.call('setAcl, beyond U+FFFF', 'setAcl', { path: '/e', acl: beyond, version: 0 });
  const same = { body: { acl: beyond } };
  await session.call('getAcl, beyond U+FFFF', 'getAcl', { path: '/e' }, same);
  const other = { path: '/a', acl: anyone, version: 0 };
  await session.call('setAcl, other version', 'setAcl', other, { error: -103 });
  const none = { path: '/a', acl: null, version: -1 };
  await session.call('setAcl, null', 'setAcl', none, { error: -114 });
  const closed = { path: '/none-may', data: null, acl: [acl(16, 'ip', '10.0.0.1')], flags: 0 };
  await session.call('create for others', 'create', closed);
  await session.call('no auth', 'getData', { path: '/none-may', watch: false }, { error: -102 });
}
