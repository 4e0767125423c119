/** The processes of ours that the benchmarks of following share. */
import { fileURLToPath } from 'node:url';
import type { Methods } from '../calls/calls.ts';
import { Remote } from '../calls/remote.ts';
import type { Surroundings } from '../surroundings.ts';
import type { FollowerMethods, Ports, ServiceMethods } from './messages.ts';
import type { Scale } from './scale.ts';

export interface Stage {
  readonly surroundings: Surroundings;
  readonly scale: Scale;
}

export type WorkerName = 'service' | 'follower' | 'object-server' | 'object-user';

export function startWorker<M extends Methods<M>>(
  { surroundings }: Stage,
  name: string,
  worker: WorkerName,
): Remote<M> {
  const file = fileURLToPath(new URL(`./workers/${worker}.js`, import.meta.url));
  return new Remote<M>(surroundings, name, [process.execPath, file]);
}

export type Follower = Remote<FollowerMethods>;

export interface Service {
  readonly process: Remote<ServiceMethods>;
  readonly ports: Ports;
}

/** Two services of one election on the file store, in none of which anybody campaigns, and a follower. */
export interface Scene {
  readonly election: string;
  readonly services: readonly [Service, Service];
  readonly follower: Follower;
  close(): Promise<void>;
}

export async function startScene(stage: Stage, election: string): Promise<Scene> {
  const started: { kill(): Promise<void> }[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(started.map((each) => each.kill()));
  };
  const directory = stage.surroundings.newDirectory();
  const params = { directory, election, leaseMs: stage.scale.leaseMs };
  const service = async (id: string): Promise<Service> => {
    const process = startWorker<ServiceMethods>(stage, `service ${id}`, 'service');
    started.push(process);
    return { process, ports: await process.call('open', { id, ...params }) };
  };
  try {
    const services = await Promise.all([service('a'), service('b')] as const);
    const follower = startWorker<FollowerMethods>(stage, 'follower', 'follower');
    started.push(follower);
    await follower.call('open', params);
    return { election, services, follower, close };
  } catch (error) {
    await close();
    throw error;
  }
}
