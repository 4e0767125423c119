import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '@incumbent/zookeeper-testing';
import { Child } from '../harness/child.ts';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs } from '../harness/time.ts';
import type { Ground, ServiceOrder, ServicePlan, ServiceTells } from './messages.ts';
import type { Change } from './plan.ts';
import type { Resources } from './resources.ts';
import { leftOver } from './resources.ts';

type ServiceProcess = Child<ServiceTells, ServiceOrder>;

interface Seat {
  readonly process: ServiceProcess;
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly before: Resources;
  /** Listening and campaigning, with no client. */
  readonly ready: Resources;
}

/** A term that a service has said it leads. */
export interface Leading {
  readonly id: string;
  readonly token: bigint;
  readonly atMs: number;
}

/** Longer than connections stay open that nobody uses. */
const quietMs = 8_000;
const endsWithinMs = 10_000;
const program = new URL('./service.js', import.meta.url);

/** The processes of the service, each of which is there, or will be again soon. */
export class Services {
  readonly #ground: Ground;
  readonly #files: Pick<ServicePlan, 'log' | 'terms'>;
  readonly #complain: (what: string) => void;
  readonly #seats = new Map<string, Seat>();
  readonly #leadings: Leading[] = [];

  constructor(
    ground: Ground,
    files: Pick<ServicePlan, 'log' | 'terms'>,
    complain: (what: string) => void,
  ) {
    this.#ground = ground;
    this.#files = files;
    this.#complain = complain;
  }

  async start(ids: readonly string[]): Promise<void> {
    // Not such as connections are given: another one must not have them when a service starts again.
    const ports = await freePorts(2 * ids.length);
    await Promise.all(
      ids.map((id, index) => {
        const [grpcPort = 0, httpPort = 0] = ports.slice(2 * index);
        return this.#start(id, grpcPort, httpPort);
      }),
    );
  }

  get httpPorts(): readonly number[] {
    return [...this.#seats.values()].map(({ httpPort }) => httpPort);
  }

  /** The newest term that was told. */
  get leading(): Leading | undefined {
    return this.#leadings.reduce<Leading | undefined>(
      (newest, each) => (newest === undefined || each.token > newest.token ? each : newest),
      undefined,
    );
  }

  termsSince(ms: number): number {
    return this.#leadings.filter(({ atMs }) => atMs >= ms).length;
  }

  /**
   * Has happen what the plan says, but for an operator's request.
   * @returns resolves when whoever was struck is there again
   */
  strike({ fault, freezeMs, restartMs }: Change, id: string): Promise<void> {
    const seat = this.#seats.get(id);
    if (seat === undefined) throw new StuckError(`${id} leads, and is not there`);
    const { process: struck, grpcPort, httpPort } = seat;
    switch (fault) {
      case 'kill':
        struck.signal('SIGKILL');
        return struck.ended
          .then(() => sleep(restartMs))
          .then(() => this.#start(id, grpcPort, httpPort));
      case 'resign':
        struck.order('resign');
        return Promise.resolve();
      case 'freeze':
        return struck.ask('freeze', 'freezing').then(async () => {
          await sleep(freezeMs);
          struck.signal('SIGCONT');
          // It answers again.
          await struck.ask('resources', 'resources');
        });
      case 'vacate':
        return Promise.resolve();
      default:
        return fault satisfies never;
    }
  }

  /** After the clients have gone. @returns what was left behind, in words */
  async end(): Promise<readonly string[]> {
    const found = await Promise.all(
      [...this.#seats].map(async ([id, { process: child, before, ready }]) => {
        const say = (left: readonly string[], when: string): string[] =>
          left.map((what) => `nothing is left open: ${id} has ${what} ${when}`);
        const quiet = await this.#quietened(child, ready);
        const { resources } = await child.ask('close', 'closed');
        const end = await child.endsByItself(endsWithinMs);
        return [
          ...say(leftOver(socketsOf(ready), socketsOf(quiet)), 'when its clients have gone'),
          ...say(leftOver(before, resources), 'when everything is closed'),
          ...(end === 'exit code 0' ? [] : [`nothing keeps a process: ${id} ${end}`]),
          ...(child.errors === '' ? [] : [`nobody complains: ${id}: ${child.errors}`]),
        ];
      }),
    );
    return found.flat();
  }

  /** The open resources when it has no more than at its start, or after a while. */
  async #quietened(child: ServiceProcess, ready: Resources): Promise<Resources> {
    const endMs = monotonicMs() + quietMs;
    for (;;) {
      const { resources } = await child.ask('resources', 'resources');
      const isQuiet = leftOver(socketsOf(ready), socketsOf(resources)).length === 0;
      if (isQuiet || monotonicMs() > endMs) return resources;
      await sleep(100);
    }
  }

  async #start(id: string, grpcPort: number, httpPort: number): Promise<void> {
    const plan: ServicePlan = { ...this.#ground, ...this.#files, id, grpcPort, httpPort };
    const child: ServiceProcess = new Child(id, program, plan);
    child.onTold((told) => {
      if (told.say === 'trouble') this.#complain(`${told.text} (${id})`);
      if (told.say !== 'leading') return;
      this.#leadings.push({ id, token: BigInt(told.token), atMs: told.atMs });
    });
    const { before, resources } = await child.next('ready');
    this.#seats.set(id, { process: child, before, ready: resources, grpcPort, httpPort });
  }
}

/** Timers and the like come and go while it works. */
function socketsOf({ sockets, descriptors }: Resources): Resources {
  return { sockets, descriptors, active: {} };
}
