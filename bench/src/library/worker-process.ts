import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { waitUntil } from '@incumbent/cli/trial';
import type { Surroundings } from '../surroundings.ts';

/** Long after anything that is measured. */
const answerWithinMs = 60_000;

/** One of our scripts under `workers/`, which tells what it sees, one message after the other. */
export class WorkerProcess<Told extends { readonly say: string }, Order extends object = never> {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #ended: Promise<void>;
  /** Messages of the worker that nobody has asked for yet. */
  #told: Told[] = [];
  #end: string | undefined;

  /** @param argument must survive JSON */
  constructor(
    surroundings: Surroundings,
    name: string,
    argument: unknown,
    nodeOptions: readonly string[] = [],
  ) {
    const file = fileURLToPath(new URL(`./workers/${name}.js`, import.meta.url));
    this.#name = name;
    this.#child = fork(file, [JSON.stringify(argument)], {
      execArgv: [...nodeOptions],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // Signals of a terminal are for us.
      detached: true,
    });
    if (this.#child.pid === undefined) throw new Error(`the worker ${name} could not be started`);
    this.pid = this.#child.pid;
    surroundings.reaper.watch(this.#child);
    this.#child.on('message', (message) => this.#told.push(message as Told));
    this.#child.on('error', () => {});
    this.#ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        this.#end = signal ?? `exit code ${code}`;
        resolve();
      });
    });
  }

  order(order: Order): void {
    this.#child.send(order);
  }

  /** The first thing of that kind that it tells; what it told before that is forgotten. */
  async next<Say extends Told['say']>(
    say: Say,
    limitMs: number = answerWithinMs,
  ): Promise<Extract<Told, { say: Say }>> {
    const found = await waitUntil(() => {
      const index = this.#told.findIndex((message) => message.say === say);
      if (index < 0) {
        if (this.#end === undefined) return undefined;
        throw new Error(`the worker ${this.#name} ended: ${this.#end}`);
      }
      const message = this.#told[index];
      this.#told = this.#told.slice(index + 1);
      return message;
    }, limitMs);
    if (found === undefined) throw new Error(`the worker ${this.#name} did not say "${say}"`);
    return found as Extract<Told, { say: Say }>;
  }

  /** True when it said so, and nobody has asked. */
  hasSaid(say: Told['say']): boolean {
    return this.#told.some((message) => message.say === say);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    if (this.#end === undefined) this.#child.kill('SIGKILL');
    await this.#ended;
  }
}
