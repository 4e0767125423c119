import { expect, test } from 'vitest';
import { ElectionDirectory } from '../src/backends/file/election-directory.ts';
import type { FileOperations } from '../src/backends/file/file-operations.ts';
import type { Entry } from '../src/backends/file/numbered-records.ts';
import { NumberedRecords, parseVersion, versionOf } from '../src/backends/file/numbered-records.ts';
import { prune } from '../src/backends/file/pruning.ts';
import { recordNumbers, recordPath, tombstone } from '../src/backends/file/record-file.ts';
import {
  MisuseError,
  RecordDamagedError,
  RecordTooNewError,
  StoreUnavailableError,
} from '../src/base/errors.ts';
import type { Operation } from './support/memory-disk.ts';
import { intercept, MemoryDisk, Stops, systemError } from './support/memory-disk.ts';

const directory = '/store/e';
const forever = new AbortController().signal;
const at = (number: number) => recordPath(directory, number);

async function open(files: FileOperations): Promise<NumberedRecords> {
  const place = new ElectionDirectory(directory, files, undefined);
  await place.open();
  return new NumberedRecords(place, files);
}

/** Appends until `last` is the newest, as a healthy process does, pruning when it is due. */
async function fill(disk: MemoryDisk, last: number): Promise<Entry> {
  const records = await open(disk);
  let entry = await records.read();
  while ((entry?.number ?? 0) < last) {
    entry = await records.append(entry, `body ${(entry?.number ?? 0) + 1}`, forever);
    if (entry!.number % 16 === 0) await prune(directory, disk, entry!.number);
  }
  return entry!;
}

async function numbersOn(disk: MemoryDisk): Promise<readonly number[]> {
  return recordNumbers(await disk.list(directory));
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

test('an empty directory has no entry, and the first append makes number 1', async () => {
  const disk = new MemoryDisk();
  const records = await open(disk);
  expect(await records.read()).toBeUndefined();
  const first = await records.append(undefined, 'one', forever);
  expect(first).toMatchObject({ number: 1, body: 'one' });
  expect(await (await open(disk)).read()).toEqual(first);
});

test('of two appends on the same entry one is made', async () => {
  const disk = new MemoryDisk();
  const entry = await fill(disk, 3);
  const [a, b] = [await open(disk), await open(disk)];
  expect(await a.append(entry, 'a', forever)).toMatchObject({ number: 4 });
  expect(await b.append(entry, 'b', forever)).toBeUndefined();
  expect(await b.read()).toMatchObject({ number: 4, body: 'a' });
});

test('of two writers that both found the number free, one links it', async () => {
  const disk = new MemoryDisk();
  const entry = await fill(disk, 3);
  const stops = new Stops(disk);
  const slow = await open(stops.files);
  const goOn = await stops.stopBefore('link', at(4), () => slow.append(entry, 'slow', forever));
  expect(await (await open(disk)).append(entry, 'fast', forever)).toBeDefined();
  expect(await goOn()).toBeUndefined();
  expect(disk.paths.filter((path) => path.includes('.tmp-'))).toEqual([]);
});

test('an unchanged newest entry is found again without a listing', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 20);
  const steps: Operation[] = [];
  const records = await open(
    intercept(disk, {
      before: (operation) => {
        steps.push(operation);
      },
    }),
  );
  const entry = await records.read();
  steps.length = 0;
  expect(await records.read()).toBe(entry);
  expect(steps).toEqual(['exists', 'read']);
});

test('the last 64 stay, and number 1 as a tombstone', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 64);
  expect(await numbersOn(disk)).toEqual(range(1, 64));
  await fill(disk, 80);
  expect(await numbersOn(disk)).toEqual([1, ...range(17, 80)]);
  expect(disk.contentOf(at(1))).toEqual(tombstone);
  await fill(disk, 99);
  expect(await numbersOn(disk)).toEqual([1, ...range(33, 99)]);
});

