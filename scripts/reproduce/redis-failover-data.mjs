// Which node has the data? Seven ways in which a Redis failover lost acknowledged writes. Each is
// tried without persistence, with RDB and with AOF, and with copies by disk and without. Each is
// tried with one replica, with two, and with a replica of a replica. In each a node that can be
// reached has all that was acknowledged. Prints for each scenario how many writes were lost, and how
// many nodes were emptied that had them all while the primary had not.
//
//   npm run reproduce -- redis-failover-data --runs 20

import { parseArgs } from 'node:util';
import { NodeManager, nodeRedis, RedisFailover } from '@incumbent/redis-failover';
import { redisAvailable, replicasStream, startRedis } from '@incumbent/servers';
import { startServer } from '@incumbent/zookeeper-testing';
import { createClient } from 'redis';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1' },
    only: { type: 'string' },
    // They mostly wait. More of them take less time, and more of the processors.
    'at-once': { type: 'string', default: '3' },
  },
});
const runs = Number(values.runs);
const writes = 200;
const atOnce = Number(values['at-once']);
/** A set that is not whole by then is shown as it is. */
const settleMs = 20_000;

const persistences = {
  none: [],
  rdb: ['--save', '1 1'],
  aof: ['--appendonly', 'yes', '--appendfsync', 'always'],
};
const copies = { disk: 'no', diskless: 'yes' };
const shapes = { 'one replica': [0], 'two replicas': [0, 0], chain: [0, 1] };

/** In each the writes are acknowledged, and a node has them that can be reached at the end. */
const scenarios = {
  /** Managers are stopped, somebody else promotes a node, and another one is stale. */
  async A1(play) {
    await play.stopManager();
    await play.at(0).kill();
    const stale = play.servers.slice(2);
    for (const server of stale) await cutLink(server);
    await play.at(1).promote();
    await play.write(1);
    await play.manage();
  },
  /** The primary comes back with an empty directory. */
  async F1(play) {
    await play.write(0, play.servers.length - 1);
    await play.at(0).kill();
    await play.startEmpty(0);
  },
  /** A failover is asked for, and the replica has lost its link. */
  async F2(play) {
    for (const server of play.servers.slice(1)) await cutLink(server);
    await play.write(0);
    const client = await play.client();
    const { port } = play.at(1);
    await client.manualFailover({ host: '127.0.0.1', port }, { timeout: '3s' }).catch(() => {});
  },
  /** The primary dies, and the stale replica would be the quicker one. */
  async F3(play) {
    for (const server of play.servers.slice(2)) await cutLink(server);
    await play.write(0, 1);
    await play.at(0).kill();
  },
  /** The primary is started again on what its disk has, while the replicas stand still. */
  async F4(play) {
    await play.write(0, 1);
    for (const server of play.servers.slice(1)) await server.freeze();
    await play.at(0).kill();
    await play.at(0).start();
    await pause(1_000);
    for (const server of play.servers.slice(1)) server.thaw();
  },
  /** The replica that has most copies all of its data when the primary dies. */
  async F5(play) {
    for (const server of play.servers.slice(2)) await cutLink(server);
    await play.write(0, 1);
    await play.at(0).command('CONFIG', 'SET', 'rdb-key-save-delay', 100_000);
    await play.at(0).command('CONFIG', 'SET', 'repl-diskless-sync-delay', 0);
    await play.at(0).command('CONFIG', 'SET', 'repl-backlog-size', 16_384);
    await cutLink(play.at(1));
    await play.at(0).command('SET', 'big', 'x'.repeat(100_000));
    for (let at = 0; at < 50; at += 1) await play.at(0).command('SET', `k${at}`, 'v');
    await play.at(1).command('CONFIG', 'SET', 'masterauth', '');
    await until(async () => (await info(play.at(1))).master_sync_in_progress === '1');
    await play.at(0).kill();
  },
  /** The primary is killed and started again at once, on what its disk has. */
  async restart(play) {
    await play.write(0, 1);
    await play.at(0).kill();
    await play.at(0).start();
  },
};

