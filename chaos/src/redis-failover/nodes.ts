import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { RedisServer, RespValue } from '@incumbent/servers';
import { RespConnection, startRedis } from '@incumbent/servers';

/** `min-replicas-max-lag`: replicas acknowledge once a second. */
const maxLagSeconds = 3;

/** A Redis's own account of its role. */
export interface Role {
  readonly isPrimary: boolean;
  /** Of a replica: whom it follows, and whether it is connected to it and has everything. */
  readonly follows: string | undefined;
  readonly isLinked: boolean;
  /** How much of the stream of its primary a replica has, in bytes. */
  readonly offset: number;
  /** A manager has set it aside: it follows an address where nobody is. */
  readonly isAside: boolean;
}

/** A password that managers and clients are not told. */
const secret = 'changed';

/** One Redis of the set. It keeps its settings on its disk, unless it comes back empty. */
export class RedisNode {
  readonly address: string;
  readonly port: number;
  readonly #server: RedisServer;
  #isDead = false;
  #isFrozen = false;
  #isLocked = false;

  constructor(server: RedisServer) {
    this.#server = server;
    this.port = server.port;
    this.address = `127.0.0.1:${server.port}`;
  }

  get logPath(): string {
    return this.#server.logPath;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  async kill(): Promise<void> {
    this.#isDead = true;
    await this.#server.kill();
    this.#isFrozen = false;
    this.#isLocked = false;
  }

  /** As a primary that follows nobody, since nothing else stands in its configuration. */
  async start(empty: boolean): Promise<void> {
    if (!this.#isDead) return;
    if (empty) {
      const directory = dirname(this.#server.logPath);
      for (const name of ['appendonlydir', 'dump.rdb']) {
        await rm(join(directory, name), { recursive: true, force: true });
      }
    }
    await this.#server.start();
    this.#isDead = false;
  }

  async freeze(): Promise<void> {
    if (this.#isDead) return;
    this.#isFrozen = true;
    await this.#server.freeze();
  }

  thaw(): void {
    if (this.#isFrozen) this.#server.thaw();
    this.#isFrozen = false;
  }

  /** Its primary does not let it in any more: it has a password that nobody knows. */
  async unlink(): Promise<void> {
    await this.command('CONFIG', 'SET', 'masteruser', 'nobody', 'masterauth', 'nothing');
    await this.command('CLIENT', 'KILL', 'TYPE', 'master');
  }

  async relink(): Promise<void> {
    await this.command('CONFIG', 'SET', 'masteruser', '', 'masterauth', '');
  }

  /** It has another password, and only we know it. Everybody has to log in again. */
  async lock(): Promise<void> {
    if (this.#isDead || this.#isLocked) return;
    await this.#server.command('CONFIG', 'SET', 'requirepass', secret);
    this.#isLocked = true;
    await this.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  }

  async unlock(): Promise<void> {
    if (this.#isLocked) await this.command('CONFIG', 'SET', 'requirepass', '');
    this.#isLocked = false;
  }

  /** As an operator does it. */
  async promote(): Promise<void> {
    await this.command('REPLICAOF', 'NO', 'ONE');
  }

  async command(...parts: (string | number)[]): Promise<RespValue> {
    if (!this.#isLocked) return this.#server.command(...parts);
    const connection = await RespConnection.open(this);
    try {
      await connection.send(['AUTH', secret]);
      return await connection.send(parts);
    } finally {
      connection.close();
    }
  }

  async role(): Promise<Role> {
    const [kind, host, port, state, offset] = (await this.command('ROLE')) as readonly RespValue[];
    const isPrimary = kind === 'master';
    return {
      isPrimary,
      follows: isPrimary ? undefined : `${String(host)}:${String(port)}`,
      isLinked: state === 'connected',
      offset: Number(offset),
      isAside: !isPrimary && port === 1,
    };
  }

  async follow(primary: RedisNode): Promise<void> {
    await this.#server.follow(primary);
  }

  close(): Promise<void> {
    return this.#server.close();
  }
}

/** A primary, which is the first, and two replicas. */
export async function startNodes(hasMinReplicas: boolean): Promise<readonly RedisNode[]> {
  const settings = [
    ...['--repl-ping-replica-period', '1', '--auto-aof-rewrite-percentage', '0'],
    // It says then who changes its role.
    ...['--loglevel', 'notice'],
    ...(hasMinReplicas
      ? ['--min-replicas-to-write', '1', '--min-replicas-max-lag', `${maxLagSeconds}`]
      : []),
  ];
  // Only processes are killed: what a write has handed to the system is kept.
  const start = async () =>
    new RedisNode(await startRedis({ appendFsync: 'no', arguments: settings }));
  const [primary, ...replicas] = (await Promise.all([start(), start(), start()])) as [
    RedisNode,
    ...RedisNode[],
  ];
  for (const replica of replicas) await replica.follow(primary);
  return [primary, ...replicas];
}
