import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Child } from '../harness/child.ts';
import type { ClientBroken } from './broken.ts';
import type { ClientOrder, ClientPlan, ClientTells, WriteLine } from './messages.ts';
import { Tail } from './tail.ts';
import type { Wires } from './wires.ts';

const program = new URL('./client.js', import.meta.url);
const endsWithinMs = 15_000;
/** Longer than a session of a manager: a client that is frozen for a while still has its own. */
const sessionMs = 4_000;
/** Longer than a primary is frozen: its late answer must find somebody who waits. */
const maxWaitMs = 8_000;

/** One client process of a set. */
export class Client {
  readonly name: string;
  readonly wires: Wires;
  readonly process: Child<ClientTells, ClientOrder>;
  readonly #log: Tail;
  /** When the latest write was begun that was acknowledged. */
  #wroteMs = Number.NEGATIVE_INFINITY;

  private constructor(
    name: string,
    wires: Wires,
    child: Child<ClientTells, ClientOrder>,
    log: Tail,
  ) {
    this.name = name;
    this.wires = wires;
    this.process = child;
    this.#log = log;
  }

  static async start(
    name: string,
    wires: Wires,
    { directory, root, library, broken, note, blame }: Settings,
  ): Promise<Client> {
    const log = join(directory, `writes-${name}.jsonl`);
    writeFileSync(log, '');
    const plan: ClientPlan = {
      ...{ name, root, library, broken, sessionMs, maxWaitMs },
      ...{ zookeeper: wires.zookeeper, log },
    };
    const child = new Child<ClientTells, ClientOrder>(name, program, plan);
    child.onTold((told) => {
      if (told.say === 'note') note(`${name} ${told.text}`);
      if (told.say === 'trouble') blame(`${told.text} (${name})`);
    });
    await child.next('writing');
    return new Client(name, wires, child, new Tail(log));
  }

  get wroteMs(): number {
    return this.#wroteMs;
  }

  /** The writes that it has done since the last call. */
  read(): readonly WriteLine[] {
    const lines = [...this.#log.read()].map((line) => JSON.parse(line) as WriteLine);
    for (const { outcome, startMs } of lines) {
      if (outcome.kind === 'acknowledged') this.#wroteMs = Math.max(this.#wroteMs, startMs);
    }
    return lines;
  }

  async heal(): Promise<void> {
    this.process.signal('SIGCONT');
    await this.wires.heal();
  }

  /** @returns what was left behind, in words */
  async end(): Promise<readonly string[]> {
    await this.process.ask({ order: 'stop' }, 'closed');
    const end = await this.process.endsByItself(endsWithinMs);
    await this.wires.close();
    this.#log.close();
    const { errors } = this.process;
    return [
      ...(end === 'exit code 0' ? [] : [`nothing keeps a process: ${this.name} ${end}`]),
      ...(errors === '' ? [] : [`nobody complains: ${this.name}: ${errors}`]),
    ];
  }
}

interface Settings {
  readonly directory: string;
  readonly root: string;
  readonly library: 'redis' | 'ioredis';
  readonly broken: readonly ClientBroken[];
  readonly note: (line: string) => void;
  readonly blame: (problem: string) => void;
}
