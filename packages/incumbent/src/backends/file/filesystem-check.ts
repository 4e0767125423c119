/**
 * The file store needs two promises: link(2) is exclusive, and all processes see the same bytes of
 * a file at once. File systems that several machines share keep them only in part. NFS repeats a
 * link whose answer was lost, and caches show old listings. So they are refused.
 */
import { realpath, statfs } from 'node:fs/promises';
import { promisify } from 'node:util';
import { StoreUnsuitableError } from '../../base/errors.ts';

/** The questions that the check asks the machine. */
export interface FileSystemProbe {
  readonly platform: NodeJS.Platform;
  /** Linux: the magic number of the file system that has this directory. */
  statfsType(directory: string): Promise<number>;
  /**
   * macOS, whose statfs numbers say nothing: the output of mount(8), and the path as it shows it.
   */
  mountTable(): Promise<string>;
  realPath(directory: string): Promise<string>;
}

export const systemProbe: FileSystemProbe = {
  platform: process.platform,
  async statfsType(directory) {
    return (await statfs(directory)).type;
  },
  async mountTable() {
    // Others need no process, and node:child_process takes milliseconds of every start.
    const { execFile } = await import('node:child_process');
    return (await promisify(execFile)('/sbin/mount')).stdout;
  },
  async realPath(directory) {
    return realpath(directory);
  },
};

/**
 * Linux magic numbers: statfs(2), linux/magic.h, and coreutils' stat.c for file systems
 * outside the kernel.
 */
export const sharedFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9p (as under WSL or in a virtual machine)'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x73757245, 'Coda'],
  [0x564c, 'NCP'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0x01161970, 'GFS2'],
  [0x7461636f, 'OCFS2'],
  [0x19830326, 'BeeGFS'],
  [0xaad7aaea, 'PanFS'],
  [0xbeefdead, 'StorNext'],
  [0x61636673, 'ACFS'],
  [0x013111a8, 'IBRIX'],
  [0x786f4256, 'a VirtualBox shared folder'],
  [0x7c7c6673, 'a Parallels shared folder'],
  [0xbacbacbc, 'a VMware shared folder'],
  [0x65735546, 'FUSE, which may be sshfs, virtiofs or another view of a remote disk'],
]);

/**
 * Not found out: a cluster file system that has a local one's number, and a local disk that is
 * attached to two machines.
 * @throws StoreUnsuitableError when other machines may write to the directory as well
 */
export async function refuseSharedFileSystem(
  directory: string,
  probe: FileSystemProbe,
): Promise<void> {
  let found: string | undefined;
  if (probe.platform === 'linux') {
    // Numbers with the top bit set come out negative on some architectures.
    found = sharedFileSystems.get((await probe.statfsType(directory)) >>> 0);
  } else if (probe.platform === 'darwin') {
    found = sharedMount(await probe.mountTable(), await probe.realPath(directory));
  } else {
    throw new StoreUnsuitableError(
      `the file store works on Linux and macOS, not on ${probe.platform}: use another store`,
    );
  }
  if (found === undefined) return;
  throw new StoreUnsuitableError(
    `${directory} is on ${found}: a file store there may have two leaders. Use a directory on a ` +
      'disk of this machine; for candidates on several machines use another store, such as ' +
      'PostgreSQL, Redis or ZooKeeper. If only this machine ever writes there, set trustFileSystem',
  );
}

/**
 * The type of the file system that has `directory`, if mount(8) does not call it local. Lines look
 * like `/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)`.
 */
function sharedMount(table: string, directory: string): string | undefined {
  let longest = '';
  let found: string | undefined;
  for (const line of table.split('\n')) {
    const match = /^.*? on (\/.*) \(([^()]*)\)$/.exec(line);
    const [mountPoint, flags] = [match?.[1], match?.[2]?.split(', ')];
    if (mountPoint === undefined || flags === undefined) continue;
    const within = mountPoint === '/' ? '/' : `${mountPoint}/`;
    if (!`${directory}/`.startsWith(within) || within.length < longest.length) continue;
    longest = within;
    found = flags.includes('local') ? undefined : flags[0];
  }
  return found;
}
