import { expect, test } from 'vitest';
import { ProcessProof } from '../src/backends/file/process-proof.ts';
import type { Machine } from '../src/backends/file/this-machine.ts';
import { parseStat, procShowsEverybody } from '../src/backends/file/this-machine.ts';
import { InvalidOptionError } from '../src/base/errors.ts';
import type { Actor } from '../src/record/record.ts';

interface Processes {
  /** Process ids and negative group ids that exist. */
  readonly present?: readonly number[];
  readonly starts?: Readonly<Record<number, string>>;
  /** Process ids and negative group ids that are only zombies. */
  readonly spent?: readonly number[];
  /** Sessions that have a living process. */
  readonly sessions?: readonly number[];
}

function machine(
  { present = [], starts = {}, spent = [], sessions: living = [] }: Processes,
  changes: Partial<Machine> = {},
): Machine {
  return {
    boot: 'boot-1',
    pidNamespace: 'pid:[1]',
    timeNamespace: 'time:[1]',
    bootIsExact: true,
    isAbsent: (target) => !present.includes(target),
    process: (pid) => {
      const startTime = starts[pid];
      return startTime === undefined ? undefined : { startTime, isSpent: spent.includes(pid) };
    },
    hasSessions: true,
    areSpent: (groups, sessions) =>
      groups.every((group) => spent.includes(-group)) &&
      !sessions.some((session) => living.includes(session)),
    ...changes,
  };
}

function proofOn(now: Machine): ProcessProof {
  return new ProcessProof(() => now);
}

const alive = machine({ present: [70, -80], starts: { 70: '5000' } });
const actor: Actor = proofOn(alive).describe({ pid: 70 });
const grouped: Actor = proofOn(alive).describe({ pid: 70, group: 80 });

function isGone(found: Actor, now: Machine): boolean {
  return proofOn(now).provesGone([found]);
}

test('an actor has the facts by which its process is recognised', () => {
  expect(grouped).toEqual({
    pid: 70,
    start: '5000',
    group: 80,
    boot: 'boot-1',
    pidNamespace: 'pid:[1]',
    timeNamespace: 'time:[1]',
  });
  expect(actor).not.toHaveProperty('group');
  expect(proofOn(machine({ present: [70] })).describe({ pid: 70 })).not.toHaveProperty('start');
});

test('ids that kill(2) takes for something else are refused', () => {
  const proof = proofOn(alive);
  for (const pid of [0, -1, 1.5, Number.NaN, 2 ** 31]) {
    expect(() => proof.describe({ pid })).toThrow(InvalidOptionError);
  }
  for (const session of [0, -70, 0.5]) {
    expect(() => proof.describe({ pid: 70, session })).toThrow(InvalidOptionError);
  }
  for (const group of [0, 1, -70, 0.5]) {
    expect(() => proof.describe({ pid: 70, group })).toThrow(InvalidOptionError);
  }
});

test('a process is gone when no process has its number', () => {
  expect(isGone(actor, alive)).toBe(false);
  expect(isGone(actor, machine({}))).toBe(true);
});

test('a process is gone when its number belongs to one with another start time', () => {
  expect(isGone(actor, machine({ present: [70], starts: { 70: '5001' } }))).toBe(true);
});

test('a number in use whose start time cannot be read is a doubt', () => {
  expect(isGone(actor, machine({ present: [70] }))).toBe(false);
  const { start: _, ...unknownStart } = actor;
  expect(isGone(unknownStart, machine({ present: [70], starts: { 70: '5001' } }))).toBe(false);
  expect(isGone({ ...actor, start: '' }, machine({ present: [70], starts: { 70: '1' } }))).toBe(
    false,
  );
});

test('a group must be empty as well', () => {
  expect(isGone(grouped, machine({ present: [-80] }))).toBe(false);
  expect(isGone(grouped, machine({ present: [70, -80], starts: { 70: '9' } }))).toBe(false);
  expect(isGone(grouped, machine({ present: [70], starts: { 70: '5000' } }))).toBe(false);
  expect(isGone(grouped, machine({}))).toBe(true);
});

