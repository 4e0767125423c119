/**
 * The common part of all servers for tests: one process on loopback, with a directory of its own.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Child } from '@incumbent/zookeeper-testing';
import { isStopped, spawnChild } from '@incumbent/zookeeper-testing';

const pollMs = 20;
/** A server that is not there by then is not going to be. */
const startTimeoutMs = 120_000;

export interface LocalServerPlan {
  readonly program: string;
  readonly arguments: readonly string[];
  /** Made with `makeServerDirectory`; removed by `close`. */
  readonly directory: string;
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Whether it answers. A rejection means: not yet. */
  isReady(): Promise<boolean>;
}

/** A directory for the data of one server, below the system's temporary directory. */
export function makeServerDirectory(kind: string): Promise<string> {
  return mkdtemp(join(tmpdir(), `incumbent-${kind}-`));
}

/** Waits until `condition` is true. Rejects after 30 s; what it throws counts as false. */
export async function waitFor(what: string, condition: () => Promise<boolean>): Promise<void> {
  const startedAtMs = performance.now();
  for (;;) {
    if (await condition().catch(() => false)) return;
    if (performance.now() - startedAtMs > startTimeoutMs) {
      throw new Error(`not within ${startTimeoutMs} ms: ${what}`);
    }
    await sleep(pollMs);
  }
}

/** A process that can be killed, frozen and started again on the same data. */
export class LocalServer implements AsyncDisposable {
  readonly #plan: LocalServerPlan;
  #child: Child | undefined;

  constructor(plan: LocalServerPlan) {
    this.#plan = plan;
  }

  get pid(): number | undefined {
    return this.#child?.alive === true ? this.#child.pid : undefined;
  }

  get logPath(): string {
    return join(this.#plan.directory, 'output.log');
  }

  /** Resolves when it answers. Rejects with the end of its output when it does not. */
  async start(): Promise<void> {
    const { program, arguments: args, directory, user } = this.#plan;
    const child = await spawnChild({
      program,
      arguments: args,
      directory,
      logPath: this.logPath,
      temporaryDirectory: directory,
      ...(user === undefined ? {} : { user }),
    });
    this.#child = child;
    try {
      await waitFor(`${program} answers`, async () => {
        if (!child.alive) return true;
        return this.#plan.isReady();
      });
    } catch (error) {
      await this.kill();
      throw await this.#withOutput(error);
    }
    if (!child.alive)
      throw await this.#withOutput(new Error(`${program} ended (${await child.ended})`));
  }

  /** SIGKILL: nothing is flushed, connections are reset. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** SIGTERM, and waits for the end. */
  async stop(): Promise<void> {
    this.thaw();
    await this.#end('SIGTERM');
  }

  /** SIGSTOP. Resolves when none of its threads runs any more. */
  async freeze(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    child.send('SIGSTOP');
    await waitFor('the server stands still', async () => isStopped(child.pid));
  }

  thaw(): void {
    this.#child?.send('SIGCONT');
  }

  /** Kills it and removes its data. Idempotent. */
  async close(): Promise<void> {
    await this.kill();
    await rm(this.#plan.directory, { recursive: true, force: true, maxRetries: 3 });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    child.send(signal);
    await child.ended;
  }

  async #withOutput(cause: unknown): Promise<Error> {
    const output = await readFile(this.logPath, 'utf8').catch(() => '');
    return new Error(`${(cause as Error).message}\n${output.slice(-2_000)}`, { cause });
  }
}
