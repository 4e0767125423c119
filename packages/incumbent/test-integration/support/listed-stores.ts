/** Every store that lists its elections, with the means for a test to spoil it. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect as connectTo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { Storage } from '@google-cloud/storage';
import type { Interceptor } from '@grpc/grpc-js';
import { Client, credentials, InterceptingCall, Metadata } from '@grpc/grpc-js';
import type { RedisServer } from '@incumbent/servers';
import {
  etcdAvailable,
  FakeApiServer,
  FakeGcs,
  FakeS3,
  startEtcd,
  startPostgres,
  startRedis,
  startRedisCluster,
} from '@incumbent/servers';
import { startServer } from '@incumbent/zookeeper-testing';
import { Cluster } from 'ioredis';
import pg from 'pg';
import { createCluster } from 'redis';
import { connect } from '../../../zookeeper/src/index.ts';
import { etcd } from '../../src/backends/etcd/index.ts';
import { file } from '../../src/backends/file/index.ts';
import { gcs } from '../../src/backends/gcs/index.ts';
import { apiServer, kubernetes, recordAnnotation } from '../../src/backends/kubernetes/index.ts';
import { postgres, schema } from '../../src/backends/postgres/index.ts';
import type { RedisClient } from '../../src/backends/redis/index.ts';
import { redis } from '../../src/backends/redis/index.ts';
import { s3 } from '../../src/backends/s3/index.ts';
import type { ZooKeeperLayout } from '../../src/backends/zookeeper/index.ts';
import { zookeeper } from '../../src/backends/zookeeper/index.ts';
import type { Backend } from '../../src/core/contest.ts';
import { missing as noPostgres } from './postgres.ts';
import { missing as noRedis, openClient } from './redis.ts';
import { s3Client, s3Commands } from './s3.ts';
import { missing as noZooKeeper } from './zookeeper.ts';

export interface RunningListedStore {
  readonly backend: Backend;
  /** Another connection, of a user who may read and nothing else. */
  readonly openReader: (() => Promise<Backend>) | undefined;
  /** Puts things of other programs beside the elections. */
  strew(): Promise<unknown>;
  /** Makes the record of this election unreadable. */
  damage(election: string): Promise<unknown>;
  /** As `damage`, for a lease. */
  damageLease(name: string): Promise<unknown>;
  /** How many requests the server was sent, where it tells. */
  requests?(): Promise<number>;
  close(): Promise<void>;
}

export interface ListedStore {
  readonly name: string;
  readonly missing: string | undefined;
  /** D for scenarios, in ms. */
  readonly leaseMs: number;
  /** Each election takes requests of its own, so a test has fewer. */
  readonly isByRequest?: boolean;
  start(): Promise<RunningListedStore>;
}

const ttlMs = 10_000;
const broken = '{"incumbent":"queue","format":1,"election":';

export const listedStores: readonly ListedStore[] = [
  { name: 'files', missing: undefined, leaseMs: 5_000, start: startFiles },
  { name: 'PostgreSQL', missing: noPostgres, leaseMs: 5_000, start: startOnPostgres },
  { name: 'Redis by redis', missing: noRedis, leaseMs: 5_000, start: () => startOnRedis('redis') },
  {
    ...{ name: 'Redis by ioredis', missing: noRedis, leaseMs: 5_000 },
    start: () => startOnRedis('ioredis'),
  },
  {
    ...{ name: 'a Redis cluster by redis', missing: noRedis, leaseMs: 5_000 },
    start: () => startOnCluster('redis'),
  },
  {
    ...{ name: 'a Redis cluster by ioredis', missing: noRedis, leaseMs: 5_000 },
    start: () => startOnCluster('ioredis'),
  },
  { name: 'etcd', missing: etcdAvailable(), leaseMs: ttlMs, start: startOnEtcd },
  ...(['incumbent', 'golea', 'curator-latch', 'hadoop', 'node'] as const).map(
    (layout): ListedStore => ({
      ...{ name: `ZooKeeper, layout ${layout}`, missing: noZooKeeper, leaseMs: 4_000 },
      start: () => startOnZooKeeper(layout),
    }),
  ),
  { name: 'Kubernetes', missing: undefined, leaseMs: 5_000, start: startOnKubernetes },
  { name: 'S3', missing: undefined, leaseMs: 5_000, isByRequest: true, start: startOnS3 },
  {
    name: 'Cloud Storage',
    missing: undefined,
    leaseMs: 5_000,
    isByRequest: true,
    start: startOnGcs,
  },
];

