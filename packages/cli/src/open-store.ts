import type { Environment, OpenStore, StoreNeeds } from './context.ts';
import { systemProbe } from './environment.ts';
import { locateStore } from './store-url.ts';

/** @throws CommandError that says which store to use instead, or why it cannot be reached */
export async function openStore(
  option: string | undefined,
  needs: StoreNeeds,
  machine: {
    readonly env: Environment;
    readonly cwd: string;
    readonly platform: NodeJS.Platform;
  },
): Promise<OpenStore> {
  const location = locateStore(option, machine.cwd, systemProbe(machine.env, machine.platform));
  if (location.scheme === 'zookeeper') {
    const [{ openZooKeeper }, { parseZooKeeperUrl }] = await Promise.all([
      import('./zookeeper/open.ts'),
      import('./zookeeper/url.ts'),
    ]);
    return openZooKeeper(parseZooKeeperUrl(location.text, location.origin), needs, machine);
  }
  const { directory, url, origin } = location;
  const { file } = await import('incumbent/file');
  return { url, origin, directory, backend: file(directory) };
}
