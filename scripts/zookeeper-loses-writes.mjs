// Does ZooKeeper itself lose writes that it has acknowledged? Four clients make nodes while servers
// of an ensemble of three are killed. After each five rounds every server is asked which of the
// nodes it has. With --force-snapshots a server that comes back gets a whole snapshot. Only a busy
// machine shows it: three at once.
//
//   for i in 1 2 3; do node scripts/zookeeper-loses-writes.mjs & done; wait

import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connect, createClient } from '@incumbent/zookeeper';
import { startEnsemble } from '@incumbent/zookeeper-testing';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    'force-snapshots': { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const isForced = values['force-snapshots'];
const roundsPerLook = 5;
const folder = '/made';
const upTo = (ms) => Math.floor(Math.random() * ms);

const ensemble = await startEnsemble(3, {
  minSessionTimeoutMs: 3_000,
  ...(isForced && { systemProperties: { 'zookeeper.forceSnapshotSync': true } }),
});
const clients = [];
for (let i = 0; i < 4; i += 1) {
  clients.push(await connect(ensemble.connectionString, { sessionTimeoutMs: 6_000 }));
}
await clients[0].create(folder);

let isOver = false;
let names = 0;
let made = 0;
let lost = 0;
const acknowledged = new Set();
const writing = clients.map(async (client) => {
  while (!isOver) {
    const name = `n${names++}`;
    try {
      await client.create(`${folder}/${name}`);
      acknowledged.add(name);
      made += 1;
    } catch {
      await pause(20);
    }
  }
});

/** The nodes that each server has, one server after the other. */
async function look(round) {
  const wanted = [...acknowledged];
  for (const { host, port, id } of ensemble.members) {
    const client = createClient(`zk://${host}:${port}`, { sessionTimeoutMs: 6_000 });
    const has = await insist(async () => {
      await client.sync('/');
      return new Set((await client.getChildren(folder)).children);
    });
    await client.close();
    const missing = wanted.filter((name) => !has.has(name));
    lost += missing.length;
    if (missing.length > 0) {
      console.log(`round ${round}: server ${id} lacks ${missing.length} acknowledged nodes`);
    }
  }
  for (const name of wanted) {
    acknowledged.delete(name);
    clients[0].delete(`${folder}/${name}`).catch(() => {});
  }
}

async function insist(ask) {
  for (;;) {
    try {
      return await ask();
    } catch {
      await pause(100);
    }
  }
}

async function killFor(member, ms) {
  await member.kill();
  await pause(ms);
  await member.restart();
}

for (let round = 1; round <= rounds; round += 1) {
  await pause(300 + upTo(700));
  const isLeader = Math.random() < 0.6;
  await killFor(isLeader ? await ensemble.leader() : ensemble.members[upTo(3)], upTo(1_500));
  await pause(upTo(400));
  if (Math.random() < 0.5) await killFor(ensemble.members[upTo(3)], upTo(300));
  await ensemble.waitForQuorum({ atLeast: 3, timeoutMs: 60_000 });
  if (round % roundsPerLook === 0) await look(round);
}
isOver = true;
await Promise.all(writing);
await Promise.all(clients.map((client) => client.close()));
await ensemble.close();
const how = isForced ? 'with whole snapshots' : 'as it is by default';
console.log(`${how}: ${rounds} rounds, ${made} nodes made, ${lost} missing on a server`);
