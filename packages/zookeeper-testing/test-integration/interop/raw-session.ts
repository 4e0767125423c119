/**
 * Requests that other clients never send: malformed, forbidden and unusual ones, and everything
 * that came after 3.4.
 */
import {
  addWatchModes,
  createFlags,
  opcodes,
  xids,
} from '../../../zookeeper/src/protocol/constants.ts';
import { encode } from '../../../zookeeper/src/protocol/jute.ts';
import type { Acl } from '../../../zookeeper/src/protocol/messages.ts';
import { createRequest, setDataRequest } from '../../../zookeeper/src/protocol/messages.ts';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';
import type { Answer } from './raw-client.ts';
import { RawClient } from './raw-client.ts';
import type { Stage } from './session.ts';

const root = '/raw';
const open: readonly Acl[] = [{ perms: 31, scheme: 'world', id: 'anyone' }];
const text = (value: string): Uint8Array => new TextEncoder().encode(value);

export async function rawSession(stage: Stage): Promise<void> {
  const raw = await RawClient.open(stage.main);
  const other = await RawClient.open(stage.other);
  await raw.call(requests.exists, { path: '/', watch: false });
  await raw.call(requests.create2, node(root));
  await kindsOfNodes(raw);
  await badRequests(raw);
  await persistentWatches(raw, other);
  await mixedWatches(raw, other);
  await removals(raw, other);
  await restoring(stage, raw, other);
  await severalAtOnce(raw);
  await aboutTheTree(raw);
  await endings(stage);
  await greetings(stage);
  await raw.call(requests.closeSession, {});
  await raw.end();
  await other.call(requests.closeSession, {});
  await other.end();
}

function node(path: string, flags: number = createFlags.persistent) {
  return { path, data: text('x'), acl: open, flags };
}

const read = (path: string) => ({ path, watch: false });
const watch = (path: string) => ({ path, watch: true });

async function kindsOfNodes(raw: RawClient): Promise<void> {
  await raw.call(requests.createContainer, node(`${root}/container`, createFlags.container));
  const ttl = { ...node(`${root}/ttl`, createFlags.persistentWithTtl), ttlMs: 3_600_000 };
  await raw.call(requests.createTtl, ttl);
  const flags = createFlags.persistentSequentialWithTtl;
  await raw.call(requests.createTtl, { ...ttl, path: `${root}/ttl-`, flags });
  await raw.call(requests.createTtl, { ...ttl, path: `${root}/zero`, ttlMs: 0 });
  await raw.call(requests.createTtl, { ...ttl, path: `${root}/negative`, ttlMs: -1 });
  await raw.call(requests.createTtl, { ...ttl, path: `${root}/long`, ttlMs: 2 ** 40 });
  await raw.call(requests.create2, node(`${root}/e-`, createFlags.ephemeralSequential));
  await raw.call(requests.create2, node(`${root}/e`, createFlags.ephemeral));
  await raw.call(requests.create, node(`${root}/by-create`, createFlags.container));
  await raw.call(requests.createContainer, node(`${root}/container/child`));
  for (const path of ['container', 'ttl', 'e']) {
    await raw.call(requests.exists, read(`${root}/${path}`));
  }
  await raw.call(requests.create2, { ...node(`${root}/null`), data: null });
  await raw.call(requests.getData, read(`${root}/null`));
  await raw.call(requests.setData, { path: `${root}/null`, data: new Uint8Array(0), version: 0 });
  await raw.call(requests.getData, read(`${root}/null`));
  await raw.call(requests.getChildren, read(root));
  await raw.call(requests.getChildren2, read(root));
}

/** Refused, and the connection stays. */
async function badRequests(raw: RawClient): Promise<void> {
  for (const flags of [7, 100, -1]) await raw.call(requests.create, node(`${root}/f`, flags));
  await raw.call(requests.create2, { ...node(`${root}/acl`), acl: null });
  await raw.call(requests.create2, { ...node(`${root}/acl`), acl: [] });
  for (const path of ['', 'relative', `${root}/`, '//', `${root}/../x`, `${root}/a\0b`]) {
    await raw.call(requests.create2, node(path));
    await raw.call(requests.exists, read(path));
    await raw.call(requests.getData, read(path));
    await raw.call(requests.setData, { path, data: null, version: -1 });
    await raw.call(requests.delete, { path, version: -1 });
  }
  await raw.call(requests.create2, node('/'));
  await raw.call(requests.delete, { path: '/zookeeper', version: -1 });
  await raw.call(requests.setData, { path: '/', data: text('root'), version: -1 });
  await raw.call(requests.setAcl, { path: root, acl: [], version: -1 });
  await raw.call(requests.setAcl, { path: root, acl: null, version: -1 });
  await raw.call(requests.setAcl, { path: root, acl: open, version: 7 });
  await raw.call(requests.addWatch, { path: root, mode: 2 });
  await raw.call(requests.addWatch, { path: root, mode: -1 });
  await raw.call(requests.removeWatches, { path: root, type: 9 });
  await raw.call(requests.checkWatches, { path: root, type: 9 });
  await raw.call(requests.checkWatches, { path: root, type: 3 });
  const nothing = { joiningServers: null, leavingServers: '9', newMembers: null };
  await raw.call(requests.reconfig, { ...nothing, curConfigId: -1n });
  await raw.call(requests.exists, read(root), 0);
  await raw.call(requests.exists, read(root), 2 ** 31 - 1);
  await raw.call(requests.ping, {}, xids.ping);
}

