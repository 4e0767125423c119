/** A client of a set that writes without pause. Its argument is a `ClientPlan`. */
import { openSync, writeSync } from 'node:fs';
import process from 'node:process';
import { ioredis, nodeRedis, RedisFailover } from '@incumbent/redis-failover';
import { connect } from '@incumbent/zookeeper';
import { Teller } from '../harness/tell.ts';
import { monotonicMs, pause } from '../harness/time.ts';
import type {
  Acknowledged,
  ClientOrder,
  ClientPlan,
  ClientTells,
  NotAcknowledged,
  WriteLine,
} from './messages.ts';

/** Servers have time for something else, too. */
const everyMs = 8;
/** So many are under way; one that is late does not count, so that there are always others. */
const mostUnderWay = 2;
const lateMs = 300;
const mostInAll = 60;

/** Sets a bit. Answers who it is and when that was, as it says itself. */
const script = `
local was = redis.call('SETBIT', KEYS[1], ARGV[1], 1)
local time = redis.call('TIME')
local port = string.match(redis.call('INFO', 'server'), 'tcp_port:(%d+)')
return {port, time[1], time[2], was}`;

const plan = JSON.parse(process.argv[2] ?? '') as ClientPlan;
const { name } = plan;
const key = `writes:${name}`;
const log = openSync(plan.log, 'a');
const teller = new Teller<ClientTells, ClientOrder>((order) => void obey(order));
const tell = (told: ClientTells): void => void teller.tell(told);
/** By their numbers: when they began. */
const underWay = new Map<number, number>();
let stopped = false;
let writes = 0;

const zookeeper = await connect(plan.zookeeper, { sessionTimeoutMs: plan.sessionMs });
const common = {
  zookeeper,
  root: plan.root,
  maxWait: plan.maxWaitMs,
  commandTimeout: plan.maxWaitMs,
  onChange: (picture: object) => tell({ say: 'note', text: JSON.stringify(picture) }),
};
const { failover, write } = await (plan.library === 'redis' ? byNodeRedis() : byIoredis());
const writing = writeEndlessly();
tell({ say: 'writing' });

async function byNodeRedis() {
  const { createClient } = await import('redis');
  const hooks = { broken: plan.broken };
  const own = await RedisFailover.connect({ ...common, redis: nodeRedis(createClient) }, hooks);
  const send = (number: number): Promise<unknown> =>
    own.redis.eval(script, { keys: [key], arguments: [String(number)] });
  return { failover: own, write: send };
}

async function byIoredis() {
  const { Redis } = await import('ioredis');
  const hooks = { broken: plan.broken };
  const own = await RedisFailover.connect({ ...common, redis: ioredis(Redis) }, hooks);
  const send = (number: number): Promise<unknown> => own.redis.eval(script, 1, key, String(number));
  return { failover: own, write: send };
}

async function writeEndlessly(): Promise<void> {
  while (!stopped) {
    const nowMs = monotonicMs();
    const young = [...underWay.values()].filter((startMs) => nowMs - startMs < lateMs);
    if (young.length < mostUnderWay && underWay.size < mostInAll) void writeOnce();
    await pause(everyMs);
  }
}

async function writeOnce(): Promise<void> {
  const number = writes;
  writes += 1;
  const startMs = monotonicMs();
  underWay.set(number, startMs);
  const outcome = await outcomeOf(number);
  underWay.delete(number);
  const line: WriteLine = { client: name, number, startMs, endMs: monotonicMs(), outcome };
  writeSync(log, `${JSON.stringify(line)}\n`);
}

async function outcomeOf(number: number): Promise<Acknowledged | NotAcknowledged> {
  const fromTerm = failover.current.term ?? 0;
  try {
    const answer = (await write(number)) as readonly (string | number)[];
    const [port, seconds, microseconds, was] = answer.map(Number) as [
      number,
      number,
      number,
      number,
    ];
    const atUs = seconds * 1e6 + microseconds;
    const toTerm = failover.current.term ?? 0;
    return { kind: 'acknowledged', port, atUs, fromTerm, toTerm, again: was === 1 };
  } catch (error) {
    return refusalOf(error);
  }
}

/** The script does nothing before its one write: an error that Redis answers with says that it is not done. */
function refusalOf(error: unknown): NotAcknowledged {
  const { code = '', message } = error as Error & { readonly code?: string };
  const why = `${code} ${message}`.trim().slice(0, 200);
  const isSure =
    code === 'NO_PRIMARY' || /^(?:READONLY|NOREPLICAS|MASTERDOWN|LOADING)/.test(message);
  return { kind: isSure ? 'refused' : 'unknown', why };
}

async function obey(order: ClientOrder): Promise<void> {
  switch (order.order) {
    case 'failover':
      return requestFailover(order.node);
    case 'stop':
      return close();
    default:
      return order satisfies never;
  }
}

async function requestFailover(node: string | undefined): Promise<void> {
  const [host = '', port] = node?.split(':') ?? [];
  try {
    const target = node === undefined ? undefined : { host, port: Number(port) };
    const moved = await failover.manualFailover(target);
    tell({ say: 'requested', done: true, text: JSON.stringify(moved) });
  } catch (error) {
    tell({ say: 'requested', done: false, text: String(error) });
  }
}

async function close(): Promise<void> {
  stopped = true;
  await writing;
  // The closing ends calls that are under way.
  await failover.close();
  await zookeeper.close();
  teller.closed();
  await teller.tell({ say: 'closed' });
}