async function damageIn(path: string): Promise<void> {
  const names = await readdir(path);
  const newest =
    names
      .filter((name) => /^\d+$/.test(name))
      .sort()
      .at(-1) ?? '';
  await writeFile(join(path, newest), 'no record');
}

async function startFiles(): Promise<RunningListedStore> {
  const directory = await mkdtemp(join(tmpdir(), 'incumbent-listing-'));
  return {
    backend: file(directory),
    // Another user of this machine. Tests run as one.
    openReader: undefined,
    async strew() {
      await mkdir(join(directory, 'other-empty'));
      await mkdir(join(directory, 'other-full'));
      await writeFile(join(directory, 'other-full', 'notes.txt'), 'x');
      await writeFile(join(directory, 'other-file'), 'x');
    },
    damage: (election) => damageIn(join(directory, election)),
    damageLease: (name) => damageIn(join(directory, '.leases', `_${encodeURIComponent(name)}`)),
    close: () => rm(directory, { recursive: true, force: true }),
  };
}

async function startOnPostgres(): Promise<RunningListedStore> {
  const server = await startPostgres();
  const pool = new pg.Pool({ connectionString: server.url });
  const readers: pg.Pool[] = [];
  let sent = 0;
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...words: unknown[]) => unknown;
    client.query = ((...words: unknown[]) => {
      sent += 1;
      return query(...words);
    }) as typeof client.query;
  });
  await pool.query(schema());
  const damage = (name: string) =>
    pool.query('update incumbent_election set record = $2 where name = $1', [name, '{']);
  await pool.query(`create role reader login; grant select on incumbent_election to reader`);
  return {
    backend: postgres(pool, { clockStep: 0 }),
    async openReader() {
      const connectionString = server.url.replace('postgres@', 'reader@');
      const reader = new pg.Pool({ connectionString });
      readers.push(reader);
      return postgres(reader, { listen: false });
    },
    strew: () =>
      pool.query("insert into incumbent_election (name, version) values ('other-looked-at', 'x')"),
    damage,
    damageLease: damage,
    requests: async () => sent,
    async close() {
      await Promise.all([pool, ...readers].map((each) => each.end()));
      await server.close();
    },
  };
}

async function startOnRedis(library: 'redis' | 'ioredis'): Promise<RunningListedStore> {
  const server = await startRedis();
  const opened = [await openClient(library, server)];
  return {
    ...redisParts([server], redis(opened[0]?.client as RedisClient, { clockStep: 0 })),
    async openReader() {
      const rights = '+scan +eval +evalsha +hmget +hvals +info +time ~incumbent:* &*'.split(' ');
      const common = ['reset', 'on', '>secret', '-@all', '+@connection'];
      await server.command('ACL', 'SETUSER', 'reader', ...common, ...rights);
      const login = { username: 'reader', password: 'secret' };
      const reader = await openClient(library, server, login);
      opened.push(reader);
      return redis(reader.client, { listen: false });
    },
    async close() {
      for (const each of opened) each.close();
      await server.close();
    },
  };
}

