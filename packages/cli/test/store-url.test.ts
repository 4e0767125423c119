import { expect, test } from 'vitest';
import type { MachineProbe } from '../src/environment.ts';
import { detectIsolation } from '../src/environment.ts';
import { CommandError } from '../src/failure.ts';
import type { FileLocation, StoreLocation } from '../src/store-url.ts';
import { locateStore } from '../src/store-url.ts';

interface Machine {
  readonly platform?: NodeJS.Platform;
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
}

function probe({ platform = 'linux', env = {}, files = {} }: Machine): MachineProbe {
  return {
    platform,
    env,
    exists: (path) => path in files,
    read: (path) => files[path],
  };
}

/** The store without `--store` on that machine. */
const defaultStore = (machine: Machine) => onFiles(locateStore(undefined, '/cwd', probe(machine)));
/** The store for `--store url`. */
const store = (url: string, machine: Machine = {}) =>
  onFiles(locateStore(url, '/cwd', probe(machine)));

function onFiles(location: StoreLocation): FileLocation {
  if (location.scheme !== 'file') throw new Error(`it is a store of ${location.scheme}`);
  return location;
}

function refusal(locate: () => unknown): CommandError {
  try {
    locate();
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

test('the default is the state directory of the user, where each system has it', () => {
  const directory = (machine: Machine) => defaultStore(machine).directory;
  expect(directory({ env: { HOME: '/home/ann' } })).toBe('/home/ann/.local/state/incumbent');
  expect(directory({ env: { HOME: '/home/ann', XDG_STATE_HOME: '/state' } })).toBe(
    '/state/incumbent',
  );
  expect(directory({ platform: 'darwin', env: { HOME: '/Users/ann' } })).toBe(
    '/Users/ann/Library/Application Support/incumbent',
  );
  expect(directory({ platform: 'win32', env: { LOCALAPPDATA: 'C:\\Users\\ann\\Local' } })).toBe(
    'C:\\Users\\ann\\Local\\incumbent',
  );
  expect(directory({ platform: 'win32', env: { USERPROFILE: 'C:\\Users\\ann' } })).toBe(
    'C:\\Users\\ann\\AppData\\Local\\incumbent',
  );
});

test('a relative XDG_STATE_HOME is ignored, as its specification wants', () => {
  const env = { HOME: '/home/ann', XDG_STATE_HOME: 'state' };
  expect(defaultStore({ env }).directory).toBe('/home/ann/.local/state/incumbent');
});

test('says where the store came from', () => {
  const env = { HOME: '/home/ann', INCUMBENT_STORE: 'file:/shared' };
  expect(store('file:/x', { env })).toMatchObject({ origin: '--store', directory: '/x' });
  expect(defaultStore({ env })).toMatchObject({ origin: 'INCUMBENT_STORE', directory: '/shared' });
  expect(defaultStore({ env: { ...env, INCUMBENT_STORE: '' } }).origin).toBe('default');
});

test.each([
  ['no HOME', {}, 'HOME is not set'],
  ['a HOME that is no path', { HOME: 'ann' }, 'HOME is "ann", not an absolute path'],
  ['an empty HOME', { HOME: '' }, 'HOME is not set'],
])('refuses the default store with %s', (_what, env, words) => {
  const error = refusal(() => defaultStore({ env }));
  expect(error).toMatchObject({ code: 'NO_DEFAULT_STORE', exitCode: 64 });
  expect(error.message).toContain(words);
  expect(error.message).toContain('--store file:/shared/path');
});

test('refuses the default store on Windows without a profile', () => {
  expect(refusal(() => defaultStore({ platform: 'win32' })).message).toContain('LOCALAPPDATA');
});

const dockerMounts = `1085 1084 0:47 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/var/lib/docker
1093 1085 254:1 /var/lib/docker/containers/4f5e/hostname /etc/hostname rw - ext4 /dev/vda1 rw`;
const podMounts = `900 899 8:1 /var/lib/kubelet/pods/1b2c/etc-hosts /etc/hosts rw,relatime - ext4 /dev/sda1 rw`;
const hostMounts = `26 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
400 26 0:50 / /var/lib/docker/overlay2/ab/merged rw - overlay overlay rw
401 26 0:60 / /var/lib/containers/storage/overlay rw - ext4 /dev/sda2 rw`;
const hex = '4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899a';

test.each<[string, Machine, string]>([
  ['Kubernetes', { env: { KUBERNETES_SERVICE_HOST: '10.0.0.1' } }, 'a Kubernetes pod'],
  ['Docker', { files: { '/.dockerenv': '' } }, '/.dockerenv exists'],
  ['Podman', { files: { '/run/.containerenv': '' } }, '/run/.containerenv exists'],
  ['systemd in a container', { files: { '/run/systemd/container': 'lxc' } }, 'exists'],
  ['env container=lxc', { env: { container: 'lxc' } }, 'container is "lxc"'],
  [
    'a control group of Docker',
    { files: { '/proc/self/cgroup': `12:cpu:/docker/${hex}\n` } },
    '/proc/self/cgroup names docker/4f5e6d7c8b9a',
  ],
  [
    'a control group of Docker under systemd',
    { files: { '/proc/self/cgroup': `0::/system.slice/docker-${hex}.scope\n` } },
    '/proc/self/cgroup names docker-',
  ],
  [
    'a control group of Kubernetes',
    { files: { '/proc/1/cgroup': '0::/kubepods.slice/kubepods-burstable.slice\n' } },
    'kubepods',
  ],
  ['a control group of LXC', { files: { '/proc/1/cgroup': '4:cpu:/lxc.payload.web/x\n' } }, 'lxc'],
  ['mounts of Docker', { files: { '/proc/self/mountinfo': dockerMounts } }, 'mounts'],
  ['mounts of a pod', { files: { '/proc/self/mountinfo': podMounts } }, 'mounts'],
])('refuses the default store in %s, and names what it saw', (_what, machine, words) => {
  const error = refusal(() => defaultStore({ ...machine, env: { HOME: '/root', ...machine.env } }));
  expect(error).toMatchObject({ code: 'NO_DEFAULT_STORE', exitCode: 64 });
  expect(error.message).toContain(words);
  expect(error.message).toContain('elect one leader in each of them; name a store');
  expect(error.message).toContain('--store file:/shared/path');
});

test.each<[string, Machine]>([
  [
    'a desktop',
    { files: { '/proc/self/cgroup': '0::/user.slice/user-1000.slice/session-2.scope' } },
  ],
  ['the host of Docker', { files: { '/proc/self/mountinfo': hostMounts } }],
  [
    'the service of Docker itself',
    { files: { '/proc/self/cgroup': '0::/system.slice/docker.service' } },
  ],
  [
    'a service with docker in its name',
    { files: { '/proc/self/cgroup': '0::/system.slice/docker-gc.service' } },
  ],
  ['an empty variable container', { env: { container: '' } }],
])('takes %s for a machine of its own', (_what, machine) => {
  expect(detectIsolation(probe(machine))).toBeUndefined();
});

test('an explicit store is taken in a container too', () => {
  const machine = { env: { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, files: { '/.dockerenv': '' } };
  expect(store('file:/shared', machine).directory).toBe('/shared');
});

test.each([
  ['file:/abs/dir', '/abs/dir'],
  ['file:///abs/dir', '/abs/dir'],
  ['file://localhost/abs/dir', '/abs/dir'],
  ['FILE:/abs/dir', '/abs/dir'],
  ['file:./rel', '/cwd/rel'],
  ['file:../rel', '/rel'],
  ['file:.', '/cwd'],
  ['file:/a/../b//c', '/b/c'],
  ['file:/with%20space', '/with space'],
  ['file:/with space', '/with space'],
  ['file:/100%25', '/100%'],
])('%s is the directory %s', (url, directory) => {
  expect(store(url).directory).toBe(directory);
  // The URL that is shown to people means the same store again.
  expect(store(store(url).url).directory).toBe(directory);
});

test.each([
  ['file:///C:/dir', 'C:\\dir'],
  ['file:C:\\dir', 'C:\\dir'],
  ['file:C:/dir', 'C:\\dir'],
])('on Windows %s is the directory %s', (url, directory) => {
  const windows = { platform: 'win32' } as const;
  expect(store(url, windows).directory).toBe(directory);
  expect(store(store(url, windows).url, windows).directory).toBe(directory);
});

test.each([
  ['/var/lib/x', 'is a path; a store is a URL: write file:/var/lib/x'],
  ['./x', 'write file:./x'],
  ['x/y', 'write file:./x/y'],
  ['C:\\x', 'write file:C:\\x'],
  ['x', 'write file:/some/directory, or file:./x'],
  ['', 'is empty'],
  ['file:', 'names no directory'],
  ['file://', 'file:// names no directory'],
  ['file://localhost', 'names the host'],
  ['file:/proc/incumbent', "is in the kernel's own file system"],
  ['file:/tmp/../sys/x', 'write file:/some/directory on a disk'],
  ['file:rel', 'write file:./rel'],
  ['file:~/x', 'nobody expands "~" there; write file:$HOME/x'],
  [
    'file://host/dir',
    'names the host "host": a file store is on this machine; write file:/host/dir',
  ],
  ['file:/x?sync=no', 'takes no parameters'],
  ['file:/x#y', 'takes no parameters'],
  ['file:/x%2', 'write %25 for "%"'],
  ['file:/x%00', 'zero byte'],
  ['memory:', 'inside this one process'],
])('refuses the store %j with the way out', (url, words) => {
  const error = refusal(() => store(url));
  expect(error).toMatchObject({ code: 'BAD_STORE_URL', exitCode: 64 });
  expect(error.message).toContain(words);
});

test.each([
  ['zk://h:2181/x?layout=golea', 'zookeeper'],
  ['ZKS://h', 'zookeeper'],
  ['postgres://joe:secret@h/db?table=x', 'postgres'],
  ['PostgreSQL://h', 'postgres'],
  ['redis://h', 'redis'],
  ['rediss://h', 'redis'],
  ['etcd://h', 'etcd'],
  ['etcds://h', 'etcd'],
  ['k8s://ops', 'kubernetes'],
  ['s3://bucket/folder', 's3'],
  ['gs://bucket/folder', 'gcs'],
])('leaves the parts of %s to its client', (text, scheme) => {
  expect(locateStore(text, '/cwd', probe({}))).toEqual({ scheme, text, origin: '--store' });
  const env = { INCUMBENT_STORE: text, KUBERNETES_SERVICE_HOST: '10.0.0.1' };
  const origin = 'INCUMBENT_STORE';
  expect(locateStore(undefined, '/cwd', probe({ env }))).toEqual({ scheme, text, origin });
});

test('an unknown scheme names the known ones and the package, and no password', () => {
  const { message } = refusal(() => store('mysql://user:secret@host/db'));
  expect(message).toContain('unknown scheme "mysql:"');
  expect(message).toContain('file:/some/directory');
  expect(message).toContain('postgres://host/database, redis://host, etcd://h1,h2,h3');
  expect(message).toContain('s3://bucket or gs://bucket');
  expect(message).toContain('@incumbent/cli');
  expect(message).not.toContain('secret');
});

test.each([
  ['zookeeper://h1,h2/x', 'has the unknown scheme "zookeeper:"; write zk://'],
  ['Kubernetes://ops', 'write k8s://'],
  ['valkey://:secret@h', 'write redis://'],
  ['pg://u:secret@h/db', 'write postgres://'],
  ['gcs://bucket', 'write gs://'],
  ['posgres://u:secret@h/db', 'write postgres://'],
  ['fiel:/x', 'write file:…'],
  ['http://h:2379', 'write etcd://host:2379, or s3://bucket?endpoint=http://host:9000'],
  ['localhost:6379', 'begins with a host and a port, and no scheme; write redis://host:6379'],
  ['127.0.0.1:6379', 'begins with a host and a port, and no scheme; write redis://host:6379'],
  ['[::1]:2379', 'begins with a host and a port, and no scheme; write etcd://host:2379'],
  ['127.0.0.1:7391', 'begins with a host and a port, and no scheme; write file:/'],
  ['zk1:2181,zk2:2181/ops', 'write zk://host:2181'],
  ['host:4711', 'write file:/some/directory, postgres://host/database'],
])('of %s it says which scheme is meant', (url, words) => {
  const error = refusal(() => store(url));
  expect(error).toMatchObject({ code: 'BAD_STORE_URL', exitCode: 64 });
  expect(error.message).toContain(words);
  expect(error.message).not.toContain('secret');
});

test('names the variable when the store came from there', () => {
  const error = refusal(() => defaultStore({ env: { INCUMBENT_STORE: '/var/lib/x' } }));
  expect(error.message).toContain('INCUMBENT_STORE "/var/lib/x" is a path');
});

test('a URL that may hold a password is not shown, however its scheme is misspelt', () => {
  for (const text of ['postgres//ann:secret@db/app', 'secret@redis://h', './ann:secret@db']) {
    const refused = (() => {
      try {
        return locateStore(text, '/', probe({}));
      } catch (error) {
        return String(error);
      }
    })();
    expect(refused).toContain('is not the URL of a store');
    expect(refused).not.toContain('secret');
  }
});
