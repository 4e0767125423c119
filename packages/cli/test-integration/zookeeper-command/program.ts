/** The built command, as a shell would start it. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const bin = fileURLToPath(new URL('../../dist/zookeeper-command/bin.js', import.meta.url));

export interface Result {
  /** 128 + n if signal n ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Place {
  /** Added to PATH; nothing else is inherited. */
  readonly env?: Readonly<Record<string, string>>;
  /** The content of stdin; default: nothing. `open`: it stays open. */
  readonly stdin?: string | Uint8Array | 'open';
}

/** A command that is running. It is killed at the end of the test. */
export class Program {
  readonly child: ChildProcess;
  readonly result: Promise<Result>;
  readonly chunks: Buffer[] = [];
  stderr = '';
  #waiting: (() => void)[] = [];

  constructor(server: string, args: readonly string[], { env = {}, stdin = '' }: Place = {}) {
    if (!existsSync(bin)) throw new Error(`${bin} is missing: npm run build`);
    this.child = spawn(process.execPath, [bin, ...args], {
      cwd: tmpdir(),
      env: { PATH: process.env['PATH'], INCUMBENT_ZK: server, ...env },
      stdio: 'pipe',
    });
    this.child.stdin?.on('error', () => {}); // it may end before it has read everything
    if (stdin !== 'open') this.child.stdin?.end(stdin);
    this.child.stdout?.on('data', (chunk: Buffer) => {
      this.chunks.push(chunk);
      this.#tell();
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
      this.#tell();
    });
    this.result = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', (code, signal) => {
        const killed = signal === 'SIGKILL' ? 137 : 255;
        resolve({ code: code ?? killed, stdout: this.stdout, stderr: this.stderr });
        this.#tell();
      });
    });
    onTestFinished(async () => {
      this.child.kill('SIGKILL');
      await this.result;
    });
  }

  get stdout(): string {
    return Buffer.concat(this.chunks).toString();
  }

  /** Resolves when stdout or stderr matches. Rejects if the program ends without that. */
  async printed(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.stdout) && !pattern.test(this.stderr)) {
      if (this.child.exitCode !== null || this.child.signalCode !== null) {
        throw new Error(`it ended without printing ${pattern}: ${this.stdout}${this.stderr}`);
      }
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  #tell(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
