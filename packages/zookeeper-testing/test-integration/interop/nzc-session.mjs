/**
 * A session of node-zookeeper-client. It writes every answer and every event to standard output as
 * a line of JSON. Each line names its connection, because between two connections there is no
 * order.
 *
 * It is called with three addresses: for the client under test, for another client, and for clients
 * that come and go. Between the lines it asks for faults ({"ask": ...}), and waits for a line on
 * standard input.
 */
import { createInterface } from 'node:readline';
import zookeeper from 'node-zookeeper-client';

const [mainAddress, otherAddress, passersAddress] = process.argv.slice(2);
const answers = createInterface(process.stdin)[Symbol.asyncIterator]();
const root = '/nzc';
// Longer than any pause of a busy machine: a session ends only if the script asks for it.
const timeout = 4_000;
const othersTimeout = 40_000;
const { CreateMode, ACL, Id, Permission, Exception } = zookeeper;

function print(fields) {
  process.stdout.write(`${JSON.stringify(fields)}\n`);
}

async function ask(what) {
  print({ ask: what });
  await answers.next();
}

/**
 * Without the values that differ from run to run. The test compares transactions and times on the
 * wire.
 */
function plain(value) {
  if (value instanceof Exception) return { error: value.getName(), path: value.path };
  if (Buffer.isBuffer(value)) return value.length > 64 ? `${value.length} bytes` : String(value);
  if (Array.isArray(value)) {
    const items = value.map(plain);
    // The order of children is that of the server's hash table.
    return items.every((item) => typeof item === 'string') ? items.sort() : items;
  }
  if (value !== null && typeof value === 'object' && 'czxid' in value) {
    const { version, cversion, aversion, ephemeralOwner, dataLength, numChildren } = value;
    const ephemeral = ephemeralOwner.some((byte) => byte !== 0);
    return { version, cversion, aversion, ephemeral, dataLength, numChildren };
  }
  return value;
}

/** Writes the answer of a call, at the place where the answer came. */
function call(client, step, method, ...args) {
  return new Promise((resolve) => {
    client[method](...args, (error, ...results) => {
      const answer = error ? { error: error.getName() } : { results: plain(results) };
      print({ by: client.label, say: step, ...answer });
      resolve(results[0]);
    });
  });
}

function commit(client, transaction, step) {
  return new Promise((resolve) => {
    transaction.commit((error, results) => {
      const items = results?.map(resultOf);
      print({ by: client.label, say: step, error: error?.getName(), results: items });
      resolve(undefined);
    });
  });
}

function resultOf(result) {
  if (result.type === -1) return { code: result.err };
  return { type: result.type, path: result.path, stat: plain(result.stat) };
}

/** A watcher that writes its event at once, and can be waited for. */
function watcher(step, by = 'main') {
  let tell;
  const told = new Promise((resolve) => {
    tell = resolve;
  });
  const watch = (event) => {
    print({ by, say: step, event: event.getName(), path: event.getPath() });
    tell();
  };
  watch.told = told;
  return watch;
}

function open(label, address, sessionTimeout) {
  const client = zookeeper.createClient(address, { sessionTimeout, spinDelay: 50, retries: 0 });
  return Object.assign(client, { label });
}

async function connected(client, step) {
  await new Promise((resolve) => {
    client.once('connected', resolve);
    client.connect();
  });
  const state = client.getState().getName();
  print({ by: client.label, say: step, timeout: client.getSessionTimeout(), state });
}

function next(client, step, event) {
  return new Promise((resolve) => {
    client.once(event, () => {
      print({ by: client.label, say: step, event });
      resolve(undefined);
    });
  });
}

async function closed(client, step) {
  const ended = next(client, step, 'disconnected');
  client.close();
  await ended;
}

