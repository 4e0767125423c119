/** Processes that take seats and are killed and frozen, and what they have told of their terms. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A term as its leader has told it, in ms of the clock that all processes share. */
export interface Told {
  readonly seat: number;
  readonly token: bigint;
  readonly by: ChildProcess;
  readonly fromMs: number;
  untilMs: number;
}

export class Crew {
  readonly terms = new Map<string, Told>();
  readonly #live = new Set<ChildProcess>();
  readonly #frozen = new Set<ChildProcess>();
  readonly #command: readonly string[];
  #heard: () => void = () => {};

  /** @param command a program that takes its id as the last argument, and tells its terms */
  constructor(command: readonly string[], candidates = 20) {
    this.#command = command;
    for (let index = 0; index < candidates; index += 1) this.add();
  }

  add(): void {
    const [program = '', ...args] = this.#command;
    const child = spawn(program, [...args, `c${this.#live.size}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#live.add(child);
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [seat = '', token = '', at] = line.split(' ');
      const atMs = Number(at);
      const known = this.terms.get(`${seat} ${token}`);
      const fresh = { seat: Number(seat), token: BigInt(token), by: child, fromMs: atMs };
      if (known === undefined) this.terms.set(`${seat} ${token}`, { ...fresh, untilMs: atMs });
      else known.untilMs = atMs;
      this.#heard();
    });
  }

  /** Resolves with the three leaders, once each seat has one that acts after now. */
  async untilThree(): Promise<readonly Told[]> {
    const sinceMs = nowMs();
    for (;;) {
      const acting = [...this.terms.values()].filter(
        ({ by, untilMs }) => untilMs > sinceMs && this.#live.has(by) && !this.#frozen.has(by),
      );
      if (new Set(acting.map(({ seat }) => seat)).size >= 3) return acting;
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  kill(child: ChildProcess): void {
    this.#live.delete(child);
    child.kill('SIGKILL');
    this.add();
  }

  freeze(child: ChildProcess): void {
    this.#frozen.add(child);
    child.kill('SIGSTOP');
  }

  /** The processes that were frozen go on, and find out by themselves. */
  thaw(): void {
    for (const child of this.#frozen) child.kill('SIGCONT');
    this.#frozen.clear();
  }

  async close(): Promise<void> {
    this.thaw();
    const ended = [...this.#live].map((child) => once(child, 'exit'));
    for (const child of this.#live) child.kill('SIGKILL');
    await Promise.all(ended);
  }
}

export function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** The most terms that held at one instant, and what is wrong with their order. */
export function judge(terms: readonly Told[]): {
  readonly most: number;
  /** So many terms began while three others held. */
  readonly beyondThree: number;
  readonly faults: string[];
} {
  const inOrder = terms.toSorted((a, b) => a.fromMs - b.fromMs);
  const faults: string[] = [];
  let most = 0;
  let beyondThree = 0;
  for (const [index, term] of inOrder.entries()) {
    const earlier = inOrder.slice(0, index);
    const others = earlier.filter(({ untilMs }) => untilMs > term.fromMs).length;
    most = Math.max(most, 1 + others);
    if (others >= 3) beyondThree += 1;
    for (const { seat, token, untilMs } of earlier) {
      if (seat !== term.seat) continue;
      if (token >= term.token) faults.push(`seat ${seat}: ${token} came before ${term.token}`);
      if (untilMs > term.fromMs) faults.push(`seat ${seat}: ${token} and ${term.token} overlap`);
    }
  }
  return { most, beyondThree, faults };
}

/**
 * Kills and freezes one holder after the other.
 * @returns how long it took until three held again, in ms, in order
 */
export async function strike(crew: Crew, strikes: number): Promise<readonly number[]> {
  const tookMs: number[] = [];
  for (let each = 0; each < strikes; each += 1) {
    const leaders = await crew.untilThree();
    const struck = leaders[each % leaders.length] as Told;
    if (each % 2 === 0) crew.kill(struck.by);
    else crew.freeze(struck.by);
    const sinceMs = nowMs();
    await crew.untilThree();
    tookMs.push(nowMs() - sinceMs);
    crew.thaw();
  }
  await crew.untilThree();
  return tookMs.map(Math.round).toSorted((a, b) => a - b);
}
