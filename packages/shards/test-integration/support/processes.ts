/** Processes that share shards on a real store, and the judge of what they say. */
import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('shard-process.mjs', import.meta.url));

/** One spell of a shard. Times in ms, by the clock that all processes of this machine share. */
export interface Spell {
  readonly process: string;
  readonly shard: number;
  readonly token: bigint;
  readonly beganMs: number;
  endedMs: number;
}

export class ShardProcesses {
  readonly spells: Spell[] = [];
  readonly #store: readonly [kind: string, where: string];
  readonly #shards: number;
  readonly #lease: string;
  readonly #running = new Map<string, ChildProcessByStdio<Writable, Readable, null>>();
  #listeners: (() => void)[] = [];
  /** The other words of each process. */
  readonly said: Map<string, string[]> = new Map();

  constructor(store: readonly [kind: string, where: string], shards: number, lease: string) {
    this.#store = store;
    this.#shards = shards;
    this.#lease = lease;
  }

  /** Resolves when it has joined, or was refused. */
  async start(id: string, shards: number = this.#shards): Promise<void> {
    const child = spawn(process.execPath, [program, ...this.#store, id, `${shards}`, this.#lease], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    // Otherwise a test would wait for its words.
    child.once('exit', (code) => this.#hear(id, `exited ${code}`));
    this.#running.set(id, child);
    this.said.set(id, []);
    createInterface({ input: child.stdout }).on('line', (line) => this.#hear(id, line));
    await this.until(() => this.said.get(id)?.length !== 0);
  }

  #hear(id: string, line: string): void {
    const [word, shard, token, at] = line.split(' ');
    const ms = Number(BigInt(at?.match(/^\d+$/) ? at : 0)) / 1e6;
    if (word === 'begin') {
      this.spells.push({
        ...{ process: id, shard: Number(shard), token: BigInt(token ?? 0) },
        ...{ beganMs: ms, endedMs: Number.POSITIVE_INFINITY },
      });
    } else if (word === 'end') {
      const spell = this.spells.find(
        (each) => each.process === id && `${each.token}` === token && `${each.shard}` === shard,
      );
      if (spell !== undefined) spell.endedMs = ms;
    } else {
      this.said.get(id)?.push(line);
    }
    for (const listener of this.#listeners) listener();
  }

  until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!holds()) return;
        this.#listeners = this.#listeners.filter((other) => other !== look);
        resolve();
      };
      this.#listeners.push(look);
      look();
    });
  }

  /** How many shards each process works for now. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map([...this.#running.keys()].map((id) => [id, 0]));
    for (const { process: id, endedMs } of this.spells) {
      if (endedMs === Number.POSITIVE_INFINITY) counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  }

  /** All shards have an owner, and no process has two more than another. */
  get isEven(): boolean {
    const counts = [...this.counts().values()];
    const sum = counts.reduce((total, count) => total + count, 0);
    return sum === this.#shards && Math.max(...counts) - Math.min(...counts) <= 1;
  }

  /** SIGKILL: its work ends at once. */
  async kill(id: string): Promise<void> {
    const child = this.#running.get(id);
    const exited = once(child!, 'exit');
    child?.kill('SIGKILL');
    await exited;
    const nowMs = Number(process.hrtime.bigint()) / 1e6;
    for (const spell of this.spells) {
      if (spell.process === id && spell.endedMs === Number.POSITIVE_INFINITY) spell.endedMs = nowMs;
    }
    this.#running.delete(id);
  }

  async tell(id: string, word: 'drain' | 'close'): Promise<void> {
    const child = this.#running.get(id)!;
    child.stdin.write(`${word}\n`);
    await this.until(() => this.said.get(id)?.includes('left') === true);
    this.#running.delete(id);
  }

  async end(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((id) => this.kill(id)));
  }

  /** Spells of one shard that overlap, or whose tokens do not rise. */
  faults(): readonly string[] {
    const faults: string[] = [];
    for (let shard = 0; shard < this.#shards; shard += 1) {
      const own = this.spells.filter((spell) => spell.shard === shard);
      own.sort((a, b) => a.beganMs - b.beganMs);
      for (const [i, spell] of own.entries()) {
        const before = own[i - 1];
        if (before === undefined) continue;
        const names = `shard ${shard}: ${before.process} (${before.token}), then ${spell.process} (${spell.token})`;
        if (spell.beganMs < before.endedMs) faults.push(`${names}: at the same time`);
        if (spell.token <= before.token) faults.push(`${names}: the token does not rise`);
      }
    }
    return faults;
  }
}
