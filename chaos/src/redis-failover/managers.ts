import { Child } from '../harness/child.ts';
import type { ManagerOrder, ManagerPlan, ManagerTells } from './messages.ts';
import type { ManagerStep } from './plan.ts';
import type { Wires } from './wires.ts';

const program = new URL('./manager.js', import.meta.url);
const endsWithinMs = 15_000;

type ManagerProcess = Child<ManagerTells, ManagerOrder>;

/** One manager of a set: another process, with another id, after each kill. */
export class Manager {
  readonly name: string;
  readonly wires: Wires;
  readonly #settings: Settings;
  #process: ManagerProcess | undefined;
  #lives = 0;
  #token: bigint | undefined;

  constructor(name: string, wires: Wires, settings: Settings) {
    this.name = name;
    this.wires = wires;
    this.#settings = settings;
  }

  /** Of the term that it said it leads, and did not say is over. */
  get token(): bigint | undefined {
    return this.#process === undefined ? undefined : this.#token;
  }

  get process(): ManagerProcess | undefined {
    return this.#process;
  }

  async start(): Promise<void> {
    if (this.#process !== undefined) return;
    this.#lives += 1;
    this.#token = undefined;
    const { wires, name } = this;
    const { plan, tell, note, blame } = this.#settings;
    const id = `${name}-${this.#lives}`;
    const { zookeeper, reach } = wires;
    const child: ManagerProcess = new Child(id, program, { ...plan, id, zookeeper, reach });
    this.#process = child;
    child.onTold((told) => {
      if (told.say === 'note') note(`${id} ${told.text}`);
      if (told.say === 'trouble') blame(`${told.text} (${id})`);
      if (told.say === 'elected') this.#token = BigInt(told.token);
      if (told.say === 'ousted') this.#token = undefined;
      tell(this, told);
    });
    void child.ended.then((end) => {
      if (this.#process !== child) return;
      this.#process = undefined;
      blame(`managers stay: ${id} ended: ${end} ${child.errors}`);
    });
    await child.next('started');
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    child?.signal('SIGKILL');
    await child?.ended;
  }

  /** @returns what was left behind, in words */
  async end(): Promise<readonly string[]> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined) return [];
    await child.ask({ order: 'stop' }, 'closed');
    const end = await child.endsByItself(endsWithinMs);
    return [
      ...(end === 'exit code 0' ? [] : [`nothing keeps a process: ${child.name} ${end}`]),
      ...(child.errors === '' ? [] : [`nobody complains: ${child.name}: ${child.errors}`]),
    ];
  }
}

interface Settings {
  readonly plan: Omit<ManagerPlan, 'id' | 'zookeeper' | 'reach'>;
  readonly tell: (manager: Manager, told: ManagerTells) => void;
  readonly note: (line: string) => void;
  readonly blame: (problem: string) => void;
}

/** A manager at a step of a move. */
export interface Waiting {
  readonly manager: Manager;
  readonly goOn: () => void;
}

/** All managers of a set. */
export class Managers {
  readonly all: readonly Manager[];
  readonly #listeners = new Set<(manager: Manager, told: ManagerTells) => void>();
  /** Whom an elected manager took for unavailable. */
  readonly #down = new Set<string>();
  #stops = 0;

  constructor(wires: readonly Wires[], prefix: string, settings: Omit<Settings, 'tell'>) {
    const tell = (manager: Manager, told: ManagerTells) => {
      if (told.say === 'judged' && !told.isUp) this.#down.add(told.node);
      for (const listener of [...this.#listeners]) listener(manager, told);
    };
    this.all = wires.map(
      (own, index) => new Manager(`${prefix}m${index + 1}`, own, { ...settings, tell }),
    );
  }

  /** The manager that said last that it leads. */
  get elected(): Manager | undefined {
    return this.all.reduce<Manager | undefined>((newest, each) => {
      if (each.token === undefined) return newest;
      return newest?.token === undefined || each.token > newest.token ? each : newest;
    }, undefined);
  }

  /** @returns the first who tells something like that, or undefined when the time is over */
  hear(
    wanted: (manager: Manager, told: ManagerTells) => boolean,
    withinMs: number,
  ): Promise<Manager | undefined> {
    return new Promise((resolve) => {
      const settle = (manager?: Manager) => {
        clearTimeout(timer);
        this.#listeners.delete(listener);
        resolve(manager);
      };
      const listener = (manager: Manager, told: ManagerTells) => {
        if (wanted(manager, told)) settle(manager);
      };
      const timer = setTimeout(settle, withinMs);
      this.#listeners.add(listener);
    });
  }

  /**
   * Has whoever moves the primary wait at that step.
   * @returns who waits there now, until it is told to go on; undefined when nobody has come there
   */
  async waitAt(step: ManagerStep, withinMs: number): Promise<Waiting | undefined> {
    this.#stops += 1;
    const key = `stop ${this.#stops}`;
    const waits = this.hear((_manager, told) => told.say === 'at' && told.key === key, withinMs);
    for (const { process: child } of this.all) child?.order({ order: 'arm', key, step });
    const manager = await waits;
    const waiting = manager?.process;
    for (const { process: child } of this.all) {
      if (child !== waiting) child?.order({ order: 'go', key });
    }
    if (manager === undefined || waiting === undefined) return undefined;
    return { manager, goOn: () => waiting.order({ order: 'go', key }) };
  }

  /** Whom an elected manager has taken for unavailable since this was asked last. */
  takenForDown(): ReadonlySet<string> {
    const down = new Set(this.#down);
    this.#down.clear();
    return down;
  }

  async start(): Promise<void> {
    await Promise.all(this.all.map((manager) => manager.start()));
  }

  /**
   * All of them run, and reach everything. A manager that waits at a step is let go by the strike
   * that made it wait.
   */
  async heal(): Promise<void> {
    for (const { process: child } of this.all) child?.signal('SIGCONT');
    await Promise.all(this.all.map(({ wires }) => wires.heal()));
    await this.start();
  }

  /** @returns what was left behind, in words */
  async end(): Promise<readonly string[]> {
    const left = await Promise.all(this.all.map((manager) => manager.end()));
    await Promise.all(this.all.map(({ wires }) => wires.close()));
    return left.flat();
  }
}
