import type { RedisServer, RespValue } from '@incumbent/servers';
import { replicasStream, startRedis } from '@incumbent/servers';
import { createClient } from 'redis';
import type { NodeAddress } from '../../src/node-address.ts';

export interface RedisSetOptions {
  /** The number of replicas besides the primary. Default 2. */
  readonly replicas?: number;
  /** Default 0. With 1 a primary that has lost its replicas takes no writes. */
  readonly minReplicasToWrite?: number;
  /** The password of all nodes, set when they run. */
  readonly password?: string;
}

export type Role = 'primary' | 'replica' | 'gone';

/** A primary and its replicas, on loopback. */
export class RedisSet implements AsyncDisposable {
  /** The first server is the primary at the start. */
  readonly servers: readonly RedisServer[];
  readonly #password: string | undefined;

  static async start(options: RedisSetOptions = {}): Promise<RedisSet> {
    const { replicas = 2, minReplicasToWrite = 0, password } = options;
    const common = ['--min-replicas-to-write', `${minReplicasToWrite}`];
    const primary = await startRedis({ arguments: common });
    const started = [primary];
    try {
      for (let i = 0; i < replicas; i += 1) {
        started.push(await startRedis({ arguments: common, replicaOf: primary }));
      }
      await replicasStream(primary, started.slice(1));
      if (password !== undefined) {
        for (const server of started) await server.command('CONFIG', 'SET', 'masterauth', password);
        for (const server of started) {
          await server.command('CONFIG', 'SET', 'requirepass', password);
        }
      }
    } catch (error) {
      await Promise.all(started.map((server) => server.close()));
      throw error;
    }
    return new RedisSet(started, password);
  }

  private constructor(servers: readonly RedisServer[], password: string | undefined) {
    this.servers = servers;
    this.#password = password;
  }

  get addresses(): readonly NodeAddress[] {
    return this.servers.map(addressOf);
  }

  /** @throws for an address that is not in the set */
  at(address: NodeAddress): RedisServer {
    const found = this.servers.find((server) => addressOf(server) === address);
    if (found === undefined) throw new Error(`${address} is none of ${this.addresses.join(', ')}`);
    return found;
  }

  /** All servers but one. */
  except(address: NodeAddress): readonly RedisServer[] {
    return this.servers.filter((server) => addressOf(server) !== address);
  }

  /** Sends one command over a connection of its own. */
  async command(address: NodeAddress, ...parts: (string | number)[]): Promise<RespValue> {
    const { port } = this.at(address);
    if (this.#password === undefined) return this.at(address).command(...parts);
    const client = createClient({
      socket: { host: '127.0.0.1', port, connectTimeout: 5_000, reconnectStrategy: false },
      password: this.#password,
      RESP: 2,
    });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.sendCommand(parts.map(String))) as unknown as RespValue;
    } finally {
      client.destroy();
    }
  }

  /** The roles as the nodes themselves report them. */
  async roles(): Promise<Readonly<Record<NodeAddress, Role>>> {
    const all = await Promise.all(
      this.addresses.map(async (address): Promise<[NodeAddress, Role]> => {
        const role = await this.command(address, 'ROLE').catch(() => undefined);
        if (!Array.isArray(role)) return [address, 'gone'];
        return [address, role[0] === 'master' ? 'primary' : 'replica'];
      }),
    );
    return Object.fromEntries(all);
  }

  /** `formed` if this node is the primary, and all others that run are its connected replicas. */
  async formation(primary: NodeAddress): Promise<'formed' | readonly RespValue[]> {
    const { port } = this.at(primary);
    const roles = await Promise.all(
      this.addresses.map(async (address) =>
        this.command(address, 'ROLE').catch((error: Error) => error.message),
      ),
    );
    const formed = roles.every((role, index) => {
      if (!Array.isArray(role)) return this.servers[index]?.pid === undefined;
      if (this.addresses[index] === primary) return role[0] === 'master';
      return role[0] === 'slave' && role[2] === port && role[3] === 'connected';
    });
    return formed ? 'formed' : roles;
  }

  /** Kills all servers, even frozen ones, and removes their files. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server.close()));
  }
}

export function addressOf({ port }: { readonly port: number }): NodeAddress {
  return `127.0.0.1:${port}`;
}