test('a writer that links a pruned number has not won it, and no reader takes it for the newest', async () => {
  const disk = new MemoryDisk();
  const old = await fill(disk, 5);
  const stale = await open(disk);
  const newest = await fill(disk, 100);
  expect(await stale.append(old, 'stale', forever)).toBeUndefined();
  expect(await numbersOn(disk)).toContain(6);
  expect(await (await open(disk)).read()).toEqual(newest);
  await fill(disk, 112);
  expect(await numbersOn(disk)).toEqual([1, ...range(49, 112)]);
});

test('a reader of number 1 from before it was buried does not win number 2 again', async () => {
  const disk = new MemoryDisk();
  const first = await fill(disk, 1);
  const stale = await open(disk);
  await fill(disk, 80);
  expect(await stale.append(first, 'stale', forever)).toBeUndefined();
  // Nor number 1.
  expect(await stale.append(undefined, 'stale', forever)).toBeUndefined();
});

test('number 1 is buried before number 2 goes', async () => {
  const disk = new MemoryDisk();
  const first = await fill(disk, 1);
  await fill(disk, 79);
  const records = await open(disk);
  const newest = await records.append(await records.read(), 'body 80', forever);
  const stops = new Stops(disk);
  const goOn = await stops.stopBefore('remove', at(2), () =>
    prune(directory, stops.files, newest!.number),
  );
  expect(disk.contentOf(at(1))).toEqual(tombstone);
  expect(disk.afterPowerCut().contentOf(at(1))).toEqual(tombstone);
  await goOn();
  expect(await (await open(disk)).append(first, 'stale', forever)).toBeUndefined();
});

test('number 1 is not taken for the newest by a reader that slept while it was buried', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 1);
  const stops = new Stops(disk);
  const slow = await open(stops.files);
  const goOn = await stops.stopBefore('exists', at(2), () => slow.read());
  const newest = await fill(disk, 80);
  expect(await goOn()).toEqual(newest);
});

test('two pruners, one of them with an old listing, leave the same as one', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 79);
  const records = await open(disk);
  const old = await records.read();
  const entry = await records.append(old, 'body 80', forever);
  const stops = new Stops(disk);
  const goOn = await stops.stopBefore('remove', at(5), () =>
    prune(directory, stops.files, entry!.number),
  );
  const newest = await fill(disk, 160);
  expect(await numbersOn(disk)).toEqual([1, ...range(97, 160)]);
  await goOn();
  expect(await numbersOn(disk)).toEqual([1, ...range(97, 160)]);
  // With a floor file, the old pruner would have set it back and let these numbers be won again.
  expect(await records.append(old, 'again', forever)).toBeUndefined();
  expect(await records.append(entry, 'again', forever)).toBeUndefined();
  expect(await (await open(disk)).read()).toEqual(newest);
});

test('pruning stops at the first number it cannot remove', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 79);
  const files = intercept(disk, {
    before: (operation, path) => {
      if (operation === 'remove' && path === at(5)) throw systemError('EPERM', 'unlink', path);
    },
  });
  await expect(prune(directory, files, 79)).rejects.toThrow('EPERM');
  expect(await numbersOn(disk)).toEqual([1, ...range(5, 79)]);
});

test('pruning does not remove a number above one that its listing missed', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 79);
  const files: FileOperations = {
    ...intercept(disk, {}),
    list: async (path) => (await disk.list(path)).filter((name) => !name.endsWith('07')),
  };
  await prune(directory, files, 79);
  expect(await numbersOn(disk)).toEqual([1, ...range(7, 79)]);
});

