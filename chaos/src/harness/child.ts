import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { StuckError } from './stuck.ts';

const running = new Set<ChildProcess>();
// Also those that are stopped.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Turns a hang into a failure. */
const patienceMs = 60_000;

/** A process of ours that tells what it sees and obeys orders. It ends with this one. */
export class Child<Told extends { readonly say: string }, Order extends string | object> {
  readonly name: string;
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #listeners = new Set<(told: Told) => void>();
  readonly #endListeners = new Set<() => void>();
  #errors = '';
  #end: string | undefined;

  /** @param plan must survive JSON */
  constructor(name: string, program: URL, plan: object) {
    this.name = name;
    this.#child = fork(fileURLToPath(program), [JSON.stringify(plan)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // Warnings say where they come from.
      execArgv: ['--trace-warnings'],
    });
    running.add(this.#child);
    this.#child.on('error', () => {}); // an order to one that has ended
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(0, 4_000);
    });
    this.#child.on('message', (message) => {
      for (const listener of [...this.#listeners]) listener(message as Told);
    });
    // Not 'close', which never comes once we have closed the channel ourselves.
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        running.delete(this.#child);
        this.#end = signal ?? `exit code ${code}`;
        for (const listener of [...this.#endListeners]) listener();
        resolve(this.#end);
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Its error output: nobody expects any. */
  get errors(): string {
    return this.#errors.trim();
  }

  onTold(listener: (told: Told) => void): void {
    this.#listeners.add(listener);
  }

  /** The next thing of that kind that it tells. @throws StuckError when it has ended, or says nothing */
  next<Say extends Told['say']>(say: Say): Promise<Extract<Told, { readonly say: Say }>> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.#listeners.delete(hear);
        this.#endListeners.delete(gone);
      };
      const fail = (why: string): void => {
        settle();
        reject(new StuckError(`${this.name} ${why} "${say}"\n${this.#errors}`.trim()));
      };
      const hear = (told: Told): void => {
        if (told.say !== say) return;
        settle();
        resolve(told as Extract<Told, { readonly say: Say }>);
      };
      const gone = (): void => fail(`ended (${this.#end}) and did not say`);
      const timer = setTimeout(() => fail('does not say'), patienceMs);
      this.#listeners.add(hear);
      this.#endListeners.add(gone);
      if (this.#end !== undefined) gone();
    });
  }

  order(order: Order): void {
    if (this.#child.connected) this.#child.send(order);
  }

  async ask<Say extends Told['say']>(
    order: Order,
    say: Say,
  ): Promise<Extract<Told, { readonly say: Say }>> {
    const answer = this.next(say);
    this.order(order);
    return answer;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** It has been told to close everything: now nothing may keep it. @returns how it ended */
  async endsByItself(withinMs: number): Promise<string> {
    this.#child.disconnect();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`is still there after ${withinMs / 1000} s`), withinMs);
    });
    const end = await Promise.race([this.ended, late]);
    clearTimeout(timer);
    if (!this.hasEnded) this.signal('SIGKILL');
    return end;
  }
}