async function playAll() {
  const plays = [];
  for (const name of Object.keys(scenarios)) {
    if (values.only !== undefined && values.only !== name) continue;
    for (const persistence of Object.keys(persistences)) {
      for (const copy of Object.keys(copies)) {
        for (const shape of Object.keys(shapes)) {
          for (let run = 0; run < runs; run += 1) plays.push({ name, persistence, copy, shape });
        }
      }
    }
  }
  const rows = new Map();
  const next = async () => {
    for (let each = plays.shift(); each !== undefined; each = plays.shift()) {
      const { name, persistence, copy, shape } = each;
      const row = rows.get(`${name} ${persistence} ${copy}`) ?? newRow(each);
      rows.set(`${name} ${persistence} ${copy}`, row);
      try {
        const result = await playOne(each);
        row.runs += 1;
        row['writes lost'] += result.lost;
        row['nodes emptied'] += result.emptied;
        row['set aside'] += result.aside;
        row['no primary'] += result.isLed ? 0 : 1;
        if (result.lost > 0 || result.emptied > 0) {
          failed += 1;
          console.log(`${name}, ${persistence}, ${copy}, ${shape}: ${JSON.stringify(result)}`);
        }
      } catch (error) {
        row['not played'] += 1;
        failed += 1;
        console.log(`${name}, ${persistence}, ${copy}, ${shape} was not played: ${error.message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, next));
  console.table([...rows.values()].sort((a, b) => (key(a) < key(b) ? -1 : 1)));
}

function newRow({ name, persistence, copy }) {
  return {
    ...{ scenario: name, persistence, copies: copy, runs: 0, 'writes lost': 0, 'nodes emptied': 0 },
    ...{ 'set aside': 0, 'no primary': 0, 'not played': 0 },
  };
}

function key({ scenario, persistence, copies }) {
  return `${scenario} ${persistence} ${copies}`;
}

async function playOne({ name, persistence, copy, shape }) {
  const play = new Play();
  try {
    await play.start(persistences[persistence], copies[copy], shapes[shape]);
    await scenarios[name](play);
    return await play.outcome();
  } finally {
    await play.close();
  }
}

let sets = 0;
let failed = 0;

class Play {
  servers = [];
  #replacements = new Map();
  #arguments;
  #root;
  #stop = new AbortController();
  #running;
  #manager;
  #clients = [];

  async start(persistence, diskless, follows) {
    sets += 1;
    this.#root = `/set-${sets}`;
    // 5 s is what Redis 7 has by default; only the first copies need not wait for that.
    this.#arguments = [
      ...persistence,
      ...['--repl-diskless-sync', diskless, '--repl-diskless-sync-delay', '5'],
    ];
    for (const followed of [undefined, ...follows]) {
      const replicaOf = followed === undefined ? undefined : this.servers[followed];
      const server = await startRedis({
        arguments: this.#arguments,
        ...(replicaOf === undefined ? {} : { replicaOf }),
      });
      this.servers.push(server);
      await server.command('CONFIG', 'SET', 'repl-diskless-sync-delay', 0);
    }
    await replicasStream(this.servers[0], this.servers.slice(1));
    for (const server of this.servers) {
      await server.command('CONFIG', 'SET', 'repl-diskless-sync-delay', 5);
    }
    await this.manage();
    await until(async () => this.#manager.status.primary === address(this.servers[0]));
  }

  at(index) {
    return this.#replacements.get(index) ?? this.servers[index];
  }

  async manage() {
    this.#stop = new AbortController();
    this.#manager = new NodeManager({
      nodes: this.servers.map(address),
      zookeeper: zooKeeper.connectionString,
      root: this.#root,
      sessionTimeout: '4s',
      // A node that is started again comes back before it counts as down.
      maxFailures: 6,
    });
    this.#running = this.#manager.run(this.#stop.signal);
  }

  async stopManager() {
    this.#stop.abort();
    await this.#running;
  }

  async client() {
    const client = await RedisFailover.connect({
      zookeeper: zooKeeper.connectionString,
      root: this.#root,
      redis: nodeRedis(createClient, {}),
    });
    this.#clients.push(client);
    return client;
  }

  async write(index, replicas = 0) {
    const all = Array.from({ length: writes }, (_, at) => at);
    await this.at(index).command('RPUSH', 'w', ...all);
    if (replicas > 0) await until(async () => (await this.#holders()) > replicas);
  }

  /** The same node with a directory that is lost. */
  async startEmpty(index) {
    const { port } = this.servers[index];
    this.#replacements.set(index, await startRedis({ port, arguments: this.#arguments }));
  }

  async #counts() {
    return Promise.all(
      this.servers.map(async (_, index) => {
        try {
          return Number(await this.at(index).command('LLEN', 'w'));
        } catch {
          return undefined;
        }
      }),
    );
  }

  async #holders() {
    return (await this.#counts()).filter((count) => count === writes).length;
  }

  /** When the primary has all, and has had it for a while; or when the time is up. */
  async outcome() {
    let had = await this.#counts();
    const most = [...had];
    let sinceMs;
    const end = performance.now() + settleMs;
    while (performance.now() < end && !(performance.now() - sinceMs > 2_500)) {
      had = await this.#counts();
      for (const [index, count] of had.entries()) {
        most[index] = Math.max(most[index] ?? 0, count ?? 0);
      }
      const leader = this.servers.findIndex(
        (each) => address(each) === this.#manager.status.primary,
      );
      if (leader >= 0 && had[leader] === writes) sinceMs ??= performance.now();
      else sinceMs = undefined;
      await pause(50);
    }
    const best = Math.max(...had.map((count) => count ?? 0));
    const emptied = had.filter(
      (count, index) => count !== undefined && count < (most[index] ?? 0) && best < writes,
    ).length;
    const { primary, quarantined, trouble } = this.#manager.status;
    return {
      ...{ lost: writes - best, emptied, aside: quarantined.length },
      ...{ isLed: sinceMs !== undefined, primary, had, trouble: trouble?.message },
    };
  }

  async close() {
    for (const client of this.#clients) await client.close();
    if (this.#running !== undefined) await this.stopManager();
    const all = [...this.servers, ...this.#replacements.values()];
    await Promise.all(all.map((server) => server.close()));
  }
}

function address({ port }) {
  return `127.0.0.1:${port}`;
}

/** A replica keeps what it has, and gets nothing more. */
async function cutLink(server) {
  await server.command('CONFIG', 'SET', 'masterauth', 'wrong');
  await server.command('CLIENT', 'KILL', 'TYPE', 'master');
}

async function info(server) {
  const text = String(await server.command('INFO', 'replication'));
  return Object.fromEntries(text.split('\r\n').map((line) => line.split(':')));
}

async function until(isSo) {
  const end = performance.now() + 20_000;
  for (;;) {
    const answer = await isSo().catch(() => undefined);
    if (answer) return answer;
    if (performance.now() > end) throw new Error('it did not come to that within 20 s');
    await pause(20);
  }
}

function pause(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

const zooKeeper = await startServer({ tickTimeMs: 200 });
try {
  const missing = redisAvailable();
  if (missing !== undefined) throw new Error(missing);
  await playAll();
} finally {
  await zooKeeper.close();
}
console.log(
  failed === 0
    ? 'ok: no write was lost, and no node emptied that had more'
    : `FAILED: ${failed} plays lost writes, emptied a node that had more, or could not be played`,
);
process.exit(failed === 0 ? 0 : 1);
