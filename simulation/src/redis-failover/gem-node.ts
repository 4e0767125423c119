import type { Host } from '../harness/host.ts';
import type { World } from '../harness/world.ts';
import type { Reply } from '../redis/reply.ts';
import { ErrorReply } from '../redis/reply.ts';
import type { RedisWorld } from './nodes.ts';
import { NodeSocket } from './nodes.ts';
import type { Process } from './process.ts';

/** The gem's `NodeUnavailableError`: whatever went wrong between it and a node. */
export class NodeUnavailable extends Error {
  override readonly name: string = 'NodeUnavailable';
}

export interface GemNodeWorld {
  readonly redis: RedisWorld;
  readonly world: World;
  readonly host: Host;
  readonly process: Process;
  /** `MAX_OP_WAIT_TIME` */
  readonly mostMs: number;
}

/** The gem's commands to a Redis: a connection for each operation, with one limit for all of it. */
export class GemNode {
  readonly address: string;
  readonly #place: GemNodeWorld;

  constructor(address: string, place: GemNodeWorld) {
    this.address = address;
    this.#place = place;
  }

  /** `healthcheck`: ECHO, which a replica without its data refuses. */
  async check(): Promise<void> {
    await this.#operate(['ECHO', '_redis_failover_check']);
  }

  async isMaster(): Promise<boolean> {
    return (await this.#info()).get('role') === 'master';
  }

  async isSyncing(): Promise<boolean> {
    return (await this.#info()).get('master_sync_in_progress') === '1';
  }

  async isSlaveOf(master: string): Promise<boolean> {
    const info = await this.#info();
    if (info.get('role') !== 'slave') return false;
    return `${info.get('master_host')}:${info.get('master_port')}` === master;
  }

  async prohibitsStaleReads(): Promise<boolean> {
    const reply = await this.#operate(['CONFIG', 'GET', 'replica-serve-stale-data']);
    return Array.isArray(reply) && reply.at(-1) === 'no';
  }

  async makeSlave(master: string): Promise<void> {
    if (await this.isSlaveOf(master)) return;
    const [host, port] = master.split(':') as [string, string];
    await this.#operate(['SLAVEOF', host, port]);
  }

  async makeMaster(): Promise<void> {
    if (await this.isMaster()) return;
    await this.#operate(['SLAVEOF', 'no', 'one']);
  }

  /** How far behind it is, in seconds; less than 0: not to be promoted. */
  async electability(): Promise<number> {
    const info = await this.#info();
    if (info.get('master_sync_in_progress') === '1') return -1;
    if (info.get('role') === 'master') return -2;
    const silent = Number(info.get('master_last_io_seconds_ago') ?? Number.NaN);
    const down = Number(info.get('master_link_down_since_seconds') ?? Number.NaN);
    if (!Number.isNaN(down) && (Number.isNaN(silent) || silent < down)) return down;
    return Number.isNaN(silent) ? -1 : silent;
  }

  async #info(): Promise<ReadonlyMap<string, string>> {
    const text = String(await this.#operate(['INFO']));
    return new Map(
      text.split('\r\n').flatMap((line) => {
        const colon = line.indexOf(':');
        return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)] as const];
      }),
    );
  }

  #operate(parts: readonly string[]): Promise<Reply> {
    const { redis, world, host, process, mostMs } = this.#place;
    const socket = new NodeSocket(redis, world, host, process);
    return new Promise<Reply>((resolve, reject) => {
      const fail = (why: string) => reject(new NodeUnavailable(`${this.address}: ${why}`));
      const timer = host.setTimer(process, () => fail(`${parts[0]} took too long`), mostMs);
      socket
        .connect(this.address)
        .then(() => socket.send(parts))
        .then(
          (reply) => {
            timer.cancel();
            if (reply instanceof ErrorReply) fail(reply.message);
            else resolve(reply);
          },
          (error: Error) => {
            timer.cancel();
            fail(error.message);
          },
        );
    }).finally(() => socket.close());
  }
}
