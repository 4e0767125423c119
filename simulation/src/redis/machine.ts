import type { Dataset } from './dataset.ts';
import type { Disk } from './disk.ts';
import type { Message } from './messages.ts';
import type { Scheduler } from './scheduler.ts';
import type { GivenSettings } from './settings.ts';
import type { Reader, Socket } from './socket.ts';

/** How long a node takes for what takes long. */
export interface Speeds {
  /** Reading so many keys into memory. */
  loadMs(keys: number): number;
  /** Writing so many keys to a file, or as they are sent. */
  saveMs(keys: number): number;
  /** A whole copy of so many keys on its way, where it is not sent as it is written. */
  copyMs(keys: number): number;
}

/** Told of what a simulation judges by. */
export interface Watcher {
  /** A client's write was executed. */
  wrote(key: string): void;
  /** REPLICAOF of somebody else than until now. @param by from where that was ordered */
  follows(primary: string, by: string): void;
  /** REPLICAOF NO ONE, of a replica. */
  leads?(by: string): void;
  /** The data of the server go now, for a copy of that primary. */
  empties(data: Dataset, primary: string): void;
}

/** The surroundings of a server process. */
export interface Machine {
  readonly name: string;
  /** As its primary sees it. */
  readonly host: string;
  readonly port: number;
  readonly scheduler: Scheduler;
  readonly speeds: Speeds;
  readonly disk: Disk;
  /** The configuration file. */
  configuration: GivenSettings;
  /** @param refused called when nobody listens there; nothing is called while the way is held */
  connect(
    address: string,
    reader: Reader,
    connected: (socket: Socket<Message>) => void,
    refused: () => void,
  ): Connecting;
  /** It has power, and a network. */
  readonly isThere: boolean;
  readonly watcher: Watcher | undefined;
  /** The process has ended by itself. */
  exited(): void;
}

export interface Connecting {
  /** Nothing is called any more. */
  giveUp(): void;
}
