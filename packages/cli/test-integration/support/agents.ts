/** Services with their agents, for the black-box tests of `incumbent agent`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TestAPI } from 'vitest';
import { vi } from 'vitest';
import type { Lab } from './run-process.ts';
import { test as base, bin, RunProcess, until } from './run-process.ts';

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
  /** Default 15s, which no load of the machine ends. Tests that wait for the end of one take 8s. */
  readonly lease?: string;
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
    const { fencing = ['--fence', killFence(this.#lab)] } = this.#settings;
    const args = [bin, 'agent', '-e', 'db', '--store', store, '--id', this.name, '--lease', lease];
    args.push('--address', `127.0.0.1:${this.port}`, '--json');
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
      async () => (await this.role()).startsWith('active'),
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

  get hasService(): boolean {
    return existsSync(`/proc/${this.pid}`);
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