test('a stray whose maker died is not the newest, though it is all that a listing shows', async () => {
  const disk = new MemoryDisk();
  const old = await fill(disk, 5);
  const reader = await open(disk);
  expect(await reader.read()).toEqual(old);
  const newest = await fill(disk, 100);
  // It dies before it looks at number 5 again.
  const stops = new Stops(disk);
  const dying = await open(stops.files);
  await stops.stopBefore('read', at(5), () => dying.append(old, 'stray', forever));
  expect(disk.contentOf(at(6))?.toString()).toContain('stray');

  let listings = 0;
  const files: FileOperations = {
    ...intercept(disk, {}),
    list: async (path) => {
      listings += 1;
      const names = await disk.list(path);
      return listings === 1 ? names.filter((name) => /0[16]$/.test(name)) : names;
    },
  };
  const fooled = await open(files);
  const seen = await fooled.read();
  expect(seen).toEqual(newest);
  expect(listings).toBe(2);
  // Nor for one that knew number 5 as the newest, which the stray names as its predecessor.
  expect(await reader.read()).toEqual(newest);
});

test('writers that slept after linking do not take the chain apart', async () => {
  const disk = new MemoryDisk();
  let newest = await fill(disk, 1);
  const sleepers: (() => Promise<Entry | undefined>)[] = [];
  for (const number of range(2, 70)) {
    const stops = new Stops(disk);
    const writer = await open(stops.files);
    const before = newest;
    sleepers.push(
      await stops.stopBefore('read', at(number - 1), () => writer.append(before, 'w', forever)),
    );
    newest = (await (await open(disk)).read())!;
    expect(newest.number).toBe(number);
  }
  await prune(directory, disk, 70);
  // Writers whose predecessor is gone cannot know whether they had won. The others had.
  const outcomes: boolean[] = [];
  for (const wake of sleepers) outcomes.push((await wake()) !== undefined);
  expect(outcomes).toEqual(range(2, 70).map((number) => number > 7));
  const reader = await open(disk);
  expect(await reader.read()).toEqual(newest);
  expect(await reader.append(newest, 'next', forever)).toMatchObject({ number: 71 });
});

test('the same attempt made again does not look like the first', async () => {
  const disk = new MemoryDisk();
  const before = await fill(disk, 4);
  const unlucky = await open(
    intercept(disk, {
      before: (operation, path) => {
        if (operation === 'syncDirectory' && path === directory) {
          throw systemError('EIO', 'fsync', path);
        }
      },
    }),
  );
  await expect(unlucky.append(before, 'same', forever)).rejects.toThrow('EIO');
  const stale = await open(disk);
  const seen = await stale.read();
  expect(seen).toMatchObject({ number: 5, body: 'same' });
  await fill(disk, 100);
  // A stray number 5 with the same predecessor and the same body as the real one had.
  expect(await unlucky.append(before, 'same', forever)).toBeUndefined();
  expect(disk.contentOf(at(5))).toBeDefined();
  expect(await stale.append(seen, 'stale', forever)).toBeUndefined();
});

test('an appended record survives a power cut', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 3);
  const after = disk.afterPowerCut();
  expect(await (await open(after)).read()).toMatchObject({ number: 3, body: 'body 3' });
});

test('a link that may not be on the disk is not shown before it is', async () => {
  const disk = new MemoryDisk();
  const entry = await fill(disk, 3);
  let broken = true;
  const records = await open(
    intercept(disk, {
      before: (operation, path) => {
        if (broken && operation === 'syncDirectory' && path === directory) {
          throw systemError('EIO', 'fsync', path);
        }
      },
    }),
  );
  await expect(records.append(entry, 'four', forever)).rejects.toThrow('EIO');
  expect(await (await open(disk.afterPowerCut())).read()).toMatchObject({ number: 3 });
  await expect(records.read()).rejects.toThrow('EIO');
  broken = false;
  expect(await records.read()).toMatchObject({ number: 4, body: 'four' });
  expect(await (await open(disk.afterPowerCut())).read()).toMatchObject({ number: 4 });
});