test('nobody of the session may be alive, whatever became of process and group', () => {
  const whole = proofOn(alive).describe({ pid: 70, group: 80, session: 70 });
  expect(whole['session']).toBe(70);
  expect(isGone(whole, machine({ sessions: [70] }))).toBe(false);
  expect(isGone(whole, machine({ present: [-80], spent: [-80], sessions: [70] }))).toBe(false);
  expect(isGone(whole, machine({ present: [-80], sessions: [71] }))).toBe(false);
  expect(isGone(whole, machine({ sessions: [71] }))).toBe(true);
  expect(isGone(whole, machine({ present: [-80], spent: [-80] }))).toBe(true);
  // A record from before sessions were declared.
  expect(isGone(grouped, machine({ sessions: [70] }))).toBe(true);
});

test('one walk looks for all groups and sessions, and none is made while a process lives', () => {
  const walks: unknown[] = [];
  const areSpent: Machine['areSpent'] = (...asked) => walks.push(asked) > 0;
  const actors = [70, 71].map((pid) => ({ ...grouped, pid, group: pid + 10, session: pid }));
  const present = [-80, -81];
  expect(proofOn(machine({ present }, { areSpent })).provesGone(actors)).toBe(true);
  expect(walks).toEqual([
    [
      [80, 81],
      [70, 71],
    ],
  ]);
  const one = machine({ present: [70], starts: { 70: '5000' } }, { areSpent });
  expect(proofOn(one).provesGone(actors)).toBe(false);
  expect(walks).toHaveLength(1);
});

test('a machine that sees no sessions describes none', () => {
  const mac = proofOn(machine({ present: [70] }, { hasSessions: false }));
  expect(mac.describe({ pid: 70, group: 80, session: 70 })).not.toHaveProperty('session');
});

test('another boot, pid namespace or time namespace is a doubt', () => {
  expect(isGone(actor, machine({}, { boot: 'boot-2' }))).toBe(false);
  expect(isGone(actor, machine({}, { pidNamespace: 'pid:[2]' }))).toBe(false);
  expect(isGone(actor, machine({}, { timeNamespace: 'time:[2]' }))).toBe(false);
  expect(isGone(actor, machine({}, { timeNamespace: '' }))).toBe(false);
});

test('where the boot or the pid namespace is not known nothing is proved', () => {
  for (const unknown of [{ boot: '' }, { pidNamespace: '' }]) {
    const blind = machine({}, unknown);
    expect(isGone(proofOn(blind).describe({ pid: 70 }), blind)).toBe(false);
  }
});

test('a kernel without time namespaces proves as well', () => {
  const old = machine({}, { timeNamespace: '' });
  expect(isGone(proofOn(old).describe({ pid: 70 }), old)).toBe(true);
});

test('all actors must be gone, and an empty list proves nothing', () => {
  const other = { ...actor, pid: 71 };
  const proof = proofOn(machine({ present: [71], starts: { 71: '5000' } }));
  expect(proof.provesGone([actor])).toBe(true);
  expect(proof.provesGone([actor, other])).toBe(false);
  expect(proof.provesGone([])).toBe(false);
});

test('an actor with anything else in it is a doubt', () => {
  const nobody = machine({});
  for (const changes of [
    { pid: 0 },
    { pid: -1 },
    { pid: '70' },
    { pid: 70.5 },
    { pid: 2 ** 32 },
    { group: 1 },
    { group: 0 },
    { group: -5 },
    { group: 'all' },
    { session: 0 },
    { session: -5 },
    { session: '70' },
  ]) {
    expect(isGone({ ...actor, ...changes } as Actor, nobody), JSON.stringify(changes)).toBe(false);
  }
  expect(isGone({}, nobody)).toBe(false);
  expect(isGone({ kind: 'pod', name: 'x' }, nobody)).toBe(false);
});

test('an earlier boot is told from a container beside us, and from macOS host names', () => {
  const rebooted = proofOn(machine({}, { boot: 'boot-2' }));
  expect(rebooted.isOfEarlierBoot(actor)).toBe(true);
  expect(rebooted.isOfEarlierBoot({ ...actor, pidNamespace: 'pid:[2]' })).toBe(false);
  expect(rebooted.isOfEarlierBoot({ ...actor, boot: '' })).toBe(false);
  expect(proofOn(alive).isOfEarlierBoot(actor)).toBe(false);
  const mac = machine({}, { boot: 'darwin:b', bootIsExact: false });
  expect(proofOn(mac).isOfEarlierBoot(actor)).toBe(false);
});

test('the start time is found behind any program name', () => {
  const fields = 'S 1 70 70 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 812345 1000 2000 18446744073';
  for (const name of ['node', 'a b c', 'evil) S 1 2 3 4 5 6', '((()))', ') ', '']) {
    expect(parseStat(Buffer.from(`70 (${name}) ${fields}\n`))?.startTime, name).toBe('812345');
  }
});