async function persistentWatches(raw: RawClient, other: RawClient): Promise<void> {
  const path = `${root}/p`;
  await raw.call(requests.addWatch, { path, mode: addWatchModes.persistent });
  await other.call(requests.addWatch, { path, mode: addWatchModes.persistentRecursive });
  for (const client of [raw, other]) {
    await client.call(requests.create2, node(path));
    await client.call(requests.setData, { path, data: null, version: -1 });
    await client.call(requests.create2, node(`${path}/a`));
    await client.call(requests.create2, node(`${path}/a/b`));
    await client.call(requests.setData, { path: `${path}/a/b`, data: null, version: -1 });
    await client.call(requests.setAcl, { path, acl: open, version: -1 });
    await client.call(requests.delete, { path: `${path}/a/b`, version: -1 });
    await client.call(requests.delete, { path: `${path}/a`, version: -1 });
    await client.call(requests.delete, { path, version: -1 });
  }
  // The events of the last write come before the answers to these.
  await raw.call(requests.checkWatches, { path, type: 3 });
  await other.call(requests.checkWatches, { path, type: 3 });
}

/** One mode for each path and connection. */
async function mixedWatches(raw: RawClient, other: RawClient): Promise<void> {
  const path = `${root}/mixed`;
  await other.call(requests.create2, node(path));
  for (const mode of [addWatchModes.persistent, addWatchModes.persistentRecursive]) {
    for (const order of ['one-shot last', 'persistent last']) {
      if (order === 'persistent last') {
        await raw.call(requests.getData, watch(path));
        await raw.call(requests.getChildren2, watch(path));
      }
      await raw.call(requests.addWatch, { path, mode });
      if (order === 'one-shot last') {
        await raw.call(requests.getData, watch(path));
        await raw.call(requests.getChildren2, watch(path));
      }
      for (let i = 0; i < 2; i += 1) {
        await other.call(requests.setData, { path, data: null, version: -1 });
        await other.call(requests.create2, node(`${path}/c`));
        await other.call(requests.delete, { path: `${path}/c`, version: -1 });
        await raw.call(requests.exists, read(path));
      }
      for (const type of [1, 2, 3]) await raw.call(requests.checkWatches, { path, type });
      await raw.call(requests.removeWatches, { path, type: 3 });
    }
  }
}

async function removals(raw: RawClient, other: RawClient): Promise<void> {
  const path = `${root}/removed`;
  await other.call(requests.create2, node(path));
  // Only the other client watches.
  await other.call(requests.exists, watch(path));
  for (const type of [1, 2, 3]) {
    await raw.call(requests.checkWatches, { path, type });
    await raw.call(requests.removeWatches, { path, type });
    await other.call(requests.checkWatches, { path, type });
  }
  for (const remove of [1, 2, 3]) {
    for (const set of ['data', 'children', 'both', 'persistent', 'recursive'] as const) {
      if (set === 'data' || set === 'both') await raw.call(requests.exists, watch(path));
      if (set === 'children' || set === 'both') await raw.call(requests.getChildren, watch(path));
      if (set === 'persistent') await raw.call(requests.addWatch, { path, mode: 0 });
      if (set === 'recursive') await raw.call(requests.addWatch, { path, mode: 1 });
      for (const type of [1, 2, 3]) await raw.call(requests.checkWatches, { path, type });
      await raw.call(requests.removeWatches, { path, type: remove });
      for (const type of [1, 2, 3]) await raw.call(requests.checkWatches, { path, type });
      await other.call(requests.setData, { path, data: null, version: -1 });
      await other.call(requests.create2, node(`${path}/c`));
      await other.call(requests.delete, { path: `${path}/c`, version: -1 });
      await raw.call(requests.removeWatches, { path, type: 3 });
    }
  }
}

