import { EventEmitter } from 'node:events';
import type { FSWatcher, watch } from 'node:fs';
import { expect, test } from 'vitest';
import { DirectoryWatch } from '../src/backends/file/directory-watch.ts';
import type { FileOperations } from '../src/backends/file/file-operations.ts';
import type { FileSystemProbe } from '../src/backends/file/filesystem-check.ts';
import { ProcessProof } from '../src/backends/file/process-proof.ts';
import { removeTemporaries } from '../src/backends/file/pruning.ts';
import { recordPath } from '../src/backends/file/record-file.ts';
import type { FileLeaseStoreOptions } from '../src/backends/file/store.ts';
import { openFileLeaseStore } from '../src/backends/file/store.ts';
import type { Machine } from '../src/backends/file/this-machine.ts';
import type { CandidateInfo } from '../src/base/candidate.ts';
import {
  InvalidOptionError,
  RecordDamagedError,
  RecordTooNewError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../src/base/errors.ts';
import type { LeaseStore } from '../src/mechanisms/lease/store.ts';
import type { LeaseRecord } from '../src/record/lease-record.ts';
import type { Operation } from './support/memory-disk.ts';
import { intercept, MemoryDisk, Stops, systemError } from './support/memory-disk.ts';
import { vacantRecord } from './support/vacant-record.ts';

const root = '/store';
const directory = '/store/e';
const forever = new AbortController().signal;

const localDisk: FileSystemProbe = {
  platform: 'linux',
  statfsType: async () => 0xef53,
  mountTable: async () => '',
  realPath: async (path) => path,
};

function openOn(
  files: FileOperations,
  options: FileLeaseStoreOptions = {},
  election = 'e',
): LeaseStore {
  return openFileLeaseStore(root, election, { operations: files, probe: localDisk, ...options });
}

function record(token: bigint, election = 'e'): LeaseRecord {
  return { ...vacantRecord(election, `n${token}`), token, leaseMs: 15_000 };
}

async function swapOn(store: LeaseStore, token: bigint): Promise<void> {
  const { version } = await store.read(forever);
  expect(await store.swap(version, record(token), forever)).toMatchObject({ outcome: 'ok' });
}

test('election names that would lead elsewhere or be hidden are refused before the disk is touched', () => {
  const files = new Proxy({} as FileOperations, {
    get: () => () => {
      throw new Error('the disk was touched');
    },
  });
  for (const name of ['a/b', 'a\\b', '.', '..', '../x', '.hidden', '/etc', '', 'a\0b', 'a\nb']) {
    expect(() => openOn(files, {}, name), JSON.stringify(name)).toThrow(InvalidOptionError);
  }
  expect(() => openOn(files, {}, '../x')).toThrow('"../x" must not contain "/" or "\\"');
  expect(() => openOn(files, {}, '.x')).toThrow('".x" must not start with "."');
  for (const place of ['', '/a\0b', undefined, 7]) {
    expect(() => openFileLeaseStore(place as string, 'e')).toThrow(InvalidOptionError);
  }
});

test('a swapped record is read, by others too, under the same version', async () => {
  const disk = new MemoryDisk();
  const [a, b] = [openOn(disk), openOn(disk)];
  const empty = await a.read(forever);
  expect(empty.record).toBeUndefined();
  const result = await a.swap(empty.version, record(1n), forever);
  expect(result.outcome).toBe('ok');
  const readings = [await a.read(forever), await b.read(forever)];
  for (const reading of readings) {
    expect(reading.record).toEqual(record(1n));
    expect(result).toEqual({ outcome: 'ok', version: reading.version });
  }
  expect(await b.swap(empty.version, record(2n), forever)).toEqual({ outcome: 'conflict' });
});

test('winning each sixteenth number prunes, and a prune that fails is only reported', async () => {
  const disk = new MemoryDisk();
  const troubles: string[] = [];
  let broken = false;
  const store = openOn(
    intercept(disk, {
      before: (operation, path) => {
        if (broken && operation === 'remove' && !path.includes('.tmp')) {
          throw systemError('EPERM', 'unlink', path);
        }
      },
    }),
    { onTrouble: (what) => troubles.push(what) },
  );
  for (let token = 1n; token <= 95n; token += 1n) await swapOn(store, token);
  expect(disk.paths).toHaveLength(1 + 79);
  broken = true;
  await swapOn(store, 96n);
  await store.close?.();
  expect(troubles).toEqual([`removing old records in ${directory}`]);
  expect(disk.paths).toHaveLength(1 + 80);
});

test('a record of another election in the same directory is damaged by name', async () => {
  const disk = new MemoryDisk();
  const store = openOn(disk);
  const { version } = await store.read(forever);
  await store.swap(version, record(1n, 'E'), forever);
  const refused = openOn(disk).read(forever);
  await expect(refused).rejects.toThrow(RecordDamagedError);
  await expect(refused).rejects.toThrow(/e\/0{15}1 .*election "E".*"e" on this file system/);
});

test('a record of a newer format is refused by name', async () => {
  const disk = new MemoryDisk();
  await swapOn(openOn(disk), 1n);
  const path = recordPath(directory, 1);
  disk.put(path, disk.contentOf(path)!.toString().replace('\n{"format":1', '\n{"format":3'));
  await expect(openOn(disk).read(forever)).rejects.toThrow(RecordTooNewError);
  disk.put(path, disk.contentOf(path)!.toString().replace('"nonce"', '"nine"'));
  disk.put(path, disk.contentOf(path)!.toString().replace('\n{"format":3', '\n{"format":1'));
  await expect(openOn(disk).read(forever)).rejects.toThrow(`${path} is not an election record`);
});

test('a shared file system is refused at the first use and nothing is made there', async () => {
  const disk = new MemoryDisk();
  await disk.makeDirectory('/', false);
  const made: string[] = [];
  const files = intercept(disk, {
    before: (operation, path) => {
      if (operation === 'makeDirectory') made.push(path);
    },
  });
  const probe: FileSystemProbe = { ...localDisk, statfsType: async () => 0x6969 };
  const store = openOn(files, { probe });
  await expect(store.read(forever)).rejects.toThrow(StoreUnsuitableError);
  await expect(store.swap('0', record(1n), forever)).rejects.toThrow(StoreUnsuitableError);
  expect(made).toEqual([]);
  await swapOn(openOn(disk, { probe, trustFileSystem: true }), 1n);
});

test('system errors name the fault, the place and the way out, and can be tried again', async () => {
  for (const [code, hint] of [
    ['ENOSPC', 'free some space'],
    ['EDQUOT', 'quota'],
    ['EROFS', 'writable'],
    ['EACCES', 'read, write and search'],
    ['EPERM', 'read, write and search'],
    ['EMFILE', 'ulimit'],
    ['EIO', 'kernel log'],
    ['EUCLEAN', ''],
  ] as const) {
    const disk = new MemoryDisk();
    let broken = true;
    const store = openOn(
      intercept(disk, {
        before: (operation, path) => {
          if (broken && operation === 'create') throw systemError(code, 'open', path);
        },
      }),
    );
    const error = await store.swap('0', record(1n), forever).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error, code).toBeInstanceOf(StoreUnavailableError);
    expect(error, code).toMatchObject({ retryable: true, cause: { code } });
    expect(String(error)).toMatch(new RegExp(`${code}.*${directory}.*${hint}`));
    broken = false;
    await swapOn(store, 1n);
  }
});

