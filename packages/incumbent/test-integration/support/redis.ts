/** Redis servers, clients of both libraries and elections, for one test. */
import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { RedisServer } from '@incumbent/servers';
import { redisAvailable, waitFor } from '@incumbent/servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { TestContext } from 'vitest';
import { expect } from 'vitest';
import type { RedisClient, RedisGuard, RedisOptions } from '../../src/backends/redis/index.ts';
import { redis } from '../../src/backends/redis/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { resolveTiming } from '../../src/base/timing.ts';
import type { Scope } from '../../src/core/contest.ts';
import type { Election } from '../../src/core/election.ts';
import { createElection } from '../../src/core/election.ts';
import type { ElectionOptions } from '../../src/core/options.ts';
import type { Term } from '../../src/core/term.ts';
import { BeliefWatch } from './belief-watch.ts';

/** Why no server can be started. In CI that is a failure. */
export const missing: string | undefined = redisAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

export const leaseMs = 4_000;
export const libraries = ['redis', 'ioredis'] as const;
export type Library = (typeof libraries)[number];

export interface OpenClient {
  readonly client: RedisClient;
  close(): void;
}

/** A connected client whose errors are ignored. */
export async function openClient(
  library: Library,
  { port }: { readonly port: number },
  login: { readonly username?: string; readonly password?: string } = {},
): Promise<OpenClient> {
  if (library === 'ioredis') {
    const client = new Redis({ host: '127.0.0.1', port, ...login });
    client.on('error', () => {});
    return { client, close: () => client.disconnect() };
  }
  const client = createClient({ socket: { host: '127.0.0.1', port }, ...login });
  client.on('error', () => {});
  await client.connect();
  return {
    client,
    close: () => {
      if (client.isOpen) client.destroy();
    },
  };
}

/** The scope that an election hands to a store. */
export function scopeOf(election: string, onTrouble: Scope['onTrouble'] = () => {}): Scope {
  return {
    election,
    clock: systemClock,
    timing: resolveTiming({ lease: 1_000 }),
    random: Math.random,
    uniqueId: randomUUID,
    onTrouble,
  };
}

type MoreOptions = Partial<ElectionOptions<RedisGuard>>;

/** All that one test opens, and a watch over all who lead in it. Ends with the test. */
export class Stage {
  readonly name: string;
  readonly watch: BeliefWatch;
  readonly #cleanUps: (() => unknown)[] = [];

  /** @param test of tests that run at the same time, only its own context knows when it ends */
  constructor(
    { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
    name = `jobs-${randomUUID()}`,
  ) {
    this.name = name;
    this.watch = new BeliefWatch(this.name);
    onTestFinished(async () => {
      this.watch.stop();
      for (const cleanUp of this.#cleanUps.reverse()) await cleanUp();
    });
  }

  /** Closed, after everything that came later, when the test is over. */
  keep<T extends { close(): unknown }>(closable: T): T {
    this.#cleanUps.push(() => closable.close());
    return closable;
  }

  async client(library: Library, server: { readonly port: number }): Promise<RedisClient> {
    return this.keep(await openClient(library, server)).client;
  }

  election(
    id: string,
    client: RedisClient,
    options: RedisOptions = {},
    more: MoreOptions = {},
  ): Election<RedisGuard> {
    // The clock of this machine is not set while a test runs.
    const backend = redis(client, { clockStep: 0, ...options });
    const candidate = { id };
    const { name } = this;
    return this.keep(createElection({ name, backend, lease: leaseMs, candidate, ...more }));
  }

  /** Campaigns, and watches the term. */
  async lead(election: Election<RedisGuard>): Promise<Term<RedisGuard>> {
    const term = await election.campaign();
    // Before its election, which would wait for its work.
    this.#cleanUps.push(() => term[Symbol.asyncDispose]());
    this.watch.add(term, () => Number.POSITIVE_INFINITY);
    return term;
  }

  /** To be asked at the end of a test. */
  expectNoOverlap(): void {
    this.watch.look();
    expect(this.watch.violations).toEqual([]);
  }
}

/** Waits until a term is lost, and lets it go. @returns why it was */
export async function lossOf(term: Term<RedisGuard>): Promise<string> {
  const { signal } = term;
  if (!signal.aborted) {
    await new Promise((resolve) => {
      signal.addEventListener('abort', resolve, { once: true });
    });
  }
  await term[Symbol.asyncDispose]();
  return (await term.ended).reason;
}

/** It has had an answer: a machine that is busy may be late with the first ones. */
export function hasLooked(election: Election<RedisGuard>): Promise<void> {
  return waitFor('it has looked', () =>
    election.leader().then(
      () => true,
      () => false,
    ),
  );
}

/** From then on it knows the token of the leader. */
export function hasSeenLeader(election: Election<RedisGuard>): Promise<void> {
  return waitFor('it has seen who leads', async () => (await election.leader()).state === 'led');
}

/** The complaints of an election's candidates, from now to the end of the test. */
export function troublesOf(
  election: string,
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
): readonly string[] {
  const messages: string[] = [];
  const listener = (event: unknown) => {
    const trouble = event as { election: string; operation?: string; error: Error };
    if (trouble.election === election) messages.push(JSON.stringify(trouble, errorText));
  };
  subscribe('incumbent:trouble', listener);
  onTestFinished(() => void unsubscribe('incumbent:trouble', listener));
  return messages;
}

function errorText(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.message : value;
}

/** The key of an election's record. */
export function keyOf(name: string): string {
  return `incumbent:{${name}}`;
}

/** The field of an election's record. */
export async function fieldOf(server: RedisServer, name: string, field: string): Promise<string> {
  return String(await server.command('HGET', keyOf(name), field));
}
