/** Copies of an example: processes that run what `tsc -b` has built of it. */
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeServerDirectory, waitFor } from '@incumbent/servers';
import type { Child } from '@incumbent/zookeeper-testing';
import { isStopped, spawnChild } from '@incumbent/zookeeper-testing';

const built = fileURLToPath(new URL('../../dist/', import.meta.url));

export interface Copy {
  readonly pid: number;
  /** SIGSTOP. Resolves when it stands still. */
  freeze(): Promise<void>;
  thaw(): void;
  /** SIGKILL: nothing is given back. */
  kill(): Promise<void>;
  /** SIGTERM. @returns how it ended, `exit code 0` or so */
  stop(): Promise<string>;
}

/** Some copies of one example, which share their environment. */
export class Copies implements AsyncDisposable {
  readonly #directory: string;
  readonly #script: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #children: Child[] = [];

  private constructor(directory: string, script: string, env: Readonly<Record<string, string>>) {
    this.#directory = directory;
    this.#script = script;
    this.#env = env;
  }

  /** @param example such as `cron/nest` */
  static async of(example: string, env: Readonly<Record<string, string>>): Promise<Copies> {
    const script = join(built, `${example}.js`);
    if (!existsSync(script)) throw new Error(`${script} is missing: run npm run build`);
    return new Copies(await makeServerDirectory('example'), script, env);
  }

  async start(): Promise<Copy> {
    const logPath = join(this.#directory, `${this.#children.length}.log`);
    const variables = Object.entries(this.#env).map(([name, value]) => `${name}=${value}`);
    const child = await spawnChild({
      program: 'env',
      arguments: [...variables, process.execPath, this.#script],
      directory: this.#directory,
      logPath,
      temporaryDirectory: this.#directory,
    });
    this.#children.push(child);
    return {
      pid: child.pid,
      async freeze() {
        child.send('SIGSTOP');
        await waitFor('the copy stands still', async () => isStopped(child.pid));
      },
      thaw: () => child.send('SIGCONT'),
      async kill() {
        child.send('SIGKILL');
        await child.ended;
      },
      stop() {
        child.send('SIGTERM');
        return child.ended;
      },
    };
  }

  /** The output of all of them. */
  async output(): Promise<string> {
    const logs = this.#children.map((_, i) => join(this.#directory, `${i}.log`));
    return (await Promise.all(logs.map((path) => readFile(path, 'utf8')))).join('---\n');
  }

  /** Waits until `condition` is true. Rejects after 30 s with what the copies have printed. */
  async until(what: string, condition: () => Promise<boolean>): Promise<void> {
    try {
      await waitFor(what, condition);
    } catch (cause) {
      throw new Error(`${(cause as Error).message}\n${await this.output()}`, { cause });
    }
  }

  /** Kills those that still run. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.send('SIGKILL');
    await Promise.all(this.#children.map(({ ended }) => ended));
    await rm(this.#directory, { recursive: true, force: true });
  }
}