test('a system error without a path gets the directory into its message', async () => {
  const files: FileOperations = {
    ...intercept(new MemoryDisk(), {}),
    syncDirectory: () =>
      Promise.reject(
        Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO', syscall: 'fsync' }),
      ),
  };
  await expect(openOn(files).swap('0', record(1n), forever)).rejects.toThrow(
    `EIO: i/o error, fsync (in ${directory})`,
  );
});

test('a directory that is gone is not made again', async () => {
  const disk = new MemoryDisk();
  const store = openOn(disk);
  await swapOn(store, 1n);
  const { version } = await store.read(forever);
  disk.deleteDirectory(directory);
  for (const attempt of [
    () => store.read(forever),
    () => store.swap(version, record(2n), forever),
    () => store.enlist?.(candidate('a'), forever),
    () => store.init?.(forever),
  ]) {
    await expect(attempt()).rejects.toThrow(StoreUnavailableError);
    await expect(attempt()).rejects.toThrow('put the same one back');
  }
  expect(await disk.exists(directory)).toBe(false);
});

test('operations of one store run one after the other', async () => {
  const disk = new MemoryDisk();
  const stops = new Stops(disk);
  const store = openOn(stops.files);
  await store.read(forever);
  const path = recordPath(directory, 1);
  const goOn = await stops.stopBefore('link', path, () => store.swap('0', record(1n), forever));
  let order = '';
  const reading = store.read(forever).then(({ record: found }) => {
    order += `read ${found?.token}`;
  });
  // Time enough for the read, if it did not wait.
  await new Promise(setImmediate);
  const swapping = goOn().then(() => {
    order += 'swapped, ';
  });
  await Promise.all([reading, swapping]);
  expect(order).toBe('swapped, read 1');
});