async function creating(zk) {
  await call(zk, 'nothing there', 'exists', root);
  await call(zk, 'create', 'create', root);
  await call(zk, 'null is read', 'getData', root);
  await call(zk, 'data', 'create', `${root}/data`, Buffer.from('grüße'));
  await call(zk, 'data is read', 'getData', `${root}/data`);
  await call(zk, 'empty', 'create', `${root}/empty`, Buffer.alloc(0));
  await call(zk, 'empty is read', 'getData', `${root}/empty`);
  for (const mode of Object.keys(CreateMode).sort()) {
    await call(zk, mode, 'create', `${root}/${mode}-`, CreateMode[mode]);
  }
  await call(zk, 'children', 'getChildren', root);
  await call(zk, 'removed', 'remove', `${root}/EPHEMERAL-`, -1);
  const mode = CreateMode.EPHEMERAL_SEQUENTIAL;
  await call(zk, 'numbers go on', 'create', `${root}/x-`, mode);
  await call(zk, 'mkdirp', 'mkdirp', `${root}/a/b/c`, Buffer.from('deep'));
  await call(zk, 'tree', 'listSubTreeBFS', `${root}/a`);
  await call(zk, 'large', 'create', `${root}/large`, Buffer.alloc(1_000_000, 'x'));
  await call(zk, 'large is read', 'getData', `${root}/large`);
}

async function refusals(zk) {
  await call(zk, 'exists already', 'create', root);
  await call(zk, 'no parent', 'create', `${root}/none/child`);
  await call(zk, 'ephemeral', 'create', `${root}/ephemeral`, CreateMode.EPHEMERAL);
  await call(zk, 'ephemerals have no children', 'create', `${root}/ephemeral/child`);
  await call(zk, 'no node: getData', 'getData', `${root}/none`);
  await call(zk, 'no node: setData', 'setData', `${root}/none`, Buffer.alloc(0), -1);
  await call(zk, 'no node: remove', 'remove', `${root}/none`, -1);
  await call(zk, 'no node: getChildren', 'getChildren', `${root}/none`);
  await call(zk, 'no node: getACL', 'getACL', `${root}/none`);
  await call(zk, 'not empty', 'remove', `${root}/a`, -1);
  await call(zk, 'version 0', 'setData', `${root}/data`, Buffer.from('one'), 0);
  await call(zk, 'version 0 again', 'setData', `${root}/data`, Buffer.from('two'), 0);
  await call(zk, 'to empty', 'setData', `${root}/data`, Buffer.alloc(0), 1);
  await call(zk, 'empty is read again', 'getData', `${root}/data`);
  await call(zk, 'remove a wrong version', 'remove', `${root}/data`, 1);
  await call(zk, 'remove the right version', 'remove', `${root}/data`, 2);
  await call(zk, 'remove the tree', 'removeRecursive', `${root}/a`, -1);
  await call(zk, 'counters', 'exists', root);
}

async function access(zk, other) {
  const digest = new Id('digest', 'joe:oesAybBun9icKJjQSTRN8OBueSc='); // joe:secret
  const joe = new ACL(Permission.ALL, digest);
  await call(zk, 'default acl', 'getACL', root);
  await call(zk, "joe's", 'create', `${root}/joes`, Buffer.from('x'), [joe]);
  await call(zk, 'stranger gets', 'getData', `${root}/joes`);
  await call(zk, 'stranger sets the acl', 'setACL', `${root}/joes`, ACL.OPEN_ACL_UNSAFE, -1);
  await call(zk, 'auth of nobody', 'create', `${root}/mine`, null, ACL.CREATOR_ALL_ACL, 0);
  zk.addAuthInfo('digest', Buffer.from('joe:secret'));
  await call(zk, 'joe gets', 'getData', `${root}/joes`);
  await call(zk, 'the creator', 'create', `${root}/mine`, null, ACL.CREATOR_ALL_ACL, 0);
  await call(zk, 'by name', 'getACL', `${root}/mine`);
  await call(zk, 'everybody reads', 'setACL', `${root}/mine`, ACL.READ_ACL_UNSAFE, 0);
  await call(zk, 'once', 'setACL', `${root}/mine`, ACL.READ_ACL_UNSAFE, 0);
  await call(other, 'the other gets', 'getData', `${root}/mine`);
  await call(other, 'the other does not set', 'setData', `${root}/mine`, Buffer.alloc(0), -1);
  await call(other, "the other does not get joe's", 'getData', `${root}/joes`);
}

