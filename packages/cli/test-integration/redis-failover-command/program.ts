/** The built command, as a shell would start it. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { until } from '../../../redis-failover/test-integration/support/waiting.ts';

const bin: string = fileURLToPath(
  new URL('../../dist/redis-failover-command/bin.js', import.meta.url),
);

export interface Result {
  /** 128 + n if signal n ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

/** A command that is running. It is killed at the end of its block. */
export class Command implements AsyncDisposable {
  readonly result: Promise<Result>;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';

  /** @param env besides PATH; nothing else is inherited */
  constructor(args: readonly string[], env: Environment = {}) {
    if (!existsSync(bin)) throw new Error(`${bin} is missing: npm run build`);
    this.#child = spawn(process.execPath, [bin, ...args], {
      cwd: tmpdir(),
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text) => {
      this.#stdout += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text;
    });
    this.result = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code, signal) => {
        const { stdout, stderr } = this;
        resolve({ code: code ?? 128 + (signal === 'SIGKILL' ? 9 : 15), stdout, stderr });
      });
    });
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Its lines of JSON, as objects. */
  get lines(): readonly Record<string, unknown>[] {
    return jsonLines(this.#stdout.slice(0, this.#stdout.lastIndexOf('\n') + 1));
  }

  /**
   * Resolves to the first line that has all of `fields`. Rejects if the command ends without one.
   */
  line(fields: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> {
    const wanted = Object.entries(fields);
    return this.until(JSON.stringify(fields), () =>
      this.lines.find((line) => wanted.every(([name, value]) => line[name] === value)),
    );
  }

  until<T>(
    what: string,
    ask: () => T | undefined | false | Promise<T | undefined | false>,
  ): Promise<T> {
    const story = () => `${this.#stdout}${this.#stderr}`;
    return until(
      what,
      async () => {
        const hasEnded = this.#child.exitCode !== null || this.#child.signalCode !== null;
        const answer = await ask();
        if (hasEnded && (answer === undefined || answer === false)) {
          throw new Error(`it has ended: ${what}\n${story()}`);
        }
        return answer;
      },
      story,
    );
  }

  signal(name: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void {
    this.#child.kill(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.result;
  }
}

/** Runs a command to its end. */
export async function incumbentRedis(
  args: readonly string[],
  env: Environment = {},
): Promise<Result> {
  await using command = new Command(args, env);
  return await command.result;
}

export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