async function startOnCluster(library: 'redis' | 'ioredis'): Promise<RunningListedStore> {
  const servers = await startRedisCluster(3);
  const nodes = servers.map(({ port }) => ({ host: '127.0.0.1', port }));
  let client: RedisClient;
  let close: () => unknown;
  if (library === 'ioredis') {
    const cluster = new Cluster(nodes, { keyPrefix: 'app:' });
    cluster.on('error', () => {});
    client = cluster;
    close = () => cluster.disconnect();
  } else {
    const rootNodes = nodes.map((socket) => ({ socket }));
    const cluster = createCluster({ rootNodes });
    cluster.on('error', () => {});
    await cluster.connect();
    client = cluster as unknown as RedisClient;
    close = () => cluster.destroy();
  }
  const prefix = library === 'ioredis' ? 'app:' : '';
  return {
    ...redisParts(servers, redis(client, { clockStep: 0 }), prefix),
    openReader: undefined,
    async close() {
      close();
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

function redisParts(servers: readonly RedisServer[], backend: Backend, prefix = '') {
  /** On a cluster, the server that has the key. */
  const onOwner = async (...parts: string[]) => {
    const tries = await Promise.allSettled(servers.map((server) => server.command(...parts)));
    if (!tries.some(({ status }) => status === 'fulfilled')) throw new Error('no server took it');
  };
  return {
    backend,
    async strew() {
      await onOwner('SET', `${prefix}incumbent:{other-text}`, 'x');
      await onOwner('HSET', `${prefix}incumbent:{other-hash}`, 'field', 'x');
      await onOwner('HSET', `${prefix}incumbent:{other%41}`, 'record', '{}');
      await onOwner('HSET', `${prefix}incumbent:{other-fence}:fence`, 'record', '{}');
    },
    damage: (election: string) =>
      onOwner('HSET', `${prefix}incumbent:{${election}}`, 'record', '{"election":'),
    damageLease: (name: string) =>
      onOwner('HSET', `${prefix}incumbent:{${name.replace('/', '}/')}`, 'record', '{"election":'),
    async requests() {
      let count = 0;
      for (const server of servers) {
        // Those that clients send. Scripts call others, which the server counts too.
        const stats = String(await server.command('INFO', 'commandstats'));
        for (const sent of ['scan', 'eval', 'evalsha', 'time']) {
          count += Number(new RegExp(`cmdstat_${sent}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
        }
      }
      return count;
    },
  };
}

async function startOnEtcd(): Promise<RunningListedStore> {
  const server = await startEtcd();
  const clients: Client[] = [];
  let sent = 0;
  const count: Interceptor = (options, nextCall) => {
    sent += 1;
    return new InterceptingCall(nextCall(options));
  };
  const client = () => {
    const address = `127.0.0.1:${server.port}`;
    const made = new Client(address, credentials.createInsecure(), { interceptors: [count] });
    clients.push(made);
    return made;
  };
  const records = 'elections/incumbent/record/';
  return {
    backend: etcd(client(), { ttl: ttlMs, root: 'elections/' }),
    async openReader() {
      for (const words of [
        ['user', 'add', 'root:secret'],
        ['user', 'grant-role', 'root', 'root'],
        ['role', 'add', 'reader'],
        ['role', 'grant-permission', '--prefix', 'reader', 'read', 'elections/'],
        ['user', 'add', 'reader:secret'],
        ['user', 'grant-role', 'reader', 'reader'],
        ['auth', 'enable'],
      ]) {
        await server.etcdctl(...words);
      }
      const auth = { user: 'reader', password: 'secret', Metadata };
      return etcd(client(), { ttl: ttlMs, root: 'elections/', auth });
    },
    async strew() {
      await server.etcdctl('put', 'elections/other/694d', 'a Go program');
      await server.etcdctl('put', 'other', 'x');
      await server.etcdctl('put', `${records}other/`, 'x');
    },
    damage: (election) => server.etcdctl('put', `${records}${election}`, '{'),
    damageLease: (name) => server.etcdctl('put', `elections/incumbent/lease/${name}`, '{'),
    requests: async () => sent,
    async close() {
      for (const each of clients) each.close();
      await server.close();
    },
  };
}

async function startOnZooKeeper(layout: ZooKeeperLayout): Promise<RunningListedStore> {
  const server = await startServer({ tickTimeMs: 200 });
  const { connectionString } = server;
  const auth = [{ scheme: 'digest', credentials: 'owner:secret' }];
  const client = await connect(connectionString, { sessionTimeoutMs: 4_000, auth });
  const clients = [client];
  const root = '/apps/elections';
  const options = { layout, root, create: true, tickTime: 200 } as const;
  const acl = [
    { perms: 31, scheme: 'auth', id: '' },
    { perms: 1, scheme: 'world', id: 'anyone' },
  ];
  const nodeOf = (election: string) =>
    `${root}/${election}${layout === 'node' ? '.incumbent' : ''}`;
  return {
    backend: zookeeper(client, { ...options, acl }),
    async openReader() {
      const reader = await connect(connectionString, { sessionTimeoutMs: 4_000 });
      clients.push(reader);
      return zookeeper(reader, options);
    },
    async strew() {
      await client.ensurePath(`${root}/other/folder`);
      await client.create(`${root}/other-data`, 'x');
      await client.create(`${root}/other-data/child`, '{}');
    },
    damage: (election) => client.set(nodeOf(election), broken),
    damageLease: (name) => client.set(`${root}/.leases/${name}`, broken),
    requests: () => receivedBy(server.port),
    async close() {
      await Promise.all(clients.map((each) => each.close()));
      await server.close();
    },
  };
}

/** By the server's own count, with pings and this question. */
async function receivedBy(port: number): Promise<number> {
  const socket = connectTo({ port, host: '127.0.0.1' });
  socket.write('srvr');
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += chunk;
  return Number(/^Received: (\d+)$/m.exec(text)?.[1]);
}

async function startOnKubernetes(): Promise<RunningListedStore> {
  const server = await FakeApiServer.start({ plain: true });
  const api = apiServer(server.access);
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
  const damage = (name: string) =>
    api.request({
      method: 'PATCH',
      path: `${path}/${name}`,
      contentType: 'application/merge-patch+json',
      body: { metadata: { annotations: { [recordAnnotation]: '{' } } },
    });
  return {
    backend: kubernetes(api),
    async openReader() {
      server.accounts.addToken('reading', 'reader');
      server.accounts.allow('reader', { verbs: ['get', 'list', 'watch'] });
      return kubernetes(apiServer({ ...server.access, token: 'reading' }));
    },
    strew: () =>
      api.request({
        method: 'POST',
        path,
        body: {
          ...lease,
          metadata: { name: 'other-controller' },
          spec: { holderIdentity: 'other_1', leaseDurationSeconds: 15 },
        },
      }),
    damage,
    damageLease: (name) => damage(name.replace('/', '.')),
    requests: async () => server.requests.length,
    async close() {
      api.close();
      await server.close();
    },
  };
}

async function startOnS3(): Promise<RunningListedStore> {
  const server = await FakeS3.start();
  const options = {
    ...{ bucket: 'elections', prefix: 'teams/' },
    commands: { ...s3Commands, ListObjectsV2Command },
  };
  const client = s3Client(server);
  const clients = [client];
  const put = (Key: string, Body: string) =>
    client.send(new s3Commands.PutObjectCommand({ Bucket: 'elections', Key, Body }));
  const damage = (name: string) => put(`teams/${name}`, '{"write":"x","format":1,"elect');
  return {
    backend: s3(client, options),
    async openReader() {
      const reader = { accessKeyId: 'reader', secretAccessKey: 'secret' };
      server.allow(reader, ['s3:GetObject', 's3:ListBucket']);
      const opened = s3Client(server, reader);
      clients.push(opened);
      return s3(opened, options);
    },
    async strew() {
      await put('teams/other.json', '{"name":"x"}');
      await put('elsewhere', '{"write":"x"}');
    },
    damage,
    damageLease: damage,
    requests: async () => server.requests.length,
    async close() {
      for (const each of clients) each.destroy();
      await server.close();
    },
  };
}

async function startOnGcs(): Promise<RunningListedStore> {
  const server = await FakeGcs.start();
  const storage = new Storage({ apiEndpoint: server.url, projectId: 'test' });
  const options = { bucket: 'elections', prefix: 'teams/', maxWritesPerSecond: 100 };
  const save = (name: string, text: string, contentType: string) =>
    storage.bucket('elections').file(name).save(text, { resumable: false, contentType });
  const damage = (name: string) => save(`teams/${name}`, 'hello', 'application/x-protobuf');
  return {
    backend: gcs(storage, options),
    async openReader() {
      server.allowed = new Set(['storage.objects.get', 'storage.objects.list']);
      return gcs(storage, options);
    },
    async strew() {
      await save('teams/other.txt', 'hello', 'text/plain');
      await save('elsewhere', 'hello', 'application/x-protobuf');
    },
    damage,
    damageLease: damage,
    requests: async () => server.requests.length,
    close: () => server.close(),
  };
}
