import type { Disk } from './disk.ts';
import type { Connecting, Machine, Speeds, Watcher } from './machine.ts';
import type { Message } from './messages.ts';
import type { Scheduler } from './scheduler.ts';
import { Server } from './server.ts';
import type { GivenSettings } from './settings.ts';
import type { Reader } from './socket.ts';
import { Socket } from './socket.ts';

export interface NodeOptions {
  readonly name: string;
  /** All of `host:port` that lead to it. The first one is what it tells its primary. */
  readonly addresses: readonly [string, ...string[]];
  /** Its configuration file. */
  readonly settings?: GivenSettings;
  readonly speeds?: Partial<Speeds>;
  readonly watcher?: Watcher;
}

type Dial = (
  address: string,
  reader: Reader,
  connected: (socket: Socket<Message>) => void,
  refused: () => void,
) => Connecting;

const usualSpeeds: Speeds = {
  loadMs: (keys) => keys * 0.01,
  saveMs: (keys) => 1 + keys * 0.01,
  copyMs: (keys) => 0.2 + keys * 0.01,
};

/** A machine with a data directory, on which one Redis server runs, or none. */
export class RedisNode {
  readonly name: string;
  readonly addresses: readonly [string, ...string[]];
  readonly disk: Disk = { rdb: undefined, aof: undefined };
  readonly #machine: Machine;
  #server: Server | undefined;
  /** The machine has lost its power, or its network for good. */
  #isGone = false;

  constructor(options: NodeOptions, scheduler: Scheduler, dial: Dial) {
    this.name = options.name;
    this.addresses = options.addresses;
    const [address] = options.addresses;
    const isThere = () => this.isThere;
    const colon = address.lastIndexOf(':');
    this.#machine = {
      name: options.name,
      host: address.slice(0, colon),
      port: Number(address.slice(colon + 1)),
      scheduler,
      speeds: { ...usualSpeeds, ...options.speeds },
      disk: this.disk,
      configuration: options.settings ?? {},
      connect: dial,
      watcher: options.watcher,
      exited: () => {
        this.#server = undefined;
      },
      get isThere() {
        return isThere();
      },
    };
  }

  /** The process; undefined while none runs. */
  get server(): Server | undefined {
    return this.#server;
  }

  get isRunning(): boolean {
    return this.#server !== undefined;
  }

  get isPaused(): boolean {
    return this.#server?.loop.isStopped === true;
  }

  get host(): string {
    return this.#machine.host;
  }

  get isThere(): boolean {
    return !this.#isGone;
  }

  /** The configuration file, as a start reads it. */
  get configuration(): GivenSettings {
    return this.#machine.configuration;
  }

  set configuration(settings: GivenSettings) {
    this.#machine.configuration = settings;
  }

  start(): void {
    if (this.#server !== undefined) throw new Error(`${this.name} runs already`);
    this.#isGone = false;
    this.#server = new Server(this.#machine);
  }

  /** SIGKILL. The files keep what was written. */
  kill(): void {
    this.#server?.kill();
    this.#server = undefined;
  }

  /** The machine loses its power: nobody is told, and what was not synced to disk is lost. */
  cutPower(): void {
    this.#server?.vanish();
    this.#server = undefined;
    this.#isGone = true;
  }

  /** SIGTERM: it may wait for its replicas before it ends. */
  stop(): void {
    this.#server?.shutdown.begin({});
  }

  /** SIGSTOP. */
  pause(): void {
    this.#server?.loop.stop();
  }

  /** SIGCONT. */
  resume(): void {
    this.#server?.loop.go();
  }

  /** The data directory, and not the configuration file. Only while no process runs. */
  loseData(): void {
    if (this.#server !== undefined) throw new Error(`${this.name} runs`);
    this.disk.rdb = undefined;
    this.disk.aof = undefined;
  }

  /** @internal the kernel takes a connection, whether or not the process runs on */
  accept(peer: string): Socket<Message> {
    const server = this.#server as Server;
    const socket = new Socket<Message>(server.loop);
    server.accept(socket, peer);
    return socket;
  }
}
