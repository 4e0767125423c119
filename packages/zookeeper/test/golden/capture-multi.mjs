// multi and multiRead.
import { anyone, node } from './capture-nodes.mjs';
import { Session } from './session.mjs';
import { bytes, messages } from './wire.mjs';

const item = (message, body) => ({ opcode: messages[message][0], body });
const check = (path, version) => item('check', { path, version });
const read = (path) => ({ path, watch: false });

export async function captureMulti(port, exchanges) {
  const session = await Session.open(port, exchanges);
  await session.attach('a session');
  const every = [
    item('create', node('/m', null)),
    item('create2', node('/m/a', '')),
    item('createContainer', node('/m/c', 'x', 4)),
    item('createTtl', { ...node('/m/ttl', 'x', 5), ttlMs: 600_000 }),
    item('create', node('/m/s-', 'x', 2)),
    item('create2', node('/m/e-', 'x', 3)),
    item('setData', { path: '/m', data: bytes('new'), version: 0 }),
    check('/m', 1),
    item('create', node('/m/gone')),
    item('delete', { path: '/m/gone', version: 0 }),
  ];
  // A create2 is answered as a create, a container and a node with a TTL as create2.
  const opcodes = [1, 1, 15, 15, 1, 1, 5, 13, 1, 2].map((opcode) => ({ opcode }));
  await session.call('multi of every kind', 'multi', every, { body: opcodes });
  const byFlags = [
    item('create', node('/m/f', 'x', 4)),
    item('createContainer', node('/m/g', 'x', 0)),
    item('createTtl', { ...node('/m/h', 'x', 0), ttlMs: 600_000 }),
  ];
  await session.call('multi: the flags decide, not the opcode', 'multi', byFlags, {
    body: [{ opcode: 15 }, { opcode: 1 }, { opcode: 1 }],
  });
  const withoutTtl = [item('create2', node('/m/i', 'x', 5))];
  await session.call('multi: a TTL where there is none', 'multi', withoutTtl, { error: -5 });
  await session.call('multi of checks only', 'multi', [check('/m', 1), check('/m', -1)]);
  await session.call('multi of nothing', 'multi', [], { body: [] });
  await session.call(
    'multi refused: the first in place',
    'multi',
    [check('/m', 0), item('delete', { path: '/m/a', version: -1 })],
    { body: errors(-103, -2) },
  );
  await session.call(
    'multi refused: the one in the middle',
    'multi',
    [check('/m', 1), item('create', node('/m/a')), check('/m', 1), check('/m', 2)],
    { body: errors(0, -110, -2, -2) },
  );
  await session.call(
    'multi refused: no ACL',
    'multi',
    [check('/m', 1), item('create', { ...node('/m/b'), acl: null })],
    { body: errors(0, -114) },
  );

  const reads = [
    item('getData', read('/m')),
    item('getChildren', read('/none')),
    item('getData', read('/none')),
    item('getChildren', read('/m')),
    item('getData', read('/m/a')),
  ];
  await session.call('multiRead, two absent', 'multiRead', reads, {
    body: [{ opcode: 4 }, ...errors(-101, -101), { opcode: 8 }, { opcode: 4 }],
  });
  await session.call('multiRead of nothing', 'multiRead', [], { body: [] });
  const secret = { ...node('/m/secret'), acl: [{ ...anyone[0], perms: 16 }] };
  await session.call('multi of one', 'multi', [item('create2', secret)]);
  const forbidden = [item('getData', read('/m/secret'))];
  await session.call('multiRead, no auth', 'multiRead', forbidden, { body: errors(-102) });
  session.drop();
}

function errors(...codes) {
  return codes.map((error) => ({ opcode: -1, error }));
}