/** SetWatches and SetWatches2, with every change that may have happened since. */
async function restoring(stage: Stage, raw: RawClient, other: RawClient): Promise<void> {
  const at = (name: string) => `${root}/${name}`;
  for (const name of ['same', 'changed', 'deleted', 'listed']) {
    await raw.call(requests.create2, node(at(name)));
  }
  const { zxid } = (await raw.call(requests.exists, read(root))) as Exclude<Answer, 'closed'>;
  await other.call(requests.setData, { path: at('changed'), data: null, version: -1 });
  await other.call(requests.delete, { path: at('deleted'), version: -1 });
  await other.call(requests.create2, node(at('created')));
  await other.call(requests.create2, node(`${at('listed')}/c`));
  const lists = {
    relativeZxid: zxid,
    dataWatches: [at('same'), at('changed'), at('deleted')],
    existWatches: [at('created'), at('absent')],
    childWatches: [at('same'), at('listed'), at('deleted')],
  };
  for (const two of [false, true]) {
    const passer = await RawClient.open(stage.passers);
    const persistent = {
      persistentWatches: [at('same'), at('changed')],
      persistentRecursiveWatches: [root],
    };
    if (two) await passer.call(requests.setWatches2, { ...lists, ...persistent }, xids.setWatches);
    else await passer.call(requests.setWatches, lists, xids.setWatches);
    await other.call(requests.setData, { path: at('same'), data: null, version: -1 });
    await other.call(requests.create2, node(`${at('same')}/c`));
    await other.call(requests.create2, node(at('absent')));
    await other.call(requests.delete, { path: at('absent'), version: -1 });
    await other.call(requests.delete, { path: `${at('same')}/c`, version: -1 });
    await passer.call(requests.exists, read(root));
    await passer.call(requests.closeSession, {});
    await passer.end();
  }
}

async function severalAtOnce(raw: RawClient): Promise<void> {
  const path = `${root}/multi`;
  const ttl = { ...node(`${path}/ttl`, createFlags.persistentWithTtl), ttlMs: 3_600_000 };
  await raw.call(requests.multi, [
    { opcode: opcodes.create2, body: node(path) },
    { opcode: opcodes.create, body: node(`${path}/a-`, createFlags.ephemeralSequential) },
    { opcode: opcodes.createContainer, body: node(`${path}/c`, createFlags.container) },
    { opcode: opcodes.createTtl, body: ttl },
    { opcode: opcodes.setData, body: { path, data: null, version: 0 } },
    { opcode: opcodes.check, body: { path, version: 1 } },
    { opcode: opcodes.delete, body: { path: `${path}/ttl`, version: -1 } },
  ]);
  await raw.call(requests.getChildren2, read(path));
  await raw.call(requests.multi, [
    { opcode: opcodes.setData, body: { path, data: null, version: -1 } },
    { opcode: opcodes.create2, body: { ...node(`${path}/acl`), acl: [] } },
    { opcode: opcodes.delete, body: { path, version: -1 } },
  ]);
  await raw.call(requests.multi, [
    { opcode: opcodes.create2, body: node(`${path}/f`, 77) },
    { opcode: opcodes.check, body: { path, version: -1 } },
  ]);
  await raw.call(requests.multi, [{ opcode: opcodes.create2, body: node('relative') }]);
  await raw.call(requests.multi, []);
  await raw.call(requests.multiRead, []);
  await raw.call(requests.multiRead, [
    { opcode: opcodes.getData, body: read(path) },
    { opcode: opcodes.getData, body: read(`${path}/none`) },
    { opcode: opcodes.getChildren, body: read(path) },
    { opcode: opcodes.getChildren, body: read(`${path}/none`) },
  ]);
  const secret = [{ perms: 1, scheme: 'digest', id: 'joe:oesAybBun9icKJjQSTRN8OBueSc=' }];
  await raw.call(requests.create2, { ...node(`${path}/secret`), acl: secret });
  await raw.call(requests.multiRead, [
    { opcode: opcodes.getData, body: read(`${path}/secret`) },
    { opcode: opcodes.getChildren, body: read(`${path}/secret`) },
    { opcode: opcodes.getData, body: read(path) },
  ]);
  await raw.call(requests.multi, [
    { opcode: opcodes.check, body: { path: `${path}/secret`, version: 0 } },
  ]);
  const joe = { type: 0, scheme: 'digest', auth: text('joe:secret') };
  await raw.call(requests.auth, joe, xids.auth);
  await raw.call(requests.auth, joe, xids.auth);
  await raw.call(requests.whoAmI, {});
  await raw.call(requests.getAcl, { path: `${path}/secret` });
  await raw.call(requests.multi, [
    { opcode: opcodes.check, body: { path: `${path}/secret`, version: 0 } },
  ]);
  const twice = [
    { perms: 31, scheme: 'auth', id: '' },
    { perms: 1, scheme: 'world', id: 'anyone' },
    { perms: 1, scheme: 'world', id: 'anyone' },
  ];
  await raw.call(requests.create2, { ...node(`${path}/twice`), acl: twice });
  await raw.call(requests.getAcl, { path: `${path}/twice` });
}

