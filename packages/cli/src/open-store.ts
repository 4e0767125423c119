import type { Environment, OpenStore, StoreNeeds } from './context.ts';
import { systemProbe } from './environment.ts';
import type { ServerUrl } from './store-url.ts';
import { locateStore } from './store-url.ts';

interface Machine {
  readonly env: Environment;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
}

/** @throws CommandError that says which store to use instead, or why it cannot be reached */
export async function openStore(
  option: string | undefined,
  needs: StoreNeeds,
  machine: Machine,
): Promise<OpenStore> {
  const location = locateStore(option, machine.cwd, systemProbe(machine.env, machine.platform));
  if (location.scheme !== 'file') return openServers(location, needs, machine);
  const { directory, url, origin } = location;
  const { file } = await import('incumbent/file');
  const backend = file(directory);
  return {
    url,
    origin,
    directory,
    backend,
    async prepare(signal) {
      const { prepareDirectory } = await import('./file/directory.ts');
      return prepareDirectory(directory, backend, signal);
    },
  };
}

/** Each loads its client, and none that of another. */
async function openServers(
  { scheme, text, origin }: ServerUrl,
  needs: StoreNeeds,
  machine: Machine,
): Promise<OpenStore> {
  switch (scheme) {
    case 'zookeeper': {
      const { parseZooKeeperUrl } = await import('./zookeeper/url.ts');
      const location = parseZooKeeperUrl(text, origin);
      const { openZooKeeper } = await import('./zookeeper/open.ts');
      return openZooKeeper(location, needs, machine);
    }
    case 'redis': {
      const { parseRedisUrl } = await import('./redis/url.ts');
      const location = parseRedisUrl(text, origin, machine.env);
      const { openRedis } = await import('./redis/open.ts');
      return openRedis(location, needs, machine);
    }
    case 'kubernetes': {
      const { parseKubernetesUrl } = await import('./kubernetes/url.ts');
      const location = parseKubernetesUrl(text, origin);
      const { openKubernetes } = await import('./kubernetes/open.ts');
      return openKubernetes(location, needs, machine);
    }
    case 'postgres': {
      const { parsePostgresUrl } = await import('./postgres/url.ts');
      const location = parsePostgresUrl(text, origin, machine.env);
      const { openPostgres } = await import('./postgres/open.ts');
      return openPostgres(location, needs, machine);
    }
    case 'etcd': {
      const { parseEtcdUrl } = await import('./etcd/url.ts');
      const location = parseEtcdUrl(text, origin, machine.env);
      const { openEtcd } = await import('./etcd/open.ts');
      return openEtcd(location, needs, machine);
    }
    case 's3': {
      const { parseS3Url } = await import('./s3/url.ts');
      const location = parseS3Url(text, origin);
      const { openS3 } = await import('./s3/open.ts');
      return openS3(location, needs, machine);
    }
    case 'gcs': {
      const { parseGcsUrl } = await import('./gcs/url.ts');
      const location = parseGcsUrl(text, origin);
      const { openGcs } = await import('./gcs/open.ts');
      return openGcs(location, needs, machine);
    }
    default:
      return scheme satisfies never;
  }
}
