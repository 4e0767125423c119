import type { CommandEntry } from '../../src/redis-failover-command/command-table.ts';
import { commands } from '../../src/redis-failover-command/command-table.ts';
import type { Host, SignalName } from '../../src/redis-failover-command/context.ts';
import { main } from '../../src/redis-failover-command/main.ts';

export interface Invocation {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Replaces the table's commands. */
  readonly table?: readonly CommandEntry[];
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
  readonly #listeners: Map<SignalName, Set<() => void>> = new Map();
  #waiting: { readonly until: () => boolean; readonly resolve: () => void }[] = [];

  constructor(argv: readonly string[], { env = {}, cwd = '/', table = commands }: Invocation = {}) {
    const write = (text: string) => {
      this.stdout += text;
      for (const { until, resolve } of this.#waiting) if (until()) resolve();
    };
    const host: Host = {
      env,
      cwd,
      stdout: { write },
      stderr: { write: (text) => (this.stderr += text) },
      openLog: async () => ({ isTerminal: false, write, end: async () => {} }),
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
    const until = () => pattern.test(this.stdout);
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
