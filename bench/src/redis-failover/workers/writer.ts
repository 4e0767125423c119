import { ioredis, RedisFailover } from '@incumbent/redis-failover';
import { Redis } from 'ioredis';
import { serve } from '../../calls/serve.ts';
import { monotonicMs, sleep } from '../../clock.ts';
import type { Route, WriterMethods } from '../messages.ts';

/** Appends a value, and says who has executed it. */
const script = `
redis.call('RPUSH', KEYS[1], ARGV[1])
return string.match(redis.call('INFO', 'server'), 'tcp_port:(%d+)')`;
/** Of a loop that is not to be a benchmark of Redis. */
const pauseMs = 1;
const retryMs = 10;

interface Acknowledged {
  readonly value: number;
  readonly atMs: number;
  readonly port: number;
}

const acknowledged: Acknowledged[] = [];
const counts = { unknown: 0, refused: 0 };
let write: (value: number) => Promise<number>;
let failover: RedisFailover<Redis> | undefined;
let running: Promise<void> = Promise.resolve();
let stopped = false;

serve<WriterMethods>({
  async open({ route }) {
    write = await writeBy(route);
    return null;
  },
  async start() {
    running = run();
    while (acknowledged.length === 0) await sleep(retryMs);
    return null;
  },
  async writesElsewhere({ than }) {
    const from = acknowledged.length;
    for (;;) {
      const found = acknowledged.slice(from).find(({ port }) => port !== than);
      if (found !== undefined) return { atMs: found.atMs, port: found.port };
      await sleep(retryMs);
    }
  },
  newest() {
    // It is asked after `start`, which waits for the first.
    const { atMs, port } = acknowledged.at(-1) as Acknowledged;
    return { atMs, port };
  },
  longestPause({ fromMs, toMs }) {
    let ms = 0;
    for (const [index, { atMs }] of acknowledged.entries()) {
      const before = acknowledged[index - 1]?.atMs;
      if (before !== undefined && atMs > fromMs && before < toMs) ms = Math.max(ms, atMs - before);
    }
    return { ms };
  },
  async failover({ port }) {
    const askedMs = monotonicMs();
    await failover?.manualFailover({ host: '127.0.0.1', port });
    return { askedMs, answeredMs: monotonicMs() };
  },
  async stop() {
    stopped = true;
    await running;
    return { acknowledged: acknowledged.map(({ value }) => value), ...counts };
  },
});

async function run(): Promise<void> {
  for (let value = 1; !stopped; value += 1) {
    try {
      const port = await write(value);
      acknowledged.push({ value, atMs: monotonicMs(), port });
      await sleep(pauseMs);
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code === 'OUTCOME_UNKNOWN') counts.unknown += 1;
      else counts.refused += 1;
      await sleep(retryMs);
    }
  }
}

async function writeBy(route: Route): Promise<typeof write> {
  if (route.by === 'incumbent') {
    const { zookeeper, root } = route;
    const client = await RedisFailover.connect({ zookeeper, root, redis: ioredis(Redis) });
    failover = client;
    return async (value) => Number(await client.redis.eval(script, 1, 'written', value));
  }
  const common = { maxRetriesPerRequest: 0, retryStrategy: () => retryMs } as const;
  const client =
    route.by === 'address'
      ? new Redis({ host: '127.0.0.1', port: route.port, ...common })
      : new Redis({
          sentinels: [{ host: '127.0.0.1', port: route.port }],
          name: 'incumbent',
          sentinelRetryStrategy: () => retryMs,
          // Else it waits for ever for a server that stands still, and stays with one that is demoted.
          socketTimeout: 1_000,
          reconnectOnError: ({ message }) => message.startsWith('READONLY'),
          ...common,
        });
  client.on('error', () => {});
  return async (value) => Number(await client.eval(script, 1, 'written', value));
}
