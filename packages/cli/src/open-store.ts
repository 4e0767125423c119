import type { Environment, OpenStore } from './context.ts';
import { systemProbe } from './environment.ts';
import { locateStore } from './store-url.ts';

/** @throws CommandError that says which store to use instead */
export async function openStore(
  option: string | undefined,
  machine: {
    readonly env: Environment;
    readonly cwd: string;
    readonly platform: NodeJS.Platform;
  },
): Promise<OpenStore> {
  const { directory, url, origin } = locateStore(
    option,
    machine.cwd,
    systemProbe(machine.env, machine.platform),
  );
  const { file } = await import('incumbent/file');
  return { url, origin, directory, backend: file(directory) };
}
