import type { Backend } from 'incumbent';
import { memory } from 'incumbent/memory';
import type { CommandEntry } from '../../src/command-table.ts';
import { commands } from '../../src/command-table.ts';
import type { Host, OpenStore, SignalName } from '../../src/context.ts';
import { main } from '../../src/main.ts';

export interface Invocation {
  readonly backend?: Backend;
  readonly env?: Readonly<Record<string, string>>;
  /** Replaces the table's commands. */
  readonly table?: readonly CommandEntry[];
  /** Width of the terminal that stdout is; default: stdout is no terminal. */
  readonly terminal?: number;
  readonly openStore?: Host['openStore'];
  /** Replaces parts of the store. */
  readonly store?: Partial<OpenStore>;
}

export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command line that runs in this process. */
export class Running {
  readonly result: Promise<Result>;
  readonly exits: number[] = [];
  stdout = '';
  stderr = '';
  #listeners = new Map<SignalName, Set<() => void>>();
  #waiting: { readonly until: () => boolean; readonly resolve: () => void }[] = [];

  constructor(argv: readonly string[], invocation: Invocation = {}) {
    const { terminal, env = {}, backend = memory(), table = commands } = invocation;
    const host: Host = {
      env,
      cwd: '/work',
      platform: 'linux',
      stdout: {
        write: (text) => {
          this.stdout += text;
          this.#tell();
        },
        ...(terminal === undefined ? {} : { isTTY: true, columns: terminal }),
      },
      stderr: {
        write: (text) => {
          this.stderr += text;
          this.#tell();
        },
      },
      openStore:
        invocation.openStore ??
        (async () => ({ url: 'test:', origin: '--store', backend, ...invocation.store })),
      onSignal: (name, listener) => {
        const listeners = this.#listeners.get(name) ?? new Set();
        this.#listeners.set(name, listeners.add(listener));
        return () => listeners.delete(listener);
      },
      exit: (code) => this.exits.push(code),
    };
    this.result = main(argv, table, host).then((code) => ({
      code,
      stdout: this.stdout,
      stderr: this.stderr,
    }));
  }

  /** Resolves when stdout matches. */
  printed(pattern: RegExp): Promise<void> {
    return this.#waitUntil(() => pattern.test(this.stdout));
  }

  /** The same of stderr. */
  said(pattern: RegExp): Promise<void> {
    return this.#waitUntil(() => pattern.test(this.stderr));
  }

  #tell(): void {
    for (const { until, resolve } of this.#waiting) if (until()) resolve();
  }

  #waitUntil(until: () => boolean): Promise<void> {
    if (until()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ until, resolve });
    });
  }

  signal(name: SignalName): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener();
  }

  /** How many signal handlers are left. */
  get handlers(): number {
    return [...this.#listeners.values()].reduce((sum, { size }) => sum + size, 0);
  }
}

export function invoke(argv: readonly string[], invocation: Invocation = {}): Promise<Result> {
  return new Running(argv, invocation).result;
}

/** The objects of `--json` output. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