test('a line that ends early has no start time', () => {
  const line = '70 (node) S 1 70 70 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 812345';
  expect(parseStat(Buffer.from(`${line} 1`))?.startTime).toBe('812345');
  for (let length = 0; length <= line.length; length += 1) {
    expect(parseStat(Buffer.from(line.slice(0, length)))).toBeUndefined();
  }
  expect(parseStat(Buffer.from(`${line.replace('812345', '-1')} 1`))).toBeUndefined();
});

test('a zombie can do nothing any more, unless threads of it live on', () => {
  const stat = (state: string, threads: number) =>
    parseStat(
      Buffer.from(`70 (node) ${state} 1 60 70 0 -1 0 1 2 3 4 5 6 7 8 20 0 ${threads} 0 812 1`),
    );
  expect(stat('Z', 1)).toEqual({
    startTime: '812',
    group: 60,
    session: 70,
    isSpent: true,
  });
  for (const threads of [0, 2]) expect(stat('Z', threads)?.isSpent).toBe(false);
  for (const state of ['R', 'S', 'D', 'T', 't']) expect(stat(state, 1)?.isSpent).toBe(false);
});

test('a process that is only a zombie is gone, and so is a group of nothing else', () => {
  const starts = { 70: '5000' };
  expect(isGone(actor, machine({ present: [70], starts, spent: [70] }))).toBe(true);
  expect(isGone(grouped, machine({ present: [70, -80], starts, spent: [70] }))).toBe(false);
  expect(isGone(grouped, machine({ present: [70, -80], starts, spent: [70, -80] }))).toBe(true);
  expect(isGone(grouped, machine({ present: [70, -80], starts, spent: [-80] }))).toBe(false);
});

test('a process that was restored elsewhere is described as it is then', () => {
  let now = alive;
  const proof = new ProcessProof(() => now);
  // In another container, with the same number.
  now = machine(
    { present: [70], starts: { 70: '9000' } },
    { boot: 'boot-2', pidNamespace: 'pid:[2]', timeNamespace: 'time:[2]' },
  );
  expect(proof.describe({ pid: 70 })).toEqual({
    pid: 70,
    start: '9000',
    boot: 'boot-2',
    pidNamespace: 'pid:[2]',
    timeNamespace: 'time:[2]',
  });
});

test('a process that was restored elsewhere proves nothing about the place that it comes from', () => {
  for (const moved of [
    { boot: 'boot-2' },
    { pidNamespace: 'pid:[2]' },
    { timeNamespace: 'time:[2]' },
  ]) {
    let present = [70];
    const starts = { 70: '5000' };
    // kill(2) and /proc tell of the place where we are, whatever we remember of it.
    const here = (changes: Partial<Machine> = {}) =>
      machine(
        {},
        {
          ...changes,
          isAbsent: (target) => machine({ present }).isAbsent(target),
          process: (pid) => machine({ starts }).process(pid),
        },
      );
    let now = here();
    const proof = new ProcessProof(() => now);
    expect(proof.provesGone([actor])).toBe(false);
    // There is no such number here, and the process lives on over there.
    present = [];
    now = here(moved);
    expect(proof.provesGone([actor]), JSON.stringify(moved)).toBe(false);
  }
});

test('a /proc that hides processes, or that is not known, does not show everybody', () => {
  const plain = 'proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n';
  const hiding = 'proc /proc proc rw,relatime,hidepid=invisible 0 0\n';
  const others = 'sysfs /sys sysfs rw 0 0\nproc /mnt/proc proc rw,hidepid=2 0 0\n';
  expect(procShowsEverybody(plain)).toBe(true);
  expect(procShowsEverybody(others + plain)).toBe(true);
  for (const option of ['hidepid=1', 'hidepid=2', 'hidepid=ptraceable', 'subset=pid']) {
    expect(procShowsEverybody(`proc /proc proc rw,${option},gid=4 0 0\n`), option).toBe(false);
  }
  // The last mount at a place is the visible one.
  expect(procShowsEverybody(plain + hiding)).toBe(false);
  expect(procShowsEverybody(hiding + plain)).toBe(true);
  for (const unknown of ['', others, 'none /proc tmpfs rw 0 0\n']) {
    expect(procShowsEverybody(unknown), unknown).toBe(false);
  }
});