test('the directory itself is on the disk before anything is won in it', async () => {
  const disk = new MemoryDisk();
  const synced: string[] = [];
  const records = await open(
    intercept(disk, {
      after: (operation, path) => {
        if (operation === 'syncDirectory') synced.push(path);
      },
    }),
  );
  await records.append(undefined, 'one', forever);
  expect(synced).toEqual(['/store', '/', directory]);
  await records.append(await records.read(), 'two', forever);
  expect(synced.slice(3)).toEqual([directory]);
});

test('whichever step fails, the read after it tells what happened and nothing half-made is left', async () => {
  const steps: string[] = [];
  for (const when of ['before', 'after'] as const) {
    for (let failing = 0; ; failing += 1) {
      const disk = new MemoryDisk();
      const entry = await fill(disk, 3);
      let step = -1;
      let failed: Operation | undefined;
      const fail = (operation: Operation, path: string) => {
        if (step !== failing) return;
        failed = operation;
        throw systemError('EIO', operation, path);
      };
      let counting = false;
      const records = await open(
        intercept(disk, {
          before: (operation, path) => {
            if (counting) step += 1;
            if (when === 'before') fail(operation, path);
          },
          after: (operation, path) => {
            if (when === 'after') fail(operation, path);
          },
        }),
      );
      counting = true;
      const outcome = await records.append(entry, 'four', forever).then(
        (won) => (won === undefined ? 'conflict' : 'ok'),
        () => 'unknown',
      );
      counting = false;
      step = -1;
      if (failed === undefined) break;
      steps.push(`${when} ${failed}: ${outcome}`);
      const readBack = await records.read();
      const found = readBack?.body === 'four';
      if (outcome === 'ok') expect(found).toBe(true);
      expect(outcome).not.toBe('conflict');
      expect(await (await open(disk.afterPowerCut())).read()).toMatchObject({
        body: found ? 'four' : 'body 3',
      });
      const leftovers = disk.paths.filter((path) => path.includes('.tmp-'));
      expect(leftovers).toHaveLength(when === 'before' && failed === 'remove' ? 1 : 0);
    }
  }
  expect(steps).toEqual([
    'before exists: unknown',
    'before identify: unknown',
    'before identify: unknown',
    'before syncDirectory: unknown',
    'before identify: unknown',
    'before syncDirectory: unknown',
    'before create: unknown',
    'before link: unknown',
    'before remove: ok',
    'before read: unknown',
    'before syncDirectory: unknown',
    'after exists: unknown',
    'after identify: unknown',
    'after identify: unknown',
    'after syncDirectory: unknown',
    'after identify: unknown',
    'after syncDirectory: unknown',
    'after create: unknown',
    'after link: unknown',
    'after remove: ok',
    'after read: unknown',
    'after syncDirectory: unknown',
  ]);
});

test('a full disk leaves no part of a file behind', async () => {
  const disk = new MemoryDisk();
  const entry = await fill(disk, 3);
  const files: FileOperations = {
    ...intercept(disk, {}),
    create: async (path, content) => {
      await disk.create(path, content.subarray(0, 20));
      throw systemError('ENOSPC', 'write', path);
    },
  };
  const records = await open(files);
  const before = disk.paths;
  await expect(records.append(entry, 'four', forever)).rejects.toThrow('ENOSPC');
  expect(disk.paths).toEqual(before);
});

test('an append that was aborted before its link does not link', async () => {
  const disk = new MemoryDisk();
  const entry = await fill(disk, 3);
  const controller = new AbortController();
  const records = await open(
    intercept(disk, {
      after: (operation) => {
        if (operation === 'create') controller.abort(new Error('enough'));
      },
    }),
  );
  await expect(records.append(entry, 'four', controller.signal)).rejects.toThrow('enough');
  expect(await numbersOn(disk)).toEqual([1, 2, 3]);
  expect(disk.paths).toHaveLength(3);
});

