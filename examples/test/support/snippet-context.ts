/**
 * Names that the code of a page uses and takes from the reader's program, with their types. A name is
 * given to a snippet only if the snippet uses it and does not declare it.
 */
type Context = Readonly<Record<string, string>>;

const everywhere: Context = {
  backend: "const backend: import('incumbent').Backend",
  body: 'const body: string',
  createElection: "const createElection: typeof import('incumbent').createElection",
  election: "const election: import('incumbent').Election",
  id: 'const id: string',
  log: 'const log: { info(...parts: unknown[]): void; warn(...parts: unknown[]): void }',
  once: "const once: typeof import('node:events').once",
  pool: "const pool: import('pg').Pool",
  signal: 'const signal: AbortSignal',
  term: "const term: import('incumbent').Term",
  url: 'const url: string',
  work: "const work: (term: import('incumbent').Term) => Promise<void>",
};

const zooKeeper: Context = {
  client: "const client: import('@incumbent/zookeeper').ZooKeeper",
  connect: "const connect: typeof import('@incumbent/zookeeper').connect",
  term: "const term: import('incumbent').Term<import('incumbent/zookeeper').ZooKeeperGuard>",
  zookeeper: "const zookeeper: typeof import('incumbent/zookeeper').zookeeper",
};

/** Wins over `everywhere`. */
export const contexts: Readonly<Record<string, Context>> = {
  'docs/reference/grpc.md': {
    LedgerClient: "const LedgerClient: typeof import('@grpc/grpc-js').Client",
    callsEnded: "const callsEnded: typeof import('incumbent/grpc').callsEnded",
    grpc: "const grpc: typeof import('@grpc/grpc-js')",
    term: "let term: import('incumbent').Term | undefined",
  },
  'docs/reference/http.md': {
    Agent: "const Agent: typeof import('undici').Agent",
    TokenMemory: "type TokenMemory = import('incumbent/http').TokenMemory",
    agent: "const agent: import('undici').Agent",
    app: "const app: import('express').Express",
    carryToken: "const carryToken: typeof import('incumbent/http').carryToken",
    createServer: "const createServer: typeof import('node:http').createServer",
    fastify: "const fastify: import('fastify').FastifyInstance",
    fetch: "const fetch: typeof import('undici').fetch",
    leaderOnly: "const leaderOnly: typeof import('incumbent/http').leaderOnly",
    memory: "const memory: import('incumbent/http').TokenMemory",
    request: "const request: typeof import('undici').request",
    requireToken: "const requireToken: typeof import('incumbent/http').requireToken",
    term: "const term: import('incumbent').Term | undefined",
    toLeader: "const toLeader: typeof import('incumbent/http').toLeader",
  },
  'docs/reference/redis-failover-client.md': {
    failover:
      "const failover: import('@incumbent/redis-failover').RedisFailover<import('ioredis').Redis>",
    later: 'const later: () => Promise<void>',
    lookFirst: 'const lookFirst: () => Promise<void>',
  },
  'docs/reference/shards.md': {
    createShards: "const createShards: typeof import('@incumbent/shards').createShards",
    db: "const db: import('pg').Pool",
    handleTenant: "const handleTenant: import('@incumbent/shards').ShardsOptions['own']",
    LedgerClient: "const LedgerClient: typeof import('@grpc/grpc-js').Client",
    load: 'const load: (shard: number) => Promise<void>',
    serve: 'const serve: (shard: number, signal: AbortSignal) => Promise<void>',
  },
  'docs/start/work.md': {
    database: 'const database: { apply(job: unknown, fence: { token: bigint }): Promise<void> }',
    queue: 'const queue: { next(options: { signal: AbortSignal }): Promise<unknown> }',
    loadOrders: 'const loadOrders: (signal: AbortSignal) => Promise<void>',
    serve: 'const serve: (signal: AbortSignal) => Promise<void>',
  },
  'docs/stores/etcd.md': {
    kv: "const kv: import('etcd3').Etcd3",
    put: 'const put: object',
    term: "const term: import('incumbent').Term<import('incumbent/etcd').EtcdGuard>",
  },
  'docs/stores/index.md': {
    name: 'const name: string',
  },
  'docs/stores/kubernetes.md': {
    api: "const api: import('incumbent/kubernetes').KubernetesApi",
  },
  'docs/stores/postgres.md': {
    postgres: "const postgres: typeof import('postgres')",
    sql: "const sql: import('postgres').Sql",
    term: "const term: import('incumbent').Term<import('incumbent/postgres').PostgresGuard>",
    text: 'const text: string',
  },
  'docs/stores/redis.md': {
    election: "const election: import('incumbent').Election<import('incumbent/redis').RedisGuard>",
    report: 'const report: string',
  },
  'docs/stores/zookeeper.md': zooKeeper,
  'docs/stores/zookeeper-hadoop.md': {
    ...zooKeeper,
    askToStandDown: 'const askToStandDown: (old: object, options: object) => Promise<boolean>',
    isHealthy: 'const isHealthy: () => Promise<void>',
    powerOff: 'const powerOff: (old: object, options: object) => Promise<void>',
    serve: 'const serve: (options: object) => Promise<void>',
  },
  'docs/stores/zookeeper-layouts.md': zooKeeper,
  'docs/stores/zookeeper-node.md': {
    ...zooKeeper,
    serve: 'const serve: (options: object) => Promise<void>',
  },
  'packages/zookeeper/README.md': zooKeeper,
};

/** @returns the declarations that this code needs before it, each on a line of its own */
export function contextOf(page: string, code: string): string {
  const given = { ...everywhere, ...contexts[page] };
  return Object.entries(given)
    .filter(([name]) => new RegExp(`(?<![.\\w'-])${name}\\b(?!\\s*:)`).test(code))
    .filter(([name]) => !declares(code, name))
    .map(([, declaration]) => `declare ${declaration};\n`)
    .join('');
}

/** Whether the code makes the name itself, on its outermost level. */
function declares(code: string, name: string): boolean {
  const patterns = [
    `^(?:export )?(?:await using|const|let|function|class|async function) ${name}\\b`,
    `^(?:const|let) \\{[^}]*\\b${name}\\b[^}]*\\}`,
    `^import [^;]*?\\b${name}\\b[^;]*? from `,
  ];
  return patterns.some((pattern) => new RegExp(pattern, 'm').test(code));
}
