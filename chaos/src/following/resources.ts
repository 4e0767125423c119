import { readdirSync, readlinkSync, watch } from 'node:fs';
import process from 'node:process';
import { until } from '../harness/time.ts';

/** The open resources of a process. */
export interface Resources {
  /** Connections, and sockets that listen. Elsewhere than on Linux: as Node counts them. */
  readonly sockets: number;
  /** All file descriptors; 0 where there is no /proc. */
  readonly descriptors: number;
  /** The resources that keep the event loop alive, by type: `process.getActiveResourcesInfo()`. */
  readonly active: Readonly<Record<string, number>>;
}

export function resources(): Resources {
  const active: Record<string, number> = {};
  for (const type of process.getActiveResourcesInfo()) active[type] = (active[type] ?? 0) + 1;
  const descriptors = readDescriptors();
  const counted = (active['TCPSocketWrap'] ?? 0) + (active['TCPServerWrap'] ?? 0);
  return {
    sockets: descriptors?.filter((target) => target.startsWith('socket:')).length ?? counted,
    descriptors: descriptors?.length ?? 0,
    active,
  };
}

/**
 * The resources at the start. The first watch opens a resource that all others share, and nobody
 * closes it.
 */
export function resourcesAtStart(): Resources {
  watch('.').close();
  return resources();
}

/** The target of each of our descriptors. */
function readDescriptors(): readonly string[] | undefined {
  if (process.platform !== 'linux') return undefined;
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return []; // of the directory that was just read
    }
  });
}

/** The resources that are there now and were not before, in words. */
export function leftOver(before: Resources, now: Resources): readonly string[] {
  const left: string[] = [];
  const compare = (what: string, was: number, is: number): void => {
    if (is > was) left.push(`${is} ${what} instead of ${was}`);
  };
  compare('sockets', before.sockets, now.sockets);
  compare('file descriptors', before.descriptors, now.descriptors);
  for (const [type, count] of Object.entries(now.active)) {
    compare(type, before.active[type] ?? 0, count);
  }
  return left;
}

/** The open resources, as soon as there are no more than before, or else after `withinMs`. */
export async function settledResources(before: Resources, withinMs = 5_000): Promise<Resources> {
  await until(withinMs, () => leftOver(before, resources()).length === 0);
  return resources();
}
