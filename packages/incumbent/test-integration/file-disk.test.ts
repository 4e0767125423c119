import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { openFileLeaseStore } from '../src/backends/file/store.ts';
import { StoreUnavailableError } from '../src/base/errors.ts';
import type { LeaseStore } from '../src/mechanisms/lease/store.ts';
import type { LeaseRecord } from '../src/record/lease-record.ts';
import { vacantRecord } from '../test/support/vacant-record.ts';
import { buildFileProcess, temporaryDirectory } from './support/file-build.ts';

const forever = new AbortController().signal;
const build = temporaryDirectory();
let program: readonly string[] = [];
let place = build;

beforeAll(() => {
  program = buildFileProcess(build.path);
});
afterAll(() => build.remove());
beforeEach(() => {
  place = temporaryDirectory();
});
afterEach(() => place.remove());

const record: LeaseRecord = { ...vacantRecord('e', 'n'), leaseMs: 15_000 };

async function swapOn(store: LeaseStore): Promise<void> {
  const { version } = await store.read(forever);
  expect(await store.swap(version, record, forever)).toMatchObject({ outcome: 'ok' });
}

/** Why a namespace cannot be had, or undefined. */
function whyNoNamespace(flags: string): string | undefined {
  const { status, error, stderr } = spawnSync('unshare', [flags, 'true'], { encoding: 'utf8' });
  if (status === 0) return undefined;
  return `unshare ${flags}: ${error?.message ?? stderr.trim()}`;
}

/** Runs a shell script in namespaces of its own. `$@` runs the file process. */
function inNamespace(flags: string, script: string): unknown {
  const args = [flags, 'sh', '-ec', script, 'sh', process.execPath, ...program];
  return JSON.parse(execFileSync('unshare', args, { encoding: 'utf8' }));
}

test('a full disk: the swap is refused with the way out, nothing is left, and it goes on later', (context) => {
  const why = whyNoNamespace('-Urm');
  if (why !== undefined) return context.skip(why);
  const found = inNamespace(
    '-Urm',
    `mount -t tmpfs -o size=256k none '${place.path}'; "$@" fillDisk '${place.path}'`,
  );
  expect(found).toMatchObject({
    before: 1,
    full: { name: 'StoreUnavailableError', retryable: true },
    left: [],
    read: 1,
    after: 2,
  });
  expect(JSON.stringify(found)).toMatch(/ENOSPC: no space left on device.*free some space/);
});

test('a file system mounted read-only: reading goes on, writing is refused with the way out', (context) => {
  const why = whyNoNamespace('-Urm');
  if (why !== undefined) return context.skip(why);
  const found = inNamespace(
    '-Urm',
    `mount -t tmpfs -o size=256k none '${place.path}'; "$@" swap '${place.path}' >/dev/null
     mount -o remount,ro '${place.path}'; "$@" readOnly '${place.path}'`,
  );
  expect(found).toMatchObject({
    read: { value: 1 },
    swap: { name: 'StoreUnavailableError', retryable: true },
    left: [],
  });
  expect(JSON.stringify(found)).toMatch(/EROFS: read-only file system.*mount that file system/);
});

test('a directory without write permission: reading goes on, writing is refused', (context) => {
  // Root may write anywhere. In a user namespace without mappings it has no more
  // rights than others.
  const why = whyNoNamespace('-U');
  if (why !== undefined) return context.skip(why);
  const election = join(place.path, 'e');
  try {
    inNamespace('-Ur', `"$@" swap '${place.path}'`);
    for (const path of [place.path, election]) chmodSync(path, 0o555);
    const found = inNamespace('-U', `"$@" readOnly '${place.path}'`);
    expect(found).toMatchObject({
      read: { value: 1 },
      swap: { name: 'StoreUnavailableError' },
      left: [],
    });
    expect(JSON.stringify(found)).toMatch(/EACCES: permission denied.*read, write and search/);
    rmSync(election, { recursive: true });
    chmodSync(place.path, 0o555);
    expect(inNamespace('-U', `"$@" make '${place.path}'`)).toMatchObject({
      read: { name: 'StoreUnavailableError' },
      exists: false,
    });
  } finally {
    chmodSync(place.path, 0o755);
  }
});

test('new files and directories are for the owner alone', async () => {
  const root = join(place.path, 'made', 'too');
  await swapOn(openFileLeaseStore(root, 'e'));
  for (const path of [join(place.path, 'made'), root, join(root, 'e')]) {
    expect(statSync(path).mode & 0o777, path).toBe(0o700);
  }
});

test('a directory that was moved away is missed, not made again, and works when it is back', async () => {
  const directory = join(place.path, 'e');
  const store = openFileLeaseStore(place.path, 'e');
  await swapOn(store);
  const { version } = await store.read(forever);
  renameSync(directory, `${directory}.away`);
  await expect(store.read(forever)).rejects.toThrow(StoreUnavailableError);
  await expect(store.read(forever)).rejects.toThrow(`${directory}'; the directory is gone`);
  await expect(store.swap(version, record, forever)).rejects.toThrow(StoreUnavailableError);
  renameSync(`${directory}.away`, directory);
  expect(await store.swap(version, record, forever)).toMatchObject({ outcome: 'ok' });
});

test('another directory in its place is refused, until the first is back', async () => {
  const directory = join(place.path, 'e');
  const store = openFileLeaseStore(place.path, 'e');
  await swapOn(store);
  await swapOn(store);
  renameSync(directory, `${directory}.away`);
  mkdirSync(directory);
  await expect(store.read(forever)).rejects.toThrow(`${directory} is another directory`);
  rmSync(directory, { recursive: true });
  // An older copy.
  cpSync(`${directory}.away`, directory, { recursive: true });
  rmSync(join(directory, '0000000000000002'));
  await expect(store.read(forever)).rejects.toThrow(`${directory} is another directory`);
  rmSync(directory, { recursive: true });
  renameSync(`${directory}.away`, directory);
  await swapOn(store);
});

test('a watcher hears of a new record, again when the directory was away', async () => {
  const directory = join(place.path, 'e');
  const [writer, watcher] = [
    openFileLeaseStore(place.path, 'e'),
    openFileLeaseStore(place.path, 'e'),
  ];
  const hint = () =>
    new Promise<void>((resolve) => {
      const end = watcher.watch?.(() => {
        end?.();
        resolve();
      });
    });
  const first = hint();
  // Watching begins with the directory.
  await watcher.read(forever);
  await swapOn(writer);
  await first;
  const second = hint();
  renameSync(directory, `${directory}.away`);
  await expect(watcher.read(forever)).rejects.toThrow(StoreUnavailableError);
  renameSync(`${directory}.away`, directory);
  await watcher.read(forever);
  await swapOn(writer);
  await second;
  await watcher.close?.();
});

test('after close nothing is heard any more', async () => {
  const [writer, watcher, witness] = [0, 1, 2].map(() => openFileLeaseStore(place.path, 'e'));
  await watcher!.read(forever);
  let hints = 0;
  watcher!.watch?.(() => {
    hints += 1;
  });
  await watcher!.close?.();
  await witness!.read(forever);
  const heard = new Promise<void>((resolve) => witness!.watch?.(() => resolve()));
  await swapOn(writer!);
  await heard;
  expect(hints).toBe(0);
  await witness!.close?.();
});