test('a newest file that is no record is reported by name and never overwritten', async () => {
  for (const [content, kind] of [
    ['', RecordDamagedError],
    ['not ours', RecordDamagedError],
    ['[]\n{}', RecordDamagedError],
    ['{"number":4,"previous":"x"}\n{}', RecordDamagedError],
    ['{"format":1,"number":5,"previous":"x"}\n{}', RecordDamagedError],
    ['{"format":1,"number":4,"previous":null}\n{}', RecordDamagedError],
    ['{"format":0,"number":4,"previous":"x"}\n{}', RecordDamagedError],
    ['{"format":2,"whatever":true}\n', RecordTooNewError],
  ] as const) {
    const disk = new MemoryDisk();
    const entry = await fill(disk, 3);
    disk.put(at(4), content);
    const records = await open(disk);
    const error = await records.read().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error, content).toBeInstanceOf(kind);
    expect(String(error), content).toContain(at(4));
    expect(await records.append(entry, 'four', forever), content).toBeUndefined();
    expect(disk.contentOf(at(4))?.toString()).toBe(content);
  }
});

test('a damaged file below the newest stops nobody, except just below it', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 6);
  disk.put(at(4), 'damaged');
  expect(await (await open(disk)).read()).toMatchObject({ number: 6 });
  disk.put(at(5), 'damaged');
  await expect((await open(disk)).read()).rejects.toThrow(StoreUnavailableError);
});

test('a damaged file that is gone at the second look was not the newest', async () => {
  const disk = new MemoryDisk();
  const known = await fill(disk, 3);
  disk.put(at(4), 'damaged');
  const stops = new Stops(disk);
  const reader = await open(stops.files);
  const goOn = await stops.stopBefore('exists', at(5), () => reader.read());
  disk.delete(at(4));
  expect(await goOn()).toEqual(known);
});

test('other files in the directory are ignored and left alone', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 79);
  const others = ['README', '0000000000000000', '9999999999999999', '12', '00000000000000099'].map(
    (name) => `${directory}/${name}`,
  );
  for (const path of others) disk.put(path, 'other');
  const newest = await fill(disk, 160);
  expect(await (await open(disk)).read()).toEqual(newest);
  for (const path of others) expect(disk.contentOf(path)?.toString()).toBe('other');
});

test('records that an operator removed are gone, for readers that knew them too', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 3);
  const records = await open(disk);
  await records.read();
  for (const path of disk.paths) disk.delete(path);
  expect(await records.read()).toBeUndefined();
  expect(await records.append(undefined, 'again', forever)).toMatchObject({ number: 1 });
});

test('a directory that went back is refused by readers that know better', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 9);
  const records = await open(disk);
  await records.read();
  const kept = disk.contentOf(at(9))!;
  disk.delete(at(9));
  await expect(records.read()).rejects.toThrow('went back from record 9 to another record 8');
  disk.put(at(9), kept);
  expect(await records.read()).toMatchObject({ number: 9 });
});

test('another directory in the place of the first is refused', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 3);
  const records = await open(disk);
  await records.read();
  disk.deleteDirectory(directory);
  await expect(records.read()).rejects.toThrow('ENOENT');
  disk.makeDirectoryNow(directory);
  await expect(records.read()).rejects.toThrow('is another directory');
});

test('when only the tombstone is left there is no newest, and no number 1 to win', async () => {
  const disk = new MemoryDisk();
  await fill(disk, 80);
  for (const path of disk.paths) if (path !== at(1)) disk.delete(path);
  const records = await open(disk);
  await expect(records.read()).rejects.toThrow('removed or changed by hand');
  expect(await records.append(undefined, 'one', forever)).toBeUndefined();
});

test('a version says which entry it is of, and others are refused', async () => {
  const disk = new MemoryDisk();
  const entry = await fill(disk, 3);
  expect(parseVersion(versionOf(entry))).toEqual({ number: 3, digest: entry.digest });
  expect(parseVersion(versionOf(undefined))).toBeUndefined();
  for (const bad of [0, 1n, '', '1', '01-', `0-${entry.digest}`]) {
    expect(() => parseVersion(bad)).toThrow(MisuseError);
  }
});
