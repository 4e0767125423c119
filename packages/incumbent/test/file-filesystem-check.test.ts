import { expect, test } from 'vitest';
import type { FileSystemProbe } from '../src/backends/file/filesystem-check.ts';
import {
  refuseSharedFileSystem,
  sharedFileSystems,
} from '../src/backends/file/filesystem-check.ts';
import { StoreUnsuitableError } from '../src/base/errors.ts';

const directory = '/srv/elections/billing';

function linux(type: number): FileSystemProbe {
  return {
    platform: 'linux',
    statfsType: async () => type,
    mountTable: () => Promise.reject(new Error('not asked on Linux')),
    realPath: () => Promise.reject(new Error('not asked on Linux')),
  };
}

function mac(table: string, realPath: string = directory): FileSystemProbe {
  return {
    platform: 'darwin',
    statfsType: () => Promise.reject(new Error('not asked on macOS')),
    mountTable: async () => table,
    realPath: async () => realPath,
  };
}

test('every file system that machines share is refused, with the way out', async () => {
  for (const [type, name] of sharedFileSystems) {
    const refused = refuseSharedFileSystem(directory, linux(type));
    await expect(refused, name).rejects.toThrow(StoreUnsuitableError);
    await expect(refused, name).rejects.toThrow(`${directory} is on ${name}`);
    await expect(refused, name).rejects.toThrow(/disk of this machine.*trustFileSystem/);
  }
});

test('a number with its top bit set may come as a negative one', async () => {
  await expect(refuseSharedFileSystem(directory, linux(0xff534d42 | 0))).rejects.toThrow('CIFS');
});

test('FUSE is refused because the file system behind it cannot be known', async () => {
  await expect(refuseSharedFileSystem(directory, linux(0x65735546))).rejects.toThrow('sshfs');
});

test('file systems of one machine are taken: ext4, xfs, btrfs, tmpfs, overlay, zfs, f2fs', async () => {
  for (const type of [
    0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010,
  ]) {
    await refuseSharedFileSystem(directory, linux(type));
  }
});

const macMounts = `/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
//kim@nas._smb._tcp.local/share on /Volumes/share (smbfs, nodev, nosuid, mounted by kim)
nas:/export on /Volumes/share on nas (nfs, nodev, nosuid, mounted by kim)
/dev/disk5s1 on /Volumes/share/inner disk (hfs, local, journaled)
`;

test('macOS: a file system that mount(8) does not call local is refused', async () => {
  for (const [path, found] of [
    ['/Volumes/share/x', 'smbfs'],
    ['/Volumes/share', 'smbfs'],
    ['/Volumes/share on nas/x', 'nfs'],
    ['/System/Volumes/Data/home/kim', 'autofs'],
  ] as const) {
    await expect(refuseSharedFileSystem(path, mac(macMounts, path)), path).rejects.toThrow(
      `${path} is on ${found}`,
    );
  }
});

test('macOS: the innermost mount counts, and a name is compared as a whole', async () => {
  for (const path of [
    '/Users/kim/x',
    '/System/Volumes/Data/x',
    '/Volumes/share/inner disk/x',
    '/Volumes/shared/x',
  ]) {
    await refuseSharedFileSystem(path, mac(macMounts, path));
  }
});

test('macOS: it is where the directory really is that counts', async () => {
  await expect(
    refuseSharedFileSystem('/Users/kim/link', mac(macMounts, '/Volumes/share/x')),
  ).rejects.toThrow('/Users/kim/link is on smbfs');
});

test('other platforms are refused by name', async () => {
  await expect(refuseSharedFileSystem('C:\\x', { ...linux(0), platform: 'win32' })).rejects.toThrow(
    'Linux and macOS, not on win32',
  );
});
