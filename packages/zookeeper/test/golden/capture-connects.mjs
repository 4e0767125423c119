// Connects, and other requests that are not about nodes: auth, whoAmI, ping, unknown opcodes, the
// end.
import { Session } from './session.mjs';
import { bytes, long } from './wire.mjs';

export async function captureConnects(port, exchanges) {
  const open = () => Session.open(port, exchanges);

  const first = await open();
  await first.attach('a new session', {}, { timeoutMs: 10_000, readOnly: false });
  await first.call('ping', 'ping');
  const { sessionId, password } = first.attached;

  const second = await open();
  await second.attach(
    're-attach with another timeout',
    { sessionId, password, timeoutMs: 20_000 },
    { sessionId, timeoutMs: 20_000 },
  );
  await first.closed();
  await second.call('whoAmI with an address only', 'whoAmI');
  const auth = bytes('user:secret');
  await second.call('auth', 'auth', { type: 0, scheme: 'digest', auth });
  const identities = [{ scheme: 'ip' }, { scheme: 'digest', user: 'user' }];
  await second.call('whoAmI after auth', 'whoAmI', {}, { body: { identities } });
  await second.call('closeSession', 'closeSession');
  await second.closed();

  const expired = await open();
  await expired.attach(
    'a session that has ended: expired',
    { sessionId, password },
    { sessionId: long(0), timeoutMs: 0 },
  );
  await expired.closed();

  const old = await open();
  const fromOld = { readOnly: undefined };
  await old.attach('without the last byte, both ways', fromOld, { readOnly: undefined });
  await old.unknownOpcode('an unknown opcode', 99);
  await old.closed();

  const limits = await open();
  await limits.attach('null password, no timeout', { password: null, timeoutMs: 0 });
  const wrong = { type: 0, scheme: 'no-such-scheme', auth: bytes('x') };
  await limits.call('auth refused', 'auth', wrong, { error: -115 });
  await limits.closed();

  const ready = await open();
  await ready.attach('asks for read-only too', { readOnly: true, password: bytes('') });
  const config = { path: '/zookeeper/config', watch: false };
  await ready.call('getConfig of a standalone server', 'getData', config);
  const joining = { joiningServers: 'server.2=127.0.0.1:1:2;3', leavingServers: null };
  const reconfig = { ...joining, newMembers: null, curConfigId: long(-1) };
  await ready.call('reconfig of a standalone server', 'reconfig', reconfig, { error: -123 });
  ready.drop();
}

export async function captureReadOnly(port, exchanges, localSessions) {
  const session = await Session.open(port, exchanges);
  if (!localSessions) {
    const refused = { error: -119 };
    const name = 'a read-only server without local sessions refuses with a bare header';
    await session.attach(name, { readOnly: true }, refused);
    session.drop(); // the server keeps the connection open
    return;
  }
  await session.attach('a session of a read-only server', { readOnly: true }, { readOnly: true });
  await session.call('a read of a read-only server', 'exists', { path: '/', watch: false });
  const node = { path: '/a', data: null, acl: [], flags: 0 };
  await session.call('a write refused', 'create', node, { error: -119 });
  session.drop();
  const again = await Session.open(port, exchanges);
  const { sessionId, password } = session.attached;
  await again.attach('re-attach to a read-only server', { sessionId, password, readOnly: true });
  again.drop();
}