async function watches(zk, other) {
  const node = `${root}/watched`;
  const created = watcher('told of the own creation');
  await call(zk, 'absent', 'exists', node, created);
  await call(zk, 'created', 'create', node);
  const data = watcher('data changed');
  const exists = watcher('exists changed');
  const children = watcher('children changed');
  await call(zk, 'watch data', 'getData', node, data);
  await call(zk, 'watch existence', 'exists', node, exists);
  await call(zk, 'watch children', 'getChildren', node, children);
  await call(zk, 'own change', 'setData', node, Buffer.from('1'), -1);
  await call(zk, 'once only', 'setData', node, Buffer.from('2'), -1);
  await call(other, 'a child by the other', 'create', `${node}/child`);
  await children.told;
  const ends = ['data', 'existence', 'children'].map((kind) => watcher(`end of ${kind}`));
  await call(zk, 'data', 'getData', node, ends[0]);
  await call(zk, 'existence', 'exists', node, ends[1]);
  await call(zk, 'children', 'getChildren', node, ends[2]);
  const parent = watcher('end in the parent');
  await call(zk, 'parent', 'getChildren', root, parent);
  const below = watcher('end of the child');
  await call(zk, 'below', 'exists', `${node}/child`, below);
  await commit(
    other,
    other.transaction().remove(`${node}/child`, -1).remove(node, -1),
    'both gone in one transaction',
  );
  await Promise.all([ends[0].told, ends[2].told, parent.told, below.told]);
  await call(zk, 'no watch on what a get did not find', 'getData', node, watcher('never'));
  await call(zk, 'again', 'create', node);
  await call(zk, 'and nobody told', 'remove', node, -1);
}

/** All is written before anything is answered: answers and events come in the order of the wire. */
async function pipelining(zk) {
  const node = `${root}/pipe`;
  const calls = [
    call(zk, 'pipe: absent', 'exists', node, watcher('pipe: created')),
    call(zk, 'pipe: create', 'create', node, Buffer.from('0')),
    call(zk, 'pipe: watch', 'getData', node, watcher('pipe: changed')),
    call(zk, 'pipe: set', 'setData', node, Buffer.from('1'), 0),
    call(zk, 'pipe: refused', 'setData', node, Buffer.from('2'), 0),
    call(zk, 'pipe: get', 'getData', node, watcher('pipe: end')),
    call(zk, 'pipe: list', 'getChildren', node, watcher('pipe: children')),
    call(zk, 'pipe: child', 'create', `${node}/child`),
    call(zk, 'pipe: not empty', 'remove', node, -1),
    call(zk, 'pipe: child gone', 'remove', `${node}/child`, -1),
    call(zk, 'pipe: gone', 'remove', node, -1),
    call(zk, 'pipe: no more', 'exists', node),
  ];
  await Promise.all(calls);
}

async function transactions(zk) {
  const node = `${root}/multi`;
  await commit(
    zk,
    zk
      .transaction()
      .create(node, Buffer.from('0'))
      .setData(node, Buffer.from('1'))
      .check(node, 1)
      .create(`${node}/n-`, null, CreateMode.PERSISTENT_SEQUENTIAL)
      .create(`${node}/gone`)
      .remove(`${node}/gone`),
    'all of it',
  );
  await call(zk, 'afterwards', 'getData', node);
  await call(zk, 'watch', 'getData', node, watcher('the next change, not the one that failed'));
  await commit(
    zk,
    zk.transaction().setData(node, Buffer.from('2')).check(node, 7).remove(node),
    'nothing of it',
  );
  await call(zk, 'unchanged', 'getData', node);
  await commit(zk, zk.transaction().check(node, 1).create(node), 'exists already');
  await commit(zk, zk.transaction().remove(`${root}/none`).check(node, 1), 'no node first');
  await commit(zk, zk.transaction().check(node, 1).check(root, -1), 'checks alone');
  await call(zk, 'a change', 'setData', node, Buffer.from('3'), 1);
}