async function aboutTheTree(raw: RawClient): Promise<void> {
  for (const prefixPath of [root, `${root}/e`, `${root}/none`, '/', '']) {
    await raw.call(requests.getEphemerals, { prefixPath });
  }
  for (const path of [root, `${root}/multi`, `${root}/none`]) {
    await raw.call(requests.getAllChildrenNumber, { path });
  }
  for (const path of [root, '/', `${root}/none`]) await raw.call(requests.sync, { path });
  await raw.call(requests.getAcl, { path: '/' });
  await raw.call(requests.getChildren2, read('/'));
  await raw.call(requests.getChildren2, read('/zookeeper'));
}

/** Most of them end their connection. */
async function endings(stage: Stage): Promise<void> {
  const cut = encode(createRequest, node('/s')).subarray(0, 9);
  const long = encode(setDataRequest, {
    path: root,
    data: new Uint8Array(1_048_600),
    version: -1,
  });
  const auth = (scheme: string) => (client: RawClient) =>
    client.call(requests.auth, { type: 0, scheme, auth: null }, xids.auth);
  const bad: readonly (readonly [string, (client: RawClient) => Promise<Answer>])[] = [
    ['unknown request', (client) => client.send(77, new Uint8Array(0))],
    ['body cut short', (client) => client.send(opcodes.create2, cut)],
    ['no body', (client) => client.send(opcodes.setData, new Uint8Array(0))],
    ['too long', (client) => client.send(opcodes.setData, long)],
    ['unknown scheme', auth('x')],
    ['digest of nothing', auth('digest')],
    // No login is configured.
    ['SASL', (client) => client.call(requests.sasl, { token: new Uint8Array(0) })],
    ['SASL with a token', (client) => client.call(requests.sasl, { token: text('n,,n=joe') })],
    ['SASL without a token', (client) => client.call(requests.sasl, { token: null })],
    ['SASL without a body', (client) => client.send(opcodes.sasl, new Uint8Array(0))],
    [
      'empty frame',
      (client) => {
        client.write(new Uint8Array(0));
        return client.call(requests.exists, read(root));
      },
    ],
  ];
  for (const [name, act] of bad) {
    const client = await RawClient.open(stage.passers);
    const answer = await act(client);
    const after = answer === 'closed' ? 'closed' : await client.call(requests.exists, read(root));
    const outcome = (one: Answer) => (one === 'closed' ? one : `error ${one.error}`);
    stage.say(`${name}: ${outcome(answer)}, then ${outcome(after)}`);
    if (after !== 'closed') await client.call(requests.closeSession, {});
    client.destroy();
  }
}

async function greetings(stage: Stage): Promise<void> {
  const open = async (name: string, greeting: Parameters<typeof RawClient.open>[1]) => {
    const client = await RawClient.open(stage.passers, greeting);
    const { sessionId } = client;
    stage.say(`${name}: ${sessionId === 0n ? 'no session' : 'a session'}`);
    return client;
  };
  const close = async (client: RawClient) => {
    await client.call(requests.closeSession, {});
    await client.end();
  };
  await close(await open('timeout 0', { timeoutMs: 0 }));
  await close(await open('timeout of a day', { timeoutMs: 86_400_000 }));
  await close(await open('negative timeout', { timeoutMs: -1 }));
  await close(await open('read-only allowed', { readOnly: true }));
  await close(await open('before 3.4', { readOnly: undefined }));
  await (await open('ahead of the server', { lastZxidSeen: 2n ** 62n })).end();
  await (await open('unknown session', { sessionId: 12345n })).end();
  const first = await open('first', {});
  const { sessionId, password } = first;
  const second = await open('taken over', { sessionId, password, timeoutMs: 10_000 });
  await first.end();
  await (await open('wrong password', { sessionId, password: new Uint8Array(16).fill(1) })).end();
  await second.end();
  await close(await open('with the right one', { sessionId, password }));
  await (await open('after its end', { sessionId, password })).end();
}
