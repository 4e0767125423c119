import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { Command } from './program.ts';

const running = new Set<{ kill(signal: 'SIGKILL'): unknown }>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Turns a hang into a failure. */
const boundMs = 60_000;

/** The facts that a member needs. */
export interface Seat {
  readonly address: string;
  /** Of the election's node. */
  readonly path: string;
  readonly id: string;
  readonly sessionMs: number;
  /** The fenced log. */
  readonly log: string;
}

/** The queue, as other members can tell it. */
export interface Contenders {
  readonly leader: string | undefined;
  /** In the order of the queue. */
  readonly ids: readonly string[];
}

/** A process that takes part in an election, ours or another library's: it obeys lines. */
export class Member implements AsyncDisposable {
  readonly id: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #gone: Promise<unknown>;
  readonly #waiting: { readonly word: string; readonly take: (rest: string) => void }[] = [];
  #complaints = '';

  private constructor(command: Command, seat: Seat) {
    this.id = seat.id;
    const [program, ...args] = command;
    const words = [seat.address, seat.path, seat.id, String(seat.sessionMs), seat.log];
    this.#child = spawn(program, [...args, ...words], {
      stdio: ['pipe', 'pipe', 'pipe'],
      // It is cut off and frozen on purpose: that its store is away is no complaint.
      env: { ...process.env, NODE_OPTIONS: '--disable-warning=INCUMBENT_STORE_AWAY' },
    });
    this.#child.on('error', (error) => this.#complain(String(error)));
    this.#child.stdin.on('error', () => {}); // it was killed
    this.#child.stderr.on('data', (chunk: Buffer) => this.#complain(chunk.toString()));
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#hear(line));
    this.#gone = once(this.#child, 'close');
    running.add(this.#child);
  }

  /** Resolves when it is connected. */
  static async start(command: Command, seat: Seat): Promise<Member> {
    const member = new Member(command, seat);
    try {
      await member.#says('ready');
      return member;
    } catch (error) {
      await member.kill();
      throw error;
    }
  }

  /** Lines that nobody expected of it: errors. */
  get complaints(): string {
    return this.#complaints;
  }

  /** Resolves when it has a place in the queue, with the name of that if it knows it. */
  async join(): Promise<string> {
    return this.#ask('join', 'joined');
  }

  /** Resolves when its place is gone. It can join again. */
  async resign(): Promise<void> {
    await this.#ask('resign', 'resigned');
  }

  /** As its library sees them. */
  async contenders(): Promise<Contenders> {
    const [leader, ids = ''] = (await this.#ask('contenders', 'contenders')).split(' ');
    return { leader: leader === '-' ? undefined : leader, ids: ids.split(',') };
  }

  /** SIGKILL. Resolves when the process is gone; its session runs out later. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#gone;
    running.delete(this.#child);
  }

  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #complain(text: string): void {
    this.#complaints += text;
  }

  #hear(line: string): void {
    const [word = ''] = line.split(' ', 1);
    const waiting = this.#waiting.findIndex((each) => each.word === word);
    const [found] = waiting < 0 ? [] : this.#waiting.splice(waiting, 1);
    if (found !== undefined) found.take(line.slice(word.length + 1));
    else if (word !== 'leading' && word !== 'ended') this.#complain(`${line}\n`);
  }

  async #ask(command: string, word: string): Promise<string> {
    this.#child.stdin.write(`${command}\n`);
    return this.#says(word);
  }

  async #says(word: string): Promise<string> {
    const fail = (what: string) => new Error(`${this.id} ${what} "${word}"\n${this.#complaints}`);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(fail('does not say')), boundMs);
      const take = (rest: string) => {
        clearTimeout(timer);
        resolve(rest);
      };
      this.#waiting.push({ word, take });
      void this.#gone.then(() => {
        clearTimeout(timer);
        reject(fail('has ended before it said'));
      });
    });
  }
}