async function reconnecting(zk, other) {
  const at = (name) => `${root}/away-${name}`;
  for (const name of ['changed', 'deleted', 'listed', 'quiet']) {
    await call(zk, `there: ${name}`, 'create', at(name));
  }
  const told = {};
  for (const name of ['changed', 'deleted', 'quiet', 'late']) {
    told[name] = watcher(`away: ${name}`);
  }
  await call(zk, 'watch changed', 'getData', at('changed'), told.changed);
  await call(zk, 'watch deleted', 'exists', at('deleted'), told.deleted);
  await call(zk, 'watch quiet', 'getData', at('quiet'), told.quiet);
  told.created = watcher('away: created');
  await call(zk, 'watch created', 'exists', at('created'), told.created);
  told.listed = watcher('away: listed');
  await call(zk, 'watch listed', 'getChildren', at('listed'), told.listed);
  told.unlisted = watcher('away: children of the deleted');
  await call(zk, 'watch the list of the deleted', 'getChildren', at('deleted'), told.unlisted);
  await call(zk, 'watch late', 'exists', at('late'), told.late);
  const session = zk.getSessionId();

  const gone = next(zk, 'cut off', 'disconnected');
  await ask('cut');
  await gone;
  await call(other, 'changes', 'setData', at('changed'), Buffer.from('1'), -1);
  await call(other, 'deletes', 'remove', at('deleted'), -1);
  await call(other, 'creates', 'create', at('created'));
  await call(other, 'lists', 'create', `${at('listed')}/child`);
  const back = next(zk, 'back', 'connected');
  await ask('heal');
  await back;
  await Promise.all(
    ['changed', 'deleted', 'created', 'listed', 'unlisted'].map((name) => told[name].told),
  );
  print({ by: 'main', say: 'the same session', same: zk.getSessionId().equals(session) });
  await call(other, 'the quiet one changes', 'setData', at('quiet'), Buffer.from('1'), -1);
  await told.quiet.told;
  await call(other, 'the late one comes', 'create', at('late'));
  await told.late.told;
  await call(zk, 'still joe', 'getData', `${root}/joes`);
  await call(zk, 'the ephemeral is still there', 'exists', `${root}/ephemeral`);
}

async function expiring(zk, other) {
  const node = `${root}/ephemeral`;
  // Only one ephemeral node at the end: the order of several would be that of the server's hash
  // table.
  const names = await call(zk, 'children', 'getChildren', root);
  for (const name of names.sort()) {
    if (!/^(x-|EPHEMERAL_SEQ)/.test(name)) continue;
    await call(zk, `less of ${name}`, 'remove', `${root}/${name}`, -1);
  }
  const gone = watcher('gone with the session', 'other');
  const parent = watcher('gone from the list', 'other');
  await call(other, 'watched', 'exists', node, gone);
  await call(other, 'parent watched', 'getChildren', root, parent);
  const away = next(zk, 'cut off', 'disconnected');
  await ask('cut');
  await away;
  await ask('expire');
  await Promise.all([gone.told, parent.told]);
  const expired = next(zk, 'expired', 'expired');
  await ask('heal');
  await expired;
  await call(zk, 'of no use any more', 'exists', root);
}

async function chrooted() {
  const zk = open('chrooted', `${passersAddress}${root}/multi`, othersTimeout);
  await connected(zk, 'in a chroot');
  await call(zk, 'its root', 'getData', '/');
  await call(zk, 'its children', 'getChildren', '/');
  await call(zk, 'absent', 'exists', '/in', watcher('in the chroot', 'chrooted'));
  await call(zk, 'create', 'create', '/in', CreateMode.EPHEMERAL);
  await closed(zk, 'left');
}

async function stranger() {
  const zk = open('stranger', passersAddress, othersTimeout);
  zk.addAuthInfo('nonsense', Buffer.from('x'));
  const failed = next(zk, 'an unknown scheme', 'authenticationFailed');
  zk.connect();
  await failed;
}

const zk = open('main', mainAddress, timeout);
const other = open('other', otherAddress, othersTimeout);
await connected(zk, 'connected');
await connected(other, 'the other connected');
await creating(zk);
await refusals(zk);
await access(zk, other);
await watches(zk, other);
await pipelining(zk);
await transactions(zk);
await chrooted();
await stranger();
await reconnecting(zk, other);
await expiring(zk, other);
await closed(other, 'end');
process.exit(0);
