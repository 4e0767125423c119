/** The built command, as a shell would start it. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export const bin: string = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
const fixture: string = fileURLToPath(new URL('candidate.mjs', import.meta.url));

export interface Result {
  /** 128 + n when signal n ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Place {
  readonly cwd?: string;
  /** Added to PATH and HOME, which is all there is. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A program that runs, and is killed at the end of the test. */
export class Program {
  readonly child: ChildProcess;
  readonly result: Promise<Result>;
  stdout = '';
  stderr = '';
  #waiting: (() => void)[] = [];

  constructor(args: readonly string[], { cwd = tmpdir(), env = {} }: Place = {}) {
    if (!existsSync(bin)) throw new Error(`${bin} is missing: npm run build`);
    this.child = spawn(process.execPath, args, {
      cwd,
      env: { PATH: process.env['PATH'], HOME: '/nonexistent', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text) => {
      this.stdout += text;
      this.#tell();
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text) => {
      this.stderr += text;
      this.#tell();
    });
    this.result = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', (code, signal) => {
        resolve({
          code: code ?? 128 + (signal === 'SIGKILL' ? 9 : 15),
          stdout: this.stdout,
          stderr: this.stderr,
        });
        this.#tell();
      });
    });
    onTestFinished(async () => {
      this.child.kill('SIGKILL');
      await this.result;
    });
  }

  /** Resolves when stdout matches; rejects when the program has ended without that. */
  async printed(pattern: RegExp): Promise<void> {
    await this.#until(pattern, () => this.stdout);
  }

  /** The same of stderr. */
  async said(pattern: RegExp): Promise<void> {
    await this.#until(pattern, () => this.stderr);
  }

  async #until(pattern: RegExp, output: () => string): Promise<void> {
    while (!pattern.test(output())) {
      if (this.child.exitCode !== null || this.child.signalCode !== null) {
        throw new Error(`it ended without ${pattern}: ${this.stdout}${this.stderr}`);
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

export function start(args: readonly string[], place: Place = {}): Program {
  return new Program([bin, ...args], place);
}

export function incumbent(args: readonly string[], place: Place = {}): Promise<Result> {
  return start(args, place).result;
}

/** A candidate in a process of its own; prints `leading TOKEN`. */
export function candidateProcess(directory: string, election: string, id: string): Program {
  return new Program([fixture, directory, election, id]);
}

/** A directory that is removed after the test. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'incumbent-cli-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
