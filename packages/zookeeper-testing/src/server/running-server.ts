/// <reference lib="esnext.disposable" preserve="true" />
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestCertificates } from './certificates.ts';
import type { Child } from './child.ts';
import { isStopped, spawnChild } from './child.ts';
import type { ServerPlan } from './configuration.ts';
import { javaArguments, writeConfiguration } from './configuration.ts';
import { removeEmptyLogs } from './empty-logs.ts';
import { ServerStartError, TestServerError } from './errors.ts';
import { accepts, askFourLetterWord, modeOf } from './four-letter-word.ts';
import { poll } from './poll.ts';
import type { RestartOptions, TestServer } from './server.ts';

const logBytes = 16_384;
const stopTimeoutMs = 10_000;
// A connection that comes while the server sets itself up may never be answered. So the first
// questions wait only briefly. A busy machine needs more.
const firstAnswerMs = 50;
const longestAnswerMs = 2000;

export class RunningServer implements TestServer {
  readonly connectionString: string;
  readonly secureConnectionString: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly securePort: number | undefined;
  readonly certificates: TestCertificates | undefined;
  readonly #plan: ServerPlan;
  readonly #logPath: string;
  #child: Child | undefined;
  #frozen = false;
  #configured = false;
  #closing: Promise<void> | undefined;
  /** The tail of the output, once the file is gone. */
  #lastLog: string | undefined;

  constructor(plan: ServerPlan) {
    const { host, port, securePort } = plan;
    this.#plan = plan;
    this.#logPath = join(plan.directory, 'server.log');
    this.host = host;
    this.port = port;
    this.securePort = securePort;
    this.certificates = plan.certificates;
    this.connectionString = `zk://${host}:${port}`;
    this.secureConnectionString =
      securePort === undefined ? undefined : `zks://${host}:${securePort}`;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get state(): 'running' | 'frozen' | 'stopped' {
    if (this.#child?.alive !== true) return 'stopped';
    return this.#frozen ? 'frozen' : 'running';
  }

  /** Starts the process. Leaves it running when it rejects: the caller closes. */
  async start(until: 'serving' | 'answering', signal: AbortSignal | undefined): Promise<void> {
    const { directory, installation, options } = this.#plan;
    if (!this.#configured) await writeConfiguration(this.#plan);
    this.#configured = true;
    await removeEmptyLogs(this.#plan.dataDirectory);
    signal?.throwIfAborted();
    this.#refuseWhenClosed();
    const printedBefore = fileSize(this.#logPath);
    const [program = installation.java, ...words] = [
      ...this.#plan.command,
      installation.java,
      ...javaArguments(this.#plan),
    ];
    const child = await spawnChild({
      program,
      arguments: words,
      directory,
      logPath: this.#logPath,
      temporaryDirectory: this.#plan.temporaryDirectory,
    });
    if (this.#closing !== undefined) {
      child.send('SIGKILL'); // close() came while it was being spawned, and saw nothing to end
      await child.ended;
      this.#refuseWhenClosed();
    }
    this.#child = child;
    this.#frozen = false;
    let end: string | undefined;
    void child.ended.then((how) => {
      end = how;
    });
    let answerMs = firstAnswerMs;
    const timeoutMs = options.startTimeoutMs ?? 60_000;
    const wait = { timeoutMs, ...(signal && { signal }) };
    try {
      await poll(`${until} at ${this.host}:${this.port}`, wait, async () => {
        const printed = this.#read(printedBefore);
        const taken = /BindException|Address already in use/.test(printed);
        if (end !== undefined || taken) {
          const why = taken ? 'found a port taken' : `ended with ${end}`;
          throw new ServerStartError(`the ZooKeeper server ${why}`, printed, taken);
        }
        const answer = await this.#answers(until, answerMs);
        if (answer === 'silent') answerMs = Math.min(2 * answerMs, longestAnswerMs);
        return answer === 'ready' ? true : undefined;
      });
    } catch (error) {
      if (!(error instanceof TestServerError) || error.code !== 'TIMED_OUT') throw error;
      const message = `the ZooKeeper server is not ${until} after ${timeoutMs} ms`;
      throw new ServerStartError(message, this.log());
    }
  }

  async kill(): Promise<void> {
    this.#child?.send('SIGKILL');
    await this.#child?.ended;
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.thaw();
    child.send('SIGTERM');
    const timer = setTimeout(() => child.send('SIGKILL'), stopTimeoutMs);
    await child.ended;
    clearTimeout(timer);
  }

  async freeze(): Promise<void> {
    const child = this.#child;
    if (child?.alive !== true) {
      throw new TestServerError('NOT_RUNNING', 'a server that does not run cannot be frozen');
    }
    this.#frozen = true;
    child.send('SIGSTOP');
    while (this.#frozen && child.alive && !isStopped(child.pid)) await sleep(1);
  }

  thaw(): void {
    if (!this.#frozen) return;
    this.#frozen = false;
    this.#child?.send('SIGCONT');
  }

  async restart(options: RestartOptions = {}): Promise<void> {
    this.#refuseWhenClosed();
    await this.stop();
    try {
      await this.start(options.until ?? 'serving', options.signal);
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  async fourLetterWord(word: string, options?: { readonly timeoutMs?: number }): Promise<string> {
    return askFourLetterWord(this, word, options?.timeoutMs);
  }

  log(): string {
    return this.#lastLog ?? this.#read(fileSize(this.#logPath) - logBytes);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await this.kill();
    this.#lastLog = this.log();
    await rm(this.#plan.directory, { recursive: true, force: true, maxRetries: 2 });
  }

  /**
   * One look at a server that starts.
   * @throws ServerStartError if another server has the port
   */
  async #answers(
    until: 'serving' | 'answering',
    timeoutMs: number,
  ): Promise<'ready' | 'not yet' | 'silent'> {
    let configuration: string;
    try {
      const mode = modeOf(await this.fourLetterWord('srvr', { timeoutMs }));
      if (mode === undefined && until === 'serving') return 'not yet';
      configuration = await this.fourLetterWord('conf', { timeoutMs });
    } catch (error) {
      return error instanceof TestServerError && error.code === 'TIMED_OUT' ? 'silent' : 'not yet';
    }
    // Another server took the port first and answers in place of ours, which is about to fail.
    const directory = /^dataDir=(.*)$/m.exec(configuration)?.[1];
    if (directory !== undefined && !directory.startsWith(this.#plan.dataDirectory)) {
      const message = `another ZooKeeper server has port ${this.port}`;
      throw new ServerStartError(message, this.log(), true);
    }
    const { host, securePort } = this;
    // It begins to listen there after the plain port.
    if (securePort !== undefined && !(await accepts({ host, port: securePort }))) return 'not yet';
    return 'ready';
  }

  #refuseWhenClosed(): void {
    if (this.#closing === undefined) return;
    throw new TestServerError('NOT_RUNNING', 'this server was closed: start another one');
  }

  /** The log from `position` (in bytes) on. */
  #read(position: number): string {
    let file: number;
    try {
      file = openSync(this.#logPath, 'r');
    } catch {
      return ''; // it has not begun
    }
    try {
      const start = Math.max(0, position);
      const bytes = new Uint8Array(Math.max(0, fstatSync(file).size - start));
      const read = readSync(file, bytes, 0, bytes.length, start);
      return new TextDecoder().decode(bytes.subarray(0, read));
    } finally {
      closeSync(file);
    }
  }
}

function fileSize(path: string): number {
  try {
    const file = openSync(path, 'r');
    const { size } = fstatSync(file);
    closeSync(file);
    return size;
  } catch {
    return 0;
  }
}
