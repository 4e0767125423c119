/** Services with their agents, for the black-box tests of `incumbent agent`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TestAPI } from 'vitest';
import { expect, vi } from 'vitest';
import type { Lab } from './run-process.ts';
import { test as base, bin, monotonicMs, RunProcess, until } from './run-process.ts';

const daemonFile: string = fileURLToPath(new URL('service-daemon.cjs', import.meta.url));

/** Each test has up to nine processes, and its agents must be able to confirm their terms. */
const atOnce = 3;
const waiting: (() => void)[] = [];
let running = 0;
vi.setConfig({ testTimeout: 1_200_000 });

export const test: TestAPI<{ lab: Lab; turn: undefined }> = base.extend<{ turn: undefined }>({
  turn: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest wants to see which fixtures it needs
    async ({}, use) => {
      if (running >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
      running += 1;
      try {
        await use(undefined);
      } finally {
        running -= 1;
        waiting.shift()?.();
      }
    },
    { auto: true },
  ],
});

/** Fences by the number of the process, and waits until it is dead. */
export function killFence(lab: Lab): string {
  return `shell:p=$(cat "${lab.directory}/$INCUMBENT_TARGET_ID.pid"); kill -KILL $p; while kill -0 $p 2>/dev/null; do sleep 0.05; done`;
}

export interface NodeSettings {
  readonly store?: string;
  /** Default: db. */
  readonly election?: string;
  /** Default 15s. */
  readonly lease?: string;
  /** Default: where the service listens. */
  readonly address?: string;
  /** In place of `--fence` with `killFence`. */
  readonly fencing?: readonly string[];
  readonly options?: readonly string[];
}

/** A machine with one service and its agent. */
export class ServiceNode {
  readonly name: string;
  readonly #lab: Lab;
  readonly #settings: NodeSettings;
  agent: RunProcess;
  pid = 0;

  private constructor(lab: Lab, name: string, settings: NodeSettings) {
    this.#lab = lab;
    this.name = name;
    this.#settings = settings;
    this.agent = undefined as unknown as RunProcess;
  }

  static async start(lab: Lab, name: string, settings: NodeSettings = {}): Promise<ServiceNode> {
    const node = new ServiceNode(lab, name, settings);
    await node.startService();
    node.startAgent();
    return node;
  }

