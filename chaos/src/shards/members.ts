import { join } from 'node:path';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import { isStopped } from '@incumbent/zookeeper-testing';
import { Child } from '../harness/child.ts';
import { StuckError } from '../harness/stuck.ts';
import { pause, until } from '../harness/time.ts';
import type { MemberOrder, MemberPlan, MemberTells } from './messages.ts';

type Process = Child<MemberTells, MemberOrder>;

/** The place of one process: its id, and its way to the store. */
export interface Place {
  readonly id: string;
  readonly address: string;
  readonly proxy: TestProxy | undefined;
  process: Process | undefined;
  isFrozen: boolean;
}

const program = new URL('./member.js', import.meta.url);
/** A process that has closed everything ends by itself. */
const endMs = 15_000;
/** Turns a hang of the machine into a failure. */
const freezeMs = 60_000;

/** The processes that share the shards. */
export class Members {
  readonly places: Place[] = [];
  readonly #plan: Omit<MemberPlan, 'id' | 'address' | 'troubles'>;
  readonly #directory: string;
  readonly #find: (problem: string) => void;
  /** Processes that may end. */
  readonly #asked = new WeakSet<Process>();
  #coordinator: Place | undefined;

  /** @param find called with something that must not be */
  constructor(
    plan: Omit<MemberPlan, 'id' | 'address' | 'troubles'>,
    directory: string,
    find: (problem: string) => void,
  ) {
    this.#plan = plan;
    this.#directory = directory;
    this.#find = find;
  }

  addPlace(way: { readonly address: string; readonly proxy?: TestProxy }): Place {
    const { address, proxy } = way;
    const id = `m${this.places.length + 1}`;
    const place: Place = { id, address, proxy, process: undefined, isFrozen: false };
    this.places.push(place);
    return place;
  }

  /** The processes that take part: their ids by their process numbers. */
  get takingPart(): ReadonlyMap<number, string> {
    return new Map(
      this.places.flatMap(({ id, process }) =>
        process === undefined ? [] : [[process.pid, id] as const],
      ),
    );
  }

  /** The process that has begun to coordinate last, while it takes part. */
  get coordinator(): Place | undefined {
    return this.#coordinator?.process === undefined ? undefined : this.#coordinator;
  }

  /** Resolves when its code runs. @throws StuckError */
  async start(place: Place): Promise<void> {
    const { id, address } = place;
    const plan: MemberPlan = {
      ...this.#plan,
      ...{ id, address, troubles: join(this.#directory, 'troubles.txt') },
    };
    const child: Process = new Child(id, program, plan);
    place.process = child;
    child.onTold((told) => {
      if (told.say === 'trouble') this.#find(told.text);
      if (told.say === 'coordinating' && place.process === child) this.#coordinator = place;
    });
    void child.ended.then((how) => {
      if (!this.#asked.has(child)) {
        this.#find(`members stay: ${id} ended unasked (${how}) ${child.errors}`.trim());
        if (place.process === child) place.process = undefined;
      } else if (child.errors !== '') this.#find(`nobody complains: ${id} wrote ${child.errors}`);
    });
    await child.next('running');
  }

  async kill(place: Place): Promise<void> {
    const { process } = place;
    if (process === undefined) return;
    this.#asked.add(process);
    place.process = undefined;
    process.signal('SIGKILL');
    await process.ended;
  }

  /** Resolves when it runs again. @throws StuckError */
  async freeze(place: Place, forMs: number): Promise<void> {
    const { process } = place;
    if (process === undefined || place.isFrozen) return;
    place.isFrozen = true;
    process.order('freeze');
    const stands = () => process.hasEnded || isStopped(process.pid);
    if (!(await until(freezeMs, stands))) throw new StuckError(`${place.id} does not stand still`);
    await pause(forMs);
    process.signal('SIGCONT');
    place.isFrozen = false;
  }

  /**
   * It takes part no more. Resolves when it has ended by itself.
   * @param isLate asked again and again: whether it has taken too long
   */
  async leave(place: Place, order: 'drain' | 'close', isLate: () => boolean): Promise<void> {
    const { id, process } = place;
    if (process === undefined) return;
    this.#asked.add(process);
    place.process = undefined;
    let hasLeft = false;
    process.onTold(({ say }) => {
      if (say === 'left') hasLeft = true;
    });
    process.order(order);
    while (!hasLeft && !process.hasEnded && !isLate()) await pause(20);
    if (!hasLeft) {
      this.#find(`leaving: ${id} was told to ${order}, and has not left within the bound`);
      process.signal('SIGKILL');
      return;
    }
    const end = await process.endsByItself(endMs);
    if (end !== 'exit code 0') this.#find(`nothing is left open: ${id} ${end}`);
  }

  resign(place: Place): void {
    place.process?.order('resign');
  }

  killAll(): Promise<unknown> {
    return Promise.all(this.places.map((place) => this.kill(place)));
  }
}
