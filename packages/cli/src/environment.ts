/**
 * Whether this process shares its home directory with the other candidates of its machine. A
 * container or a pod does not: each would elect a leader of its own, without any sign of it.
 */
import { readFileSync, statSync } from 'node:fs';
import type { Environment } from './context.ts';

/** The facts about the machine that the detection uses. */
export interface MachineProbe {
  readonly platform: NodeJS.Platform;
  readonly env: Environment;
  exists(path: string): boolean;
  /** Undefined when it cannot be read. */
  read(path: string): string | undefined;
}

export function systemProbe(env: Environment, platform: NodeJS.Platform): MachineProbe {
  return {
    platform,
    env,
    exists: (path) => {
      try {
        statSync(path);
        return true;
      } catch {
        return false;
      }
    },
    read: (path) => {
      try {
        return readFileSync(path, 'utf8');
      } catch {
        return undefined;
      }
    },
  };
}

export interface Isolation {
  /** `a Kubernetes pod`, `a container` */
  readonly what: string;
  /** The evidence for it. */
  readonly because: string;
}

/** Paths of control groups that container engines make; not those of the engines' own services. */
const containerCgroup =
  /\/docker\/[0-9a-f]{12}|\/docker-[0-9a-f]{12}|\/kubepods|\/cri-containerd-|\/crio-|\/libpod-|\/lxc(?:\.payload)?[./]|\/buildkit\/|\/ecs\/|\/garden\//;
/** Files that container engines mount from where they keep their containers. */
const containerMount =
  /(?:^|\n)(?:\S+ ){3}\S*(?:\/containers\/|\/kubelet\/|\/containerd\/|\/overlay-containers\/|\/sandboxes\/)\S* \/etc\/(?:hostname|hosts|resolv\.conf) /;

/**
 * The sandbox that separates this process from the others of its machine; undefined: none that we
 * know.
 */
export function detectIsolation(probe: MachineProbe): Isolation | undefined {
  const { env, exists, read } = probe;
  if (env['KUBERNETES_SERVICE_HOST']) {
    return { what: 'a Kubernetes pod', because: 'KUBERNETES_SERVICE_HOST is set' };
  }
  const container = (because: string): Isolation => ({ what: 'a container', because });
  // Set by systemd-nspawn, Podman, LXC, Flatpak and others.
  if (env['container']) return container(`the variable container is "${env['container']}"`);
  if (probe.platform !== 'linux') return undefined;
  for (const marker of ['/.dockerenv', '/run/.containerenv', '/run/systemd/container']) {
    if (exists(marker)) return container(`${marker} exists`);
  }
  for (const path of ['/proc/self/cgroup', '/proc/1/cgroup']) {
    const match = containerCgroup.exec(read(path) ?? '');
    if (match) return container(`${path} names ${match[0].replace(/^\//, '').replace(/\/$/, '')}`);
  }
  if (containerMount.test(read('/proc/self/mountinfo') ?? '')) {
    return container('/proc/self/mountinfo shows the mounts of a container engine');
  }
  return undefined;
}
