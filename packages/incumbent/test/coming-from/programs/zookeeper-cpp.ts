/** The program that docs/coming-from/zookeeper-cpp.md shows. */

import { connect } from '@incumbent/zookeeper';

const client = await connect('zk://zk1:2181,zk2:2181,zk3:2181');
await client.create('/greeting', 'hello');
const watched = await client.watch('/greeting');
if (watched.value !== undefined) {
  const { version } = watched.value.stat;
  await client.set('/greeting', 'goodbye', { version });
}
console.log((await watched.changed).type); // changed
await client.close();
