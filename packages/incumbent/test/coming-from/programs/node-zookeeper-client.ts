/** The program that docs/coming-from/node-zookeeper-client.md shows. */

import { connect } from '@incumbent/zookeeper';

const client = await connect('zk://zk1:2181,zk2:2181,zk3:2181', { sessionTimeoutMs: 30_000 });
await client.create('/greeting', 'hello', { ephemeral: true });
const { value, changed } = await client.watch('/greeting');
console.log(value?.text); // hello
console.log((await changed).type); // changed, when somebody has set it