test('a call whose signal aborted while it waited for its turn does nothing', async () => {
  const disk = new MemoryDisk();
  const stops = new Stops(disk);
  const store = openOn(stops.files);
  await store.read(forever);
  const goOn = await stops.stopBefore('read', recordPath(directory, 1), async () => {
    await swapOn(store, 1n);
    return store.read(forever);
  });
  const controller = new AbortController();
  const swapping = store.swap('0', record(5n), controller.signal);
  controller.abort(new Error('too late'));
  await goOn();
  await expect(swapping).rejects.toThrow('too late');
  expect((await store.read(forever)).record?.token).toBe(1n);
});

test('temporary files of dead processes go after an hour', async () => {
  const disk = new MemoryDisk();
  await disk.makeDirectory(directory, true);
  const name = (pid: number) => `${directory}/.tmp-${pid}-0123456789abcdef`;
  for (const pid of [10, 11]) disk.put(name(pid), 'old');
  disk.put(`${directory}/.tmp-mine`, 'old');
  disk.nowMs = 1;
  disk.put(name(12), 'young');
  disk.nowMs = 3_600_001;
  disk.put(recordPath(directory, 80), 'newest');
  await removeTemporaries(directory, disk, 80, (pid) => pid !== 11);
  expect(disk.paths).toEqual(
    [`${directory}/.tmp-mine`, name(11), name(12), recordPath(directory, 80)].sort(),
  );
});

const here: Machine = {
  boot: 'b1',
  pidNamespace: 'pid:[1]',
  timeNamespace: '',
  bootIsExact: true,
  isAbsent: () => false,
  process: () => ({ startTime: '1', isSpent: false }),
  hasSessions: true,
  areSpent: () => false,
};

function candidate(id: string): CandidateInfo {
  return { id, incarnation: `inc-${id}`, addresses: [`${id}:1`], metadata: { zone: 'a' } };
}

function storeOf(
  disk: MemoryDisk,
  machine: Machine,
  options: FileLeaseStoreOptions = {},
): LeaseStore {
  return openOn(disk, { proof: new ProcessProof(() => machine), ...options });
}

test('an enlisted candidate is listed until the end of it, sorted by id', async () => {
  const disk = new MemoryDisk();
  const store = storeOf(disk, here);
  expect(await store.list?.(forever)).toEqual([]);
  const endB = await store.enlist?.(candidate('b'), forever);
  const endA = await store.enlist?.(candidate('a'), forever);
  expect(await storeOf(disk, here).list?.(forever)).toEqual([candidate('a'), candidate('b')]);
  await endB?.();
  expect(await store.list?.(forever)).toEqual([candidate('a')]);
  await endA?.();
  await endA?.();
  expect(disk.paths).toEqual([]);
});

test('the dead are left out and removed, by proof or because the machine was booted since', async () => {
  const nobody: Machine = { ...here, isAbsent: () => true };
  const rebooted: Machine = { ...here, boot: 'b2' };
  for (const [machine, options, listed] of [
    [nobody, {}, false],
    [rebooted, {}, false],
    [rebooted, { trustFileSystem: true }, true],
    [{ ...nobody, pidNamespace: 'pid:[2]' }, {}, true],
  ] as const) {
    const disk = new MemoryDisk();
    await storeOf(disk, here).enlist?.(candidate('a'), forever);
    const found = await storeOf(disk, machine, options).list?.(forever);
    expect(found).toEqual(listed ? [candidate('a')] : []);
    expect(disk.paths).toHaveLength(listed ? 1 : 0);
  }
});

