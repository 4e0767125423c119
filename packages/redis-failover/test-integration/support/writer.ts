import { inspect } from 'node:util';
import type { Redis } from 'ioredis';
import type { createClient } from 'redis';
import type { RedisFailover } from '../../src/client/failover.ts';
import type { NodeAddress } from '../../src/node-address.ts';
import type { Acknowledged } from './judge.ts';
import { monotonicMs, until } from './waiting.ts';

export type NodeRedis = ReturnType<typeof createClient>;

/** Appends a number to a list, and returns where and when, by the server's own clock. */
const script = `
local time = redis.call('TIME')
redis.call('RPUSH', KEYS[1], ARGV[1])
return {time[1], time[2], string.match(redis.call('INFO', 'server'), 'tcp_port:(%d+)')}`;

/** One write by some client. Rejects unless the write was acknowledged. */
export type Write = (value: string) => Promise<{
  readonly reply: unknown;
  /** The term in which it was acknowledged. */
  readonly term: number | undefined;
}>;

export function writeByNodeRedis(failover: RedisFailover<NodeRedis>): Write {
  return (value) =>
    failover.write(async (redis, { term }) => {
      const reply = await redis.eval(script, { keys: [Writer.key], arguments: [value] });
      return { reply, term };
    });
}

export function writeByIoredis(failover: RedisFailover<Redis>): Write {
  return (value) =>
    failover.write(async (redis, { term }) => {
      return { reply: await redis.eval(script, 1, Writer.key, value), term };
    });
}

export interface Acceptance extends Acknowledged {
  readonly sentAtMs: number;
  readonly repliedAtMs: number;
}

export interface Failure {
  readonly value: number;
  readonly error: Error & { readonly code?: string };
  readonly sentAtMs: number;
  readonly failedAtMs: number;
}

/** Writes numbers one after the other until it is stopped, each once, whatever its outcome. */
export class Writer {
  static readonly key: string = 'written';
  readonly acknowledged: Acceptance[] = [];
  /** Writes that were refused, or whose outcome is unknown. */
  readonly failed: Failure[] = [];
  readonly #write: Write;
  readonly #pauseMs: number;
  readonly #done: Promise<void>;
  #stopped = false;
  #next: number;

  /**
   * @param first the first number. Writers of one list need different numbers
   * @param pauseMs between two writes, so that many writers can share a processor
   */
  constructor(write: Write, first = 1, pauseMs = 20) {
    this.#write = write;
    this.#next = first;
    this.#pauseMs = pauseMs;
    this.#done = this.#run();
  }

  /** Resolves when the last write is over. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  /** Resolves to the first acknowledged write that was sent from now on, and `fits`. */
  async writes(
    what = 'a write is acknowledged',
    fits: (accepted: Acceptance) => boolean = () => true,
  ): Promise<Acceptance> {
    const fromMs = monotonicMs();
    return until(
      what,
      () => this.acknowledged.find((each) => each.sentAtMs >= fromMs && fits(each)),
      () => this.text(),
    );
  }

  /** Each failed write with its times and causes. */
  failures(): string[] {
    return this.failed.map(({ value, error, sentAtMs, failedAtMs }) => {
      const times = `sent ${sentAtMs.toFixed(0)}, failed ${failedAtMs.toFixed(0)}`;
      return `write ${value} (${times}): ${inspect(error)}`;
    });
  }

  text(): string {
    const last = this.acknowledged.at(-1);
    const count = `${this.acknowledged.length} writes acknowledged, last ${JSON.stringify(last)}`;
    return ['--- writer', count, ...this.failures()].join('\n');
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.#writeOne(this.#next);
      this.#next += 1;
      await new Promise((resolve) => setTimeout(resolve, this.#pauseMs));
    }
  }

  async #writeOne(value: number): Promise<void> {
    const sentAtMs = monotonicMs();
    try {
      const { reply, term } = await this.#write(String(value));
      const [seconds, microseconds, port] = reply as readonly [string, string, string];
      this.acknowledged.push({
        value,
        term,
        node: `127.0.0.1:${port}` as NodeAddress,
        executedAtUs: Number(seconds) * 1e6 + Number(microseconds),
        sentAtMs,
        repliedAtMs: monotonicMs(),
      });
    } catch (error) {
      this.failed.push({ value, error: error as Error, sentAtMs, failedAtMs: monotonicMs() });
    }
  }
}