  /** As a service manager does after a crash: on the same port, in standby. */
  async startService(): Promise<void> {
    const file = (kind: string) => this.#lab.path(`${this.name}.${kind}`);
    const args = [daemonFile, this.name, file('port'), file('pid'), this.#lab.log];
    const child = spawn(process.execPath, args, {
      env: this.#lab.env,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    this.pid = child.pid!;
    await once(child.stdout!, 'data');
  }

  startAgent(): RunProcess {
    const { store = `file:${this.#lab.store}`, lease = '15s', options = [] } = this.#settings;
    const { election = 'db' } = this.#settings;
    const { fencing = ['--fence', killFence(this.#lab)] } = this.#settings;
    const args = [bin, 'agent', '-e', election, '--store', store, '--lease', lease];
    args.push('--id', this.name);
    const { address = `127.0.0.1:${this.port}` } = this.#settings;
    args.push('--address', address, '--json');
    args.push('--become-active', this.url('/active'), '--become-standby', this.url('/standby'));
    args.push('--health', this.url('/ok'), '--health-every', '200ms', '--health-timeout', '10s');
    args.push('--standby-timeout', '10s', '--active-timeout', '30s', ...fencing, ...options);
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.#lab.directory,
      env: this.#lab.env,
    });
    this.agent = new RunProcess(this.name, child);
    return this.agent;
  }

  get port(): number {
    return Number(readFileSync(this.#lab.path(`${this.name}.port`), 'utf8'));
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  async post(path: string, body: object = {}): Promise<string> {
    const answer = await fetch(this.url(path), { method: 'POST', body: JSON.stringify(body) });
    return answer.text();
  }

  /** `standby`, or `active TOKEN`; `dead` when nothing answers. */
  async role(): Promise<string> {
    try {
      return await (await fetch(this.url('/role'))).text();
    } catch {
      return 'dead';
    }
  }

  async isActive(): Promise<void> {
    await until(
      () => `the service of ${this.name} is active; its agent said:\n${this.agent.story()}`,
      async () => {
        if (this.agent.exit !== undefined) throw new Error(`it ended:\n${this.agent.story()}`);
        return (await this.role()).startsWith('active');
      },
    );
  }

  /** It has a place in the election: it leads or waits. */
  async takesPart(): Promise<void> {
    await this.agent.eventWhere('waiting or leading', () =>
      this.agent.events.find(({ event }) => event === 'waiting' || event === 'leading'),
    );
  }

  killService(): void {
    process.kill(this.pid, 'SIGKILL');
  }
}

/** The first of them is active, and the others take part. */
export async function cluster(
  lab: Lab,
  names: readonly string[],
  settings: NodeSettings | ((name: string) => NodeSettings) = {},
): Promise<ServiceNode[]> {
  const nodes: ServiceNode[] = [];
  for (const name of names) {
    const own = typeof settings === 'function' ? settings(name) : settings;
    const node = await ServiceNode.start(lab, name, own);
    nodes.push(node);
    if (nodes.length === 1) await node.isActive();
    else await node.takesPart();
  }
  return nodes;
}

/**
 * A run of all of them asks for 50: `INCUMBENT_FAILOVERS=50`. Such a run has the machine for itself, so
 * it also holds what it measures to the bounds that the agents print.
 */
const asked = process.env['INCUMBENT_FAILOVERS'];
export const isAtLength: boolean = asked !== undefined;
export const failovers: number = Number(asked ?? 6);

type Bound = 'agentLostMs' | 'fenceFailsOnceMs' | 'serviceLostMs' | 'failoverMs';

/** Says how long it took beside the bound that the agent prints. */
async function compare(what: string, tookMs: number, agent: RunProcess, bound: Bound) {
  const boundMs = Number((await agent.event('bounds'))[bound]);
  console.log(`${what}: ${Math.round(tookMs)} ms; the bound is ${boundMs} ms`);
  expect(boundMs).toBeGreaterThan(0);
  if (isAtLength) expect(tookMs).toBeLessThanOrEqual(boundMs);
}

/** The service is active, within the bound that its agent prints. */
export async function takesOver(
  successor: ServiceNode,
  what: string,
  bound: Bound,
  strike: () => unknown,
): Promise<void> {
  const begin = monotonicMs();
  await strike();
  await successor.isActive();
  await compare(what, monotonicMs() - begin, successor.agent, bound);
}

/**
 * Asks for so many, every second one with a name. When each returns, the service of the new leader
 * must be active, and no other.
 * @param place the election, and its store
 */
export async function failOver(
  lab: Lab,
  nodes: readonly ServiceNode[],
  times: number,
  place: readonly string[],
): Promise<void> {
  // So that a command that returns too early is seen.
  for (const node of nodes) await node.post('/slow', { ms: 300 });
  const tookMs: number[] = [];
  for (let turn = 1; turn <= times; turn += 1) {
    const to = nodes[turn % nodes.length]!;
    const named = turn % 2 === 0 ? ['--to', to.name] : [];
    const options = ['--wait', '4m', '--timeout', '1m', '--json'];
    const { code, stdout, stderr } = await lab.cli('failover', ...place, ...named, ...options);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { after } = JSON.parse(stdout);
    const roles = await Promise.all(nodes.map((node) => node.role()));
    const active = nodes.filter((_, at) => roles[at] !== 'standby').map(({ name }) => name);
    expect(active).toEqual([after.leader.id]);
    if (named.length > 0) expect(active).toEqual([to.name]);
    tookMs.push(after.tookMs);
    // The one that has just given way stands aside for a second before it waits again.
    await until('all others wait', async () => {
      const listed = await lab.cli('candidates', ...place, '--timeout', '1m', '--json');
      return listed.stdout.trim().split('\n').length === nodes.length;
    });
  }
  tookMs.sort((a, b) => a - b);
  const middle = tookMs[Math.floor(tookMs.length / 2)];
  console.log(`${times} failovers: median ${middle} ms`);
  await compare('the longest of them', tookMs.at(-1)!, nodes[0]!.agent, 'failoverMs');
}
