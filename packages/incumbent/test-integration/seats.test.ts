// Twenty processes, three seats, and leaders that are killed or frozen: never four leaders, and three
// again. Judged by what the leaders themselves have written, with their tokens.
//
//   SEATS_STRIKES=200   so many on each store; also on Redis, etcd and files
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import {
  etcdAvailable,
  postgresAvailable,
  redisAvailable,
  startEtcd,
  startPostgres,
  startRedis,
} from '@incumbent/servers';
import { startServer } from '@incumbent/zookeeper-testing';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { schema } from '../src/backends/postgres/index.ts';
import { missing as noZooKeeper } from './support/zookeeper.ts';

const program = fileURLToPath(new URL('./support/seats-process.mjs', import.meta.url));
const wanted = process.env['SEATS_STRIKES'];
const strikes = Number(wanted ?? 6);
const candidates = 20;

interface Store {
  readonly kind: string;
  readonly missing: string | undefined;
  start(): Promise<{ readonly address: string; close(): Promise<unknown> }>;
}

const often: readonly Store[] = [
  {
    kind: 'postgres',
    missing: postgresAvailable(),
    async start() {
      const server = await startPostgres();
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      await client.query(schema());
      await client.end();
      return { address: server.url, close: () => server.close() };
    },
  },
  {
    kind: 'zookeeper',
    missing: noZooKeeper,
    async start() {
      const server = await startServer({ tickTimeMs: 200 });
      return { address: server.connectionString, close: () => server.close() };
    },
  },
];

const seldom: readonly Store[] = [
  {
    kind: 'file',
    missing: undefined,
    async start() {
      const address = await mkdtemp(join(tmpdir(), 'incumbent-seats-'));
      return { address, close: () => rm(address, { recursive: true, force: true }) };
    },
  },
  {
    kind: 'redis',
    missing: redisAvailable(),
    async start() {
      const server = await startRedis();
      return { address: server.url, close: () => server.close() };
    },
  },
  {
    kind: 'etcd',
    missing: etcdAvailable(),
    async start() {
      const server = await startEtcd();
      return { address: server.endpoint, close: () => server.close() };
    },
  },
];

/** A term as its leader has told it, in ms of the clock that all processes share. */
interface Told {
  readonly seat: number;
  readonly token: bigint;
  readonly by: ChildProcess;
  readonly fromMs: number;
  untilMs: number;
}

class Crew {
  readonly terms = new Map<string, Told>();
  readonly #live = new Set<ChildProcess>();
  readonly #frozen = new Set<ChildProcess>();
  readonly #kind: string;
  readonly #address: string;
  #heard: () => void = () => {};

  constructor(kind: string, address: string) {
    this.#kind = kind;
    this.#address = address;
    for (let index = 0; index < candidates; index += 1) this.add();
  }

  add(): void {
    const child = spawn(
      process.execPath,
      [program, this.#kind, this.#address, `c${this.#live.size}`],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    this.#live.add(child);
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [seat = '', token = '', at] = line.split(' ');
      const atMs = Number(at);
      const known = this.terms.get(`${seat} ${token}`);
      const fresh = { seat: Number(seat), token: BigInt(token), by: child, fromMs: atMs };
      if (known === undefined) this.terms.set(`${seat} ${token}`, { ...fresh, untilMs: atMs });
      else known.untilMs = atMs;
      this.#heard();
    });
  }

  /** Resolves with the three leaders, once each seat has one that acts after now. */
  async untilThree(): Promise<readonly Told[]> {
    const sinceMs = nowMs();
    for (;;) {
      const acting = [...this.terms.values()].filter(
        ({ by, untilMs }) => untilMs > sinceMs && this.#live.has(by) && !this.#frozen.has(by),
      );
      if (new Set(acting.map(({ seat }) => seat)).size === 3) return acting;
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  kill(child: ChildProcess): void {
    this.#live.delete(child);
    child.kill('SIGKILL');
    this.add();
  }

  freeze(child: ChildProcess): void {
    this.#frozen.add(child);
    child.kill('SIGSTOP');
  }

  /** The processes that were frozen go on, and find out by themselves. */
  thaw(): void {
    for (const child of this.#frozen) child.kill('SIGCONT');
    this.#frozen.clear();
  }

  async close(): Promise<void> {
    this.thaw();
    const ended = [...this.#live].map((child) => once(child, 'exit'));
    for (const child of this.#live) child.kill('SIGKILL');
    await Promise.all(ended);
  }
}

function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** The most terms that held at one instant, and what is wrong with their order. */
function judge(terms: readonly Told[]): { readonly most: number; readonly faults: string[] } {
  const inOrder = terms.toSorted((a, b) => a.fromMs - b.fromMs);
  const faults: string[] = [];
  let most = 0;
  for (const [index, term] of inOrder.entries()) {
    const earlier = inOrder.slice(0, index);
    most = Math.max(most, 1 + earlier.filter(({ untilMs }) => untilMs > term.fromMs).length);
    for (const { seat, token, untilMs } of earlier) {
      if (seat !== term.seat) continue;
      if (token >= term.token) faults.push(`seat ${seat}: ${token} came before ${term.token}`);
      if (untilMs > term.fromMs) faults.push(`seat ${seat}: ${token} and ${term.token} overlap`);
    }
  }
  return { most, faults };
}

describe.each(wanted === undefined ? often : [...often, ...seldom])(
  'three seats on $kind',
  (store) => {
    test.skipIf(store.missing !== undefined)(
      'leaders are killed and frozen: never four, and three again',
      { timeout: 120_000 + strikes * 60_000 },
      async () => {
        const { address, close } = await store.start();
        const crew = new Crew(store.kind, address);
        const tookMs: number[] = [];
        try {
          for (let strike = 0; strike < strikes; strike += 1) {
            const leaders = await crew.untilThree();
            const struck = leaders[strike % leaders.length] as Told;
            if (strike % 2 === 0) crew.kill(struck.by);
            else crew.freeze(struck.by);
            const sinceMs = nowMs();
            await crew.untilThree();
            tookMs.push(nowMs() - sinceMs);
            crew.thaw();
          }
          await crew.untilThree();
          const { most, faults } = judge([...crew.terms.values()]);
          expect(faults).toEqual([]);
          expect(most).toBe(3);
          const [least = 0, ...rest] = tookMs.toSorted((a, b) => a - b).map(Math.round);
          console.log(
            `${store.kind}: ${strikes} strikes, at most ${most} leaders; three again after ${least} to ` +
              `${rest.at(-1)} ms`,
          );
        } finally {
          await crew.close();
          await close();
        }
      },
    );
  },
);
