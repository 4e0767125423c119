import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Child } from '@incumbent/zookeeper-testing';
import { isStopped, spawnChild } from '@incumbent/zookeeper-testing';
import type { BrokenRule, ManagerHooks } from '../../src/manager/hooks.ts';
import type { ManagerOptions } from '../../src/manager/options.ts';
import type { NodeAddress } from '../../src/node-address.ts';
import { Story } from './told.ts';
import { lasting, until } from './waiting.ts';

export type StepName = Parameters<NonNullable<ManagerHooks['onStep']>>[0];

export interface ManagerProcessPlan {
  readonly options: Omit<ManagerOptions, 'onEvent'>;
  /** The step of its first move at which it stops itself. */
  readonly stopAt?: StepName;
  readonly by?: 'SIGSTOP' | 'SIGKILL';
  readonly reach?: Readonly<Record<NodeAddress, NodeAddress>>;
  readonly broken?: readonly BrokenRule[];
}

/** A manager that can be frozen and killed. It uses the built package. */
export class ManagerProcess implements AsyncDisposable {
  readonly story: Story;
  readonly #child: Child;
  readonly #directory: string;
  #read = 0;
  #over = false;
  readonly #reading: Promise<void>;

  static async start(plan: ManagerProcessPlan): Promise<ManagerProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'incumbent-redis-manager-'));
    const child = await spawnChild({
      program: process.execPath,
      arguments: [
        fileURLToPath(new URL('./manager-process.mjs', import.meta.url)),
        JSON.stringify(plan),
      ],
      directory,
      logPath: join(directory, 'events'),
      temporaryDirectory: directory,
    });
    return new ManagerProcess(child, directory, plan.options.id ?? `process ${child.pid}`);
  }

  private constructor(child: Child, directory: string, id: string) {
    this.#child = child;
    this.#directory = directory;
    this.story = new Story(id);
    this.#reading = this.#follow();
  }

  get alive(): boolean {
    return this.#child.alive;
  }

  /** Resolves when it has stopped itself at the step. */
  async hasStopped(): Promise<void> {
    await until(
      `${this.story.id} stops itself`,
      () => !this.#child.alive || (this.#says('stopping') && isStopped(this.#child.pid)),
      () => this.story.text(),
    );
    this.#look();
    if (!this.#says('stopping')) throw new Error(`it ended by itself\n${this.story.text()}`);
  }

  async freeze(): Promise<void> {
    this.#child.send('SIGSTOP');
    await until('the manager stands still', () => isStopped(this.#child.pid));
  }

  thaw(): void {
    this.#child.send('SIGCONT');
  }

  async kill(): Promise<void> {
    this.#child.send('SIGKILL');
    await this.#child.ended;
  }

  /**
   * Ends it as an operator would. Resolves when it is gone, with the signal or code that ended it.
   */
  async terminate(): Promise<string> {
    this.#child.send('SIGTERM');
    return this.#child.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.#over = true;
    await this.#reading;
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 3 });
  }

  #says(type: string): boolean {
    return this.story.events.some((event) => (event.type as string) === type);
  }

  async #follow(): Promise<void> {
    while (!this.#over) {
      this.#look();
      await lasting(25);
    }
  }

  #look(): void {
    const bytes = readFileSync(join(this.#directory, 'events')).subarray(this.#read);
    const end = bytes.lastIndexOf('\n') + 1;
    this.#read += end;
    for (const line of bytes.toString('utf8', 0, end).split('\n').slice(0, -1)) {
      this.story.add(parse(line));
    }
  }
}

/** Warnings and stack traces come over the same stream. */
function parse(line: string): object {
  try {
    return JSON.parse(line) as object;
  } catch {
    return { type: 'output', line };
  }
}
