import type { ExecFileSyncOptions } from 'node:child_process';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { etcdAvailable } from '../index.ts';

/** Elections on ZooKeeper that another library holds, of which a real one can be had here. */
export const zooKeeperLayouts = ['kazoo', 'curator-latch', 'curator-selector'] as const;
export type ZooKeeperPeer = (typeof zooKeeperLayouts)[number];

/** And one node, for which a C program races as mooon's do; and on etcd: `etcdctl elect`. */
export type Layout = ZooKeeperPeer | 'node' | 'etcdctl';
export const layouts: readonly Layout[] = [...zooKeeperLayouts, 'node', 'etcdctl'];

/** How a member is started; address, path, id, session timeout and log are added. */
export type Command = readonly [program: string, ...args: string[]];

const peers = fileURLToPath(new URL('../../interop-peers/', import.meta.url));
const built = (file: string) =>
  fileURLToPath(new URL(`../../dist/interop/${file}`, import.meta.url));
/** Debian's, not one that happens to come first in PATH. */
const python = '/usr/bin/python3';
const jars = ['/usr/share/java/curator-recipes.jar', '/usr/share/java/slf4j-nop.jar'];
const curatorPackages =
  'apt-get install -y --no-install-recommends libcurator-recipes-java libslf4j-java openjdk-17-jdk-headless';

const zooKeeperHeader = '/usr/include/zookeeper/zookeeper.h';
const cPackages = 'apt-get install -y --no-install-recommends gcc libc6-dev libzookeeper-mt-dev';

/** A candidate of ours with a process to itself: what was built, also for those who run the sources. */
export function ourCommand(layout: Layout): Command {
  return [process.execPath, built('our-member.js'), layout];
}

/** Why the other library, or the server, cannot run here; undefined when they can. */
export function peerMissing(layout: Layout): string | undefined {
  if (layout === 'etcdctl') return etcdAvailable();
  const noServer = serverAvailable();
  if (noServer !== undefined) return noServer;
  if (layout === 'node') {
    if (!existsSync(zooKeeperHeader))
      return `there is no ${zooKeeperHeader}. On Debian: ${cPackages}`;
    if (spawnSync('cc', ['--version']).status === 0) return undefined;
    return `there is no \`cc\`. On Debian: ${cPackages}`;
  }
  if (layout === 'kazoo') {
    if (spawnSync(python, ['-c', 'import kazoo']).status === 0) return undefined;
    return `${python} has no kazoo. On Debian: apt-get install -y python3-kazoo`;
  }
  const missing = jars.find((jar) => !existsSync(jar));
  if (missing !== undefined) return `there is no ${missing}. On Debian: ${curatorPackages}`;
  if (spawnSync('javac', ['-version']).status === 0) return undefined;
  return `there is no \`javac\`. On Debian: ${curatorPackages}`;
}

/** Compiles the peer of a layout, if it has to be, once for all who use it. */
export function compilePeer(layout: Layout, directory: string): void {
  const options: ExecFileSyncOptions = { cwd: peers, stdio: ['ignore', 'ignore', 'pipe'] };
  if (layout.startsWith('curator')) {
    const sources = readdirSync(peers).filter((name) => name.endsWith('.java'));
    const words = ['-nowarn', '-d', directory, '-cp', jars.join(':'), ...sources];
    execFileSync('javac', words, options);
  } else if (layout === 'node') {
    const words = ['-std=c11', '-D_GNU_SOURCE', '-DTHREADED', '-O1', '-Wall', '-Wextra', '-Werror'];
    const output = ['-o', join(directory, raceMaster)];
    execFileSync(
      'cc',
      [...words, ...output, `${raceMaster}.c`, '-lzookeeper_mt', '-lpthread'],
      options,
    );
  }
}

const raceMaster = 'race-master';

/** @param directory what {@link compilePeer} was given */
export function peerCommand(layout: Layout, directory: string): Command {
  if (layout === 'etcdctl') return [process.execPath, built('etcdctl-member.js')];
  if (layout === 'node') return [join(directory, raceMaster)];
  if (layout === 'kazoo') return [python, join(peers, 'kazoo-election.py')];
  return [
    'java',
    // Small, and quick to start.
    ...['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xmx48m'],
    ...['-cp', [directory, ...jars].join(':'), 'Peer', layout.replace('curator-', '')],
  ];
}
