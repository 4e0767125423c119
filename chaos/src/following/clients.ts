import { Child } from '../harness/child.ts';
import { monotonicMs } from '../harness/time.ts';
import type {
  ClientOrder,
  ClientPlan,
  ClientTells,
  Failure,
  Ground,
  Served,
  Way,
} from './messages.ts';
import type { Resources } from './resources.ts';
import { leftOver } from './resources.ts';

type ClientProcess = Child<ClientTells, ClientOrder>;

interface Seat {
  readonly process: ClientProcess;
  readonly before: Resources;
  readonly ways: readonly Way[];
  /** When it said that it calls. */
  readonly callsFromMs: number;
}

const endsWithinMs = 10_000;
const program = new URL('./client.js', import.meta.url);

/** The processes of the clients, which call without pause. */
export class Clients {
  readonly failures: Failure[] = [];
  readonly #complain: (what: string) => void;
  readonly #seats = new Map<string, Seat>();

  constructor(complain: (what: string) => void) {
    this.#complain = complain;
  }

  /** All ways of all clients. */
  get ways(): readonly (Pick<Served, 'client' | 'way'> & Pick<Seat, 'callsFromMs'>)[] {
    return [...this.#seats].flatMap(([client, { ways, callsFromMs }]) =>
      ways.map(({ name }) => ({ client, way: name, callsFromMs })),
    );
  }

  async start(
    names: readonly string[],
    ground: Ground,
    plan: Pick<ClientPlan, 'entries' | 'callMs'>,
  ): Promise<void> {
    await Promise.all(
      names.map(async (name) => {
        const child: ClientProcess = new Child(name, program, { ...ground, ...plan, name });
        child.onTold((told) => {
          if (told.say === 'failed') this.failures.push(told.failure);
          if (told.say === 'trouble') this.#complain(`${told.text} (${name})`);
        });
        const { before, ways } = await child.next('calling');
        this.#seats.set(name, { process: child, before, ways, callsFromMs: monotonicMs() });
      }),
    );
  }

  /** Connections of now, where there are more than one for each way and what it connects to. */
  async tooManySockets(
    most: Readonly<Record<Way['connectsTo'], number>>,
  ): Promise<readonly string[]> {
    const found = await Promise.all(
      [...this.#seats].map(async ([name, { process: child, before, ways }]) => {
        const { resources } = await child.ask('resources', 'resources');
        const mostSockets = ways.reduce(
          (sum, { connectsTo }) => sum + most[connectsTo],
          before.sockets,
        );
        if (resources.sockets <= mostSockets) return [];
        return [`connections: ${name} has ${resources.sockets} sockets, at most ${mostSockets}`];
      }),
    );
    return found.flat();
  }

  /** Resolves when all calls are answered. */
  async stop(): Promise<readonly Served[]> {
    const all = [...this.#seats.values()];
    const told = await Promise.all(all.map((seat) => seat.process.ask('stop', 'served')));
    return told.flatMap(({ served }) => served);
  }

  /** @returns what was left behind, in words */
  async end(): Promise<readonly string[]> {
    const found = await Promise.all(
      [...this.#seats].map(async ([name, { process: child, before }]) => {
        const { resources } = await child.ask('close', 'closed');
        const end = await child.endsByItself(endsWithinMs);
        return [
          ...leftOver(before, resources).map(
            (what) => `nothing is left open: ${name} has ${what} when everything is closed`,
          ),
          ...(end === 'exit code 0' ? [] : [`nothing keeps a process: ${name} ${end}`]),
          ...(child.errors === '' ? [] : [`nobody complains: ${name}: ${child.errors}`]),
        ];
      }),
    );
    return found.flat();
  }
}
