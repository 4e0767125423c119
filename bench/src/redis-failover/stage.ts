/** The servers and processes that the benchmarks of the failover share. */
import { fileURLToPath } from 'node:url';
import type { RedisServer } from '@incumbent/servers';
import { replicasStream, startRedis, startSentinel, waitFor } from '@incumbent/servers';
import type { TestServer } from '@incumbent/zookeeper-testing';
import type { Methods } from '../calls/calls.ts';
import { Remote } from '../calls/remote.ts';
import type { Surroundings } from '../surroundings.ts';
import type { ManagerMethods, Route, WriterMethods } from './messages.ts';
import type { Scale } from './scale.ts';

export interface Stage {
  readonly surroundings: Surroundings;
  readonly scale: Scale;
  readonly zooKeeper: TestServer;
}

export function startWorker<M extends Methods<M>>(
  { surroundings }: Stage,
  name: string,
  worker: 'manager' | 'writer',
): Remote<M> {
  const file = fileURLToPath(new URL(`./workers/${worker}.js`, import.meta.url));
  return new Remote<M>(surroundings, name, [process.execPath, file]);
}

export type Writer = Remote<WriterMethods>;
export type Manager = Remote<ManagerMethods>;

/**
 * A primary, the first of them, and two replicas. Each takes writes only with a replica.
 * @param more arguments of each server
 */
export async function startSet(more: readonly string[] = []): Promise<readonly RedisServer[]> {
  const common = { arguments: ['--min-replicas-to-write', '1', ...more] };
  const primary = await startRedis(common);
  const servers = [primary];
  try {
    for (let i = 0; i < 2; i += 1)
      servers.push(await startRedis({ ...common, replicaOf: primary }));
    await replicasStream(primary, servers.slice(1));
    return servers;
  } catch (error) {
    await Promise.all(servers.map((server) => server.close()));
    throw error;
  }
}

export async function startWriter(stage: Stage, route: Route): Promise<Writer> {
  const writer = startWorker<WriterMethods>(stage, 'writer', 'writer');
  try {
    await writer.call('open', { route });
    await writer.call('start', {});
    return writer;
  } catch (error) {
    await writer.kill();
    throw error;
  }
}

/** A set with two managers and a writer that writes all the time. */
export interface Scene {
  readonly servers: readonly RedisServer[];
  readonly managers: readonly Manager[];
  readonly writer: Writer;
  /** Resolves when the others that run are linked replicas of this one. */
  formed(primary: RedisServer): Promise<void>;
  close(): Promise<void>;
}

let scenes = 0;

export async function startScene(stage: Stage, more: readonly string[] = []): Promise<Scene> {
  scenes += 1;
  const servers = await startSet(more);
  const started: { kill(): Promise<void> }[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(started.map((each) => each.kill()));
    await Promise.all(servers.map((server) => server.close()));
  };
  const place = { zookeeper: stage.zooKeeper.connectionString, root: `/set-${scenes}` };
  const nodes = servers.map(({ port }) => `127.0.0.1:${port}`);
  try {
    const managers: Manager[] = [];
    for (const id of ['one', 'two']) {
      const manager = startWorker<ManagerMethods>(stage, `manager ${id}`, 'manager');
      started.push(manager);
      managers.push(manager);
      await manager.call('open', { id, nodes, ...place });
    }
    const writer = await startWriter(stage, { by: 'incumbent', ...place });
    started.push(writer);
    return { servers, managers, writer, formed: (primary) => formed(servers, primary), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function formed(servers: readonly RedisServer[], primary: RedisServer): Promise<void> {
  await waitFor('the replicas are linked', async () => {
    const roles = await Promise.all(
      servers.filter(({ pid }) => pid !== undefined).map((server) => server.command('ROLE')),
    );
    const replicas = roles.filter(
      (role) =>
        Array.isArray(role) &&
        role[0] === 'slave' &&
        role[2] === primary.port &&
        role[3] === 'connected',
    );
    return replicas.length === roles.length - 1;
  });
}

/** The same set with one Sentinel, which decides alone, and a writer that asks it. */
export async function startSentinelScene(
  stage: Stage,
  downAfterMs: number,
  more: readonly string[] = [],
): Promise<Pick<Scene, 'servers' | 'writer' | 'close'>> {
  const servers = await startSet(more);
  const started: { close(): Promise<void> }[] = [...servers];
  const close = async (): Promise<void> => {
    for (const each of started.reverse()) await each.close();
  };
  try {
    const guard = await startSentinel({ primary: servers[0] as RedisServer, downAfterMs });
    started.push(guard);
    await waitFor('the Sentinel knows all replicas', async () => {
      const known = await guard.command('SENTINEL', 'REPLICAS', 'incumbent');
      return Array.isArray(known) && known.length >= servers.length - 1;
    });
    const writer = await startWriter(stage, { by: 'sentinel', port: guard.port });
    started.push({ close: () => writer.kill() });
    return { servers, writer, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Stops the writer, and looks for what it has written. */
export async function lostOn(
  node: RedisServer,
  writer: Writer,
): Promise<{
  /** Acknowledged writes that the node does not have. */
  readonly lost: number;
  /** Writes that were refused, or whose outcome is unknown. */
  readonly failed: number;
}> {
  const { acknowledged, unknown, refused } = await writer.call('stop', {}, 60_000);
  const present = new Set((await node.command('LRANGE', 'written', 0, -1)) as readonly string[]);
  const lost = acknowledged.filter((value) => !present.has(String(value))).length;
  return { lost, failed: unknown + refused };
}
