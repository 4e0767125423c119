import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { seeded } from '@incumbent/servers';
import type { ClientOptions, SessionInfo, StateChange, ZooKeeper } from '@incumbent/zookeeper';
import type { TestEnsemble, TestProxy } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';
import type { Stalls } from '../harness/time.ts';
import { monotonicMs, until } from '../harness/time.ts';
import { Calls } from './calls.ts';
import type { Findings } from './findings.ts';
import type { Gate } from './gate.ts';
import { judgeExpiry } from './judges.ts';
import type { Problem } from './models/verdict.ts';

/** Shared by all players. */
export interface Arena {
  readonly ensemble: TestEnsemble;
  readonly findings: Findings;
  readonly gate: Gate;
  readonly stalls: Stalls;
  readonly timeoutMs: number;
  readonly log: (line: string) => void;
  readonly makeClient: (url: string, options: ClientOptions) => ZooKeeper;
}

/** One client behind proxies of its own, one for each server, and what is known of its session. */
export class Player {
  readonly name: string;
  readonly index: number;
  readonly arena: Arena;
  readonly proxies: readonly TestProxy[];
  readonly calls: Calls;
  /** Where its own nodes are. */
  readonly base: string;
  readonly random: () => number;
  expiries = 0;
  #client: ZooKeeper | undefined;
  #session: SessionInfo | undefined;
  #handshakeMs = 0;

  constructor(index: number, proxies: readonly TestProxy[], arena: Arena, seed: number) {
    this.index = index;
    this.name = `c${index}`;
    this.base = `/soak/${this.name}`;
    this.arena = arena;
    this.proxies = proxies;
    this.random = seeded(seed + index);
    this.calls = new Calls(this.name, () => this.client, arena.findings, arena.stalls);
  }

  static async start(index: number, arena: Arena, seed: number): Promise<Player> {
    const proxies = await Promise.all(arena.ensemble.members.map((member) => startProxy(member)));
    return new Player(index, proxies, arena, seed);
  }

  connect(): void {
    const hosts = this.proxies.map(({ host, port }) => `${host}:${port}`).join(',');
    this.#client = this.arena.makeClient(`zk://${hosts}`, {
      sessionTimeoutMs: this.arena.timeoutMs,
    });
    this.calls.start();
    subscribe('incumbent:zookeeper:connected', this.#onHandshake);
    this.#client.onState((change) => this.#onState(change));
  }

  get client(): ZooKeeper {
    if (this.#client === undefined) throw new Error(`${this.name} has not connected yet`);
    return this.#client;
  }

  /** Of the session that a call made now belongs to; undefined when it waits for the next one. */
  get sessionId(): bigint | undefined {
    const { client } = this;
    // Reading the state makes the client look at its clock.
    return client.state === 'expired' ? undefined : client.session?.id;
  }

  /** The proxy in front of the present server. */
  get proxy(): TestProxy {
    const server = this.client.session?.server;
    const found = this.proxies.find(({ host, port }) => `${host}:${port}` === server);
    return found ?? (this.proxies[0] as TestProxy);
  }

  /** Something to do again and again, about every so many ms. */
  act(everyMs: number, act: () => Promise<void> | void): void {
    void this.arena.gate.loop(() => everyMs * (0.5 + this.random()), act); // never rejects
  }

  report(problems: readonly Problem[]): void {
    for (const { guarantee, what } of problems) {
      this.arena.findings.judge(guarantee, `${this.name}: ${what}`);
    }
  }

  /** A look at the store, which counts as one check of each guarantee whatever it finds. */
  checked(guarantees: readonly Problem['guarantee'][], problems: readonly Problem[]): void {
    for (const guarantee of guarantees) this.arena.findings.judge(guarantee, undefined);
    this.report(problems);
  }

  /** A node that was made in a session must be that session's. */
  checkOwner(path: string, wanted: bigint | undefined, owner: bigint | undefined): void {
    if (owner === undefined) return;
    this.arena.findings.judge(
      'owner',
      wanted === undefined || wanted === owner
        ? undefined
        : `${this.name} ${path}: asked for in session ${hex(wanted)}, made in ${hex(owner)}`,
    );
  }

  async close(): Promise<void> {
    const startMs = monotonicMs();
    const closing = this.client.close();
    const open = { closed: false };
    void closing.then(() => {
      open.closed = true;
    });
    const inTime = await until(5_000, () => open.closed);
    const tookMs = Math.round(monotonicMs() - startMs);
    this.arena.findings.judge('settles', inTime ? undefined : `${this.name} close: ${tookMs} ms`);
    unsubscribe('incumbent:zookeeper:connected', this.#onHandshake);
    this.calls.stop();
  }

  readonly #onHandshake = (message: unknown): void => {
    const { sessionId } = message as { sessionId: bigint };
    if (sessionId === this.#session?.id) this.#handshakeMs = monotonicMs();
  };

  #onState({ state, atMs, session, error }: StateChange): void {
    const { log, findings, stalls } = this.arena;
    log(`${this.name} ${state}${error === undefined ? '' : ` (${error.message})`}`);
    if (state === 'connected') {
      this.#session = session;
      this.#handshakeMs = atMs;
    } else if (state === 'expired' && this.#session !== undefined) {
      this.expiries += 1;
      // Between two inspections requests go out all the time, so nothing but they is acknowledged.
      const lastAcknowledgedMs = Math.max(this.calls.lastAcknowledgedMs, this.#handshakeMs);
      const toldAtMs = monotonicMs();
      const problem = judgeExpiry({
        lastAcknowledgedMs,
        timeoutMs: this.#session.timeoutMs,
        toldAtMs,
        stalledMs: stalls.ms(lastAcknowledgedMs, toldAtMs),
      });
      findings.judge('expired', problem === undefined ? undefined : `${this.name} ${problem}`);
      this.#session = undefined;
    }
  }
}

export function hex(id: bigint): string {
  return `0x${id.toString(16)}`;
}
