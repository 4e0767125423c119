/** The code that docs/coming-from/zookeeper-cpp.md shows. */

import { acl, connect, permissions, TransactionError } from '@incumbent/zookeeper';

const client = await connect('zk://zk1:2181,zk2:2181,zk3:2181');
await client.create('/greeting', 'hello');
const watched = await client.watch('/greeting');
if (watched.value !== undefined) {
  const { version } = watched.value.stat;
  await client.set('/greeting', 'goodbye', { version });
}
console.log((await watched.changed).type); // changed
await client.close();

const zk = await connect('zk://zk1:2181,zk2:2181,zk3:2181');
await zk.ensurePath('/a');
await zk.set('/a', 'one', { timeoutMs: 5_000 }); // a bound for this call
const [first, second] = await Promise.all([zk.get('/a'), zk.exists('/b')]);
console.log(first.text, second); // one false
await zk.get('/b').catch((error) => console.log(error.code)); // NO_NODE

try {
  const { results } = await zk
    .transaction()
    .check('/a', 1)
    .create('/job-', 'next', { sequential: true })
    .set('/a', 'two')
    .commit();
  console.log(results[1]?.path); // /job-0000000001
  await zk.transaction().set('/a', 'three').delete('/b').commit();
} catch (error) {
  if (!(error instanceof TransactionError)) throw error;
  console.log(error.index, error.cause.code, error.outcomes[0]); // 1 NO_NODE would-have-succeeded
}

await zk.addAuth('digest', 'joe:secret'); // there: –
await zk.create('/mine', 'x', {
  acl: [acl.digest('joe', 'secret'), acl.world(permissions.read | permissions.create)],
});
const before = await zk.getAcl('/mine');
await zk.setAcl('/mine', [acl.auth()], { version: before.stat.aversion });

const once = await zk.watchChildren('/mine');
const all = await zk.addWatch('/mine', { recursive: true }); // every change below, from now on
await zk.create('/mine/part', 'y');
console.log(once.value.children.length, (await once.changed).type); // 0 children-changed
for await (const event of all) {
  console.log(event.type, event.type === 'gap' ? '' : event.path); // created /mine/part
  break; // ends the watch
}
await zk.close();

import { startZooKeeper } from '@incumbent/zookeeper-testing';

async function trial(config: string) {
  await using servers = await startZooKeeper({ config }); // 'conf/zoo.cfg', or its text
  await using own = await connect(servers.connectionString);
  await own.create('/a', 'x');
} // both are closed here

await trial('tickTime=2000');