test('files on the list that are not ours to read are skipped and left alone', async () => {
  const disk = new MemoryDisk();
  const store = storeOf(disk, here);
  await store.enlist?.(candidate('a'), forever);
  const path = `${directory}/candidates/inc-a.json`;
  const good = disk.contentOf(path)!.toString();
  const bad = [
    '',
    'null',
    '{"format":1}',
    good.replace('"format":1', '"format":2'),
    good.replace('"id":"a"', '"id":7'),
    good.replace('["a:1"]', '[1]'),
    good.replace('{"zone":"a"}', '{"zone":1}'),
    good,
  ];
  bad.forEach((content, i) => {
    disk.put(`${directory}/candidates/bad-${i}.json`, content);
  });
  disk.put(`${directory}/candidates/README`, good);
  expect(await store.list?.(forever)).toEqual([candidate('a')]);
  expect(disk.paths).toHaveLength(bad.length + 2);
});

test('an incarnation that is no file name is refused, and a failed enlisting leaves nothing', async () => {
  const disk = new MemoryDisk();
  for (const incarnation of ['', '../x', 'a/b', 'a.b', 'x'.repeat(129)]) {
    await expect(
      storeOf(disk, here).enlist?.({ ...candidate('a'), incarnation }, forever),
    ).rejects.toThrow(InvalidOptionError);
  }
  const files = intercept(disk, {
    before: (operation: Operation, path) => {
      if (operation === 'rename') throw systemError('EACCES', 'rename', path);
    },
  });
  await expect(openOn(files).enlist?.(candidate('a'), forever)).rejects.toThrow(
    StoreUnavailableError,
  );
  expect(disk.paths).toEqual([]);
});

class FakeWatcher extends EventEmitter {
  closed = false;

  close(): void {
    this.closed = true;
  }
}

function fakeWatch(watchers: FakeWatcher[], failures: Error[]): typeof watch {
  return ((_path: string, options: { persistent?: boolean }) => {
    expect(options.persistent).toBe(false);
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    const watcher = new FakeWatcher();
    watchers.push(watcher);
    return watcher as unknown as FSWatcher;
  }) as typeof watch;
}

test('only names that could be a new record are hints', () => {
  const watchers: FakeWatcher[] = [];
  const watching = new DirectoryWatch(
    '/d',
    (name) => name === 'news',
    () => {},
    fakeWatch(watchers, []),
  );
  let hints = 0;
  watching.ensure();
  expect(watchers).toHaveLength(0);
  const end = watching.add(() => {
    hints += 1;
  });
  watching.ensure();
  watching.ensure();
  expect(watchers).toHaveLength(1);
  for (const name of ['news', 'old', null]) watchers[0]?.emit('change', 'rename', name);
  expect(hints).toBe(2);
  end();
  expect(watchers[0]?.closed).toBe(true);
});

test('a watch that cannot be had is reported once and tried again', () => {
  const watchers: FakeWatcher[] = [];
  const troubles: unknown[] = [];
  const exhausted = systemError('ENOSPC', 'watch', '/d');
  const failures = [exhausted, exhausted];
  const watching = new DirectoryWatch(
    '/d',
    () => true,
    (what, error) => troubles.push([what, error]),
    fakeWatch(watchers, failures),
  );
  watching.add(() => {});
  for (let i = 0; i < 3; i += 1) watching.ensure();
  expect(troubles).toEqual([['watching /d: changes are found by polling', exhausted]]);
  expect(watchers).toHaveLength(1);
  watchers[0]?.emit('error', systemError('EIO', 'watch', '/d'));
  expect(troubles).toHaveLength(2);
  expect(watchers[0]?.closed).toBe(true);
  watching.ensure();
  expect(watchers).toHaveLength(2);
  watching.close();
  watching.ensure();
  expect(watchers).toHaveLength(2);
});
