import fc from 'fast-check';
import type { Timing } from 'incumbent';
import {
  createElection,
  deriveTiming,
  RecordDamagedError,
  StoreUnavailableError,
  timingViolations,
} from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, test } from 'vitest';
import { electionFilesFindings } from '../src/doctor/file-store.ts';
import { fileSystemFindings, formatBytes, mountedType } from '../src/doctor/file-system.ts';
import { distributionOf, sample } from '../src/doctor/measure.ts';
import { marginFindings, timingFindings } from '../src/doctor/rules.ts';
import { altered } from './support/altered.ts';
import { invoke, jsonLines, Running } from './support/invoke.ts';

const quick = ['--watch-loop', '20ms', '--samples', '3'];

test('every rule from P1 to P9 is shown with its numbers', () => {
  const findings = timingFindings(deriveTiming());
  const rules = findings.filter(({ check }) => /^P\d$/.test(check));
  expect(rules.map(({ check }) => check)).toEqual(Array.from({ length: 9 }, (_, i) => `P${i + 1}`));
  expect(rules.every(({ level }) => level === 'ok')).toBe(true);
  const message = (check: string) => rules.find((rule) => rule.check === check)?.message;
  expect(findings[0]?.message).toContain(
    'lease D 15s, belief H 12s, stop margin G 2s, renew every R 3s, operation timeout X 2.5s, ' +
      'kill margin K 500ms',
  );
  expect(message('P1')).toContain('12s·1.105 = 13.26s ≤ 15s');
  expect(message('P2')).toContain('2s < 12s − 3s = 9s');
  expect(message('P3')).toContain('3s + 2·2.5s + 750ms = 8.75s ≤ 10s');
  expect(message('P7')).toContain('a program has 1.5s to stop');
});

test('15/11/9 breaks P2 and P3, and the numbers say why (KB1)', () => {
  const findings = timingFindings(deriveTiming({ lease: '15s', belief: '11s', renewEvery: '9s' }));
  const broken = findings.filter(({ level }) => level === 'broken');
  expect(broken.map(({ check }) => check)).toEqual(['P2', 'P3']);
  expect(broken[0]?.message).toContain('2s is not between 0 and 11s − 9s = 2s: work would be');
  expect(broken[1]?.message).toContain('9s + 2·2.5s + 2.25s = 16.25s is more than 9s');
});

test('a finding about a broken rule names its consequence, not its purpose', () => {
  const [p1] = timingFindings(deriveTiming({ lease: '15s', belief: '14s' })).filter(
    ({ level }) => level === 'broken',
  );
  expect(p1?.message).toContain('is more than 15s: with clocks of different rates an old leader');
  expect(p1?.message).not.toContain('so that');
});

test('rules that always hold are shown with --verbose, broken ones again at the end', async () => {
  const timingFlags = ['--lease', '15s', '--belief', '11s', '--renew-every', '9s'];
  const { stdout } = await invoke(['doctor', ...quick, ...timingFlags]);
  expect(stdout).not.toMatch(/ P[4569] /);
  expect(stdout).toMatch(/\n\nbroken +P2 .*\nbroken +P3 .*\n2 broken, 0 warnings\n$/);
  expect(stdout).not.toMatch(/^ok +rules/m);
  const verbose = await invoke(['doctor', '--verbose', ...quick, ...timingFlags]);
  expect(verbose.stdout.match(/ P[4569] /g)).toHaveLength(4);
});

test('a rule is broken here exactly when the library refuses the timing', () => {
  const ms = fc.integer({ min: 0, max: 60_000 });
  fc.assert(
    fc.property(
      fc.record(
        { lease: ms, belief: ms, stopMargin: ms, renewEvery: ms, operationTimeout: ms },
        { requiredKeys: [] },
      ),
      (options) => {
        const timing = deriveTiming(options);
        const broken = timingFindings(timing).filter(
          ({ check, level }) => level === 'broken' && check !== 'P7',
        );
        expect(broken).toHaveLength(timingViolations(timing).length);
      },
    ),
  );
});

test('a lease too short for `run` is a warning', () => {
  const warnings = timingFindings(deriveTiming({ lease: '1s' })).filter(
    ({ level }) => level === 'warn',
  );
  expect(warnings).toMatchObject([{ message: expect.stringContaining('too short for') }]);
});

const timing: Timing = deriveTiming();
const measured = (p99Ms: number, maxMs: number = p99Ms) => ({
  samples: 100,
  medianMs: 1,
  p99Ms,
  maxMs,
});

test.each([
  ['well within X', measured(1_250), 'ok'],
  ['a single slow one', measured(10, 2_600), 'warn'],
  ['more than half of X', measured(1_251), 'warn'],
  ['more than the operation timeout X', measured(2_501), 'broken'],
])('latency: %s', (_what, writes, level) => {
  expect(marginFindings(timing, { writes })).toMatchObject([{ check: 'writes-margin', level }]);
});

test.each([
  [1_000, 'ok'],
  [1_001, 'warn'],
  [2_001, 'broken'],
])('a loop that is %i ms late: %s', (ms, level) => {
  const [finding] = marginFindings(timing, { loopDelay: measured(ms) });
  expect(finding).toMatchObject({ check: 'loop-margin', level });
});

test('a timing without measurements is not judged', () => {
  expect(marginFindings(timing, {})).toEqual([]);
});

test('percentiles are values that were measured', () => {
  expect(distributionOf([3, 1, 2.00049])).toEqual({ samples: 3, medianMs: 2, maxMs: 3 });
  const hundred = Array.from({ length: 100 }, (_, i) => i + 1);
  expect(distributionOf(hundred)).toMatchObject({ medianMs: 50, p99Ms: 99, maxMs: 100 });
});

test('below 20 samples there is no p99, and the largest one is judged', () => {
  const some = (count: number) => distributionOf(Array.from({ length: count }, (_, i) => i));
  expect(some(19)).not.toHaveProperty('p99Ms');
  expect(some(20)).toHaveProperty('p99Ms', 19);
  const [finding] = marginFindings(timing, { writes: distributionOf([1, 2_501]) });
  expect(finding).toMatchObject({ level: 'broken', data: { maxMs: 2_501 } });
  expect(finding?.message).toMatch(/^max 2.5s is more than the operation timeout X/);
});

test('sampling stops when it has taken long enough', async () => {
  let runs = 0;
  const count = async () => {
    runs += 1;
  };
  expect(await sample(5, Number.POSITIVE_INFINITY, count)).toMatchObject({ samples: 5 });
  expect(await sample(5, -1, count)).toMatchObject({ samples: 1 });
  expect(runs).toBe(6);
});

test('finds the file system by the longest mount point', () => {
  const mounts = [
    '26 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw',
    '27 26 0:5 / /var/lib rw - xfs /dev/sdb rw',
    '28 26 0:6 / /var/library rw - btrfs /dev/sdc rw',
    '29 26 0:7 / /with\\040space rw - tmpfs tmpfs rw',
    '30 27 0:8 / /var/lib rw master:3 - zfs pool rw',
    '',
  ].join('\n');
  expect(mountedType(mounts, '/home/ann')).toBe('ext4');
  expect(mountedType(mounts, '/var/lib')).toBe('zfs');
  expect(mountedType(mounts, '/var/library/x')).toBe('btrfs');
  expect(mountedType(mounts, '/with space/x')).toBe('tmpfs');
  expect(mountedType('', '/')).toBeUndefined();
});

test('a full disk, a file system that forgets and the inside of a container are warnings', () => {
  const facts = { type: 'ext4', freeBytes: 2 ** 40, freeFiles: 1e6 };
  const warned = (changes: Partial<typeof facts> | { freeFiles: undefined }) =>
    fileSystemFindings({ ...facts, ...changes })
      .filter(({ level }) => level === 'warn')
      .map(({ check }) => check);
  expect(warned({})).toEqual([]);
  expect(warned({ freeFiles: undefined })).toEqual([]);
  expect(warned({ freeBytes: 1_000 })).toEqual(['free-space']);
  expect(warned({ freeFiles: 3 })).toEqual(['free-space']);
  expect(warned({ type: 'tmpfs' })).toEqual(['file-system']);
  expect(warned({ type: 'overlay' })).toEqual(['file-system']);
});

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [79 * 2 ** 30, '79 GiB'],
])('%d bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test('a damaged newest record is broken, older and foreign ones are warnings', () => {
  const files = { path: '/s/x', exists: true, records: 9, temporaries: 0 };
  const error = new RecordDamagedError('/s/x/9', 'no JSON');
  const levels = (changes: object) =>
    electionFilesFindings({ ...files, foreign: [], damaged: [], ...changes }).map(
      ({ level }) => level,
    );
  expect(levels({})).toEqual(['ok']);
  expect(levels({ exists: false })).toEqual(['note']);
  expect(levels({ damaged: [{ isNewest: true, error }] })).toEqual(['broken']);
  expect(levels({ damaged: [{ isNewest: false, error }] })).toEqual(['warn']);
  expect(levels({ foreign: ['a'] })).toEqual(['warn']);
  const many = { ...files, foreign: Array.from({ length: 12 }, (_, i) => `f${i}`), damaged: [] };
  expect(electionFilesFindings(many)[0]?.message).toContain('"f9" and 2 more');
});

test('measures a store, leaves its election alone and says what it leaves behind', async () => {
  const backend = memory();
  const { code, stdout, stderr } = await invoke(['doctor', '-e', 'x', ...quick], { backend });
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^note +reads +3 times: median \S+, max \S+$/m);
  expect(stdout).toMatch(/^note +writes +3 times/m);
  expect(stdout).toMatch(/^note +election +"x" is vacant$/m);
  expect(stdout).toMatch(/^note +clock +not applicable/m);
  expect(stdout).toMatch(/^note +scratch +the record of the election "incumbent-doctor".*stays/m);
  const looked = createElection({ name: 'x', backend });
  expect(await looked.history()).toEqual([]);
});

test('stands under three headings, and what holds is summed up', async () => {
  const { stdout } = await invoke(['doctor', ...quick]);
  const headings = stdout.split('\n').filter((line) => /^[a-z]+( [a-z]+)?$/.test(line));
  expect(headings).toEqual(['the store', 'measured', 'the timing']);
  expect(stdout).toMatch(/^ok +rules +all hold: .*--verbose shows each rule/m);
  expect(stdout).not.toMatch(/^ok +(P\d|\S+-margin) /m);
  const verbose = (await invoke(['doctor', '--verbose', ...quick])).stdout;
  expect(verbose.match(/^ok +P\d /gm)).toHaveLength(9);
  expect(verbose).toMatch(/^ok +writes-margin /m);
  expect(verbose).not.toMatch(/^ok +rules/m);
  // Programs get every finding, and no heading.
  const found = jsonLines((await invoke(['doctor', '--json', ...quick])).stdout);
  const checks = found.map(({ check }) => check);
  expect(checks).toEqual(expect.arrayContaining(['P1', 'P3', 'writes-margin', 'result']));
  expect(checks).not.toContain('rules');
});

test('on a terminal a long message goes on below itself', async () => {
  const { stdout } = await invoke(['doctor', ...quick], { terminal: 60, env: { NO_COLOR: '1' } });
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(60);
  expect(stdout).toMatch(/^note {4}timing {9}lease D 15s, .*\n {23}\S/m);
  // Elsewhere one finding is one line: programs cut and search it.
  expect((await invoke(['doctor', ...quick])).stdout).not.toMatch(/^ {23}/m);
});

test('a timing that cannot be kept ends with 1', async () => {
  const timingFlags = ['--lease', '15s', '--belief', '11s', '--renew-every', '9s'];
  const { code, stdout } = await invoke(['doctor', '--json', ...quick, ...timingFlags]);
  expect(code).toBe(1);
  const lines = jsonLines(stdout);
  expect(lines.filter(({ level }) => level === 'broken').map(({ check }) => check)).toEqual([
    'P2',
    'P3',
    'result',
  ]);
  expect(lines.at(-1)).toMatchObject({ check: 'result', data: { broken: 2 } });
  expect(lines[0]).toMatchObject({ check: 'store', data: { url: 'test:', origin: '--store' } });
});

test('a store that cannot be used ends with 69, and the timing is judged all the same', async () => {
  const backend = altered({
    init: () => Promise.reject(new StoreUnavailableError('the disk is full')),
  });
  const { code, stdout } = await invoke(['doctor', ...quick], { backend });
  expect(code).toBe(69);
  expect(stdout).toMatch(/^broken +store +the disk is full$/m);
  expect(stdout).toMatch(/^ok +rules +all hold/m);
  expect(stdout).toMatch(/^1 broken, 0 warnings$/m);
});

test('a damaged record of the election is broken, and the store is not', async () => {
  const inner = memory();
  const backend = altered(
    { inspect: () => Promise.reject(new RecordDamagedError('/s/x/9', 'no JSON')) },
    { of: inner, election: 'x' },
  );
  const { code, stdout } = await invoke(['doctor', '-e', 'x', ...quick], { backend });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^broken +election +\/s\/x\/9 is not an election record/m);
  expect(stdout).toMatch(/^note +reads +3 times/m);
});

test('an interruption ends it, with the measuring term given back', async () => {
  const backend = memory();
  const doctor = new Running(['doctor', '--watch-loop', '1h', '--samples', '1'], { backend });
  await doctor.printed(/clock/);
  doctor.signal('SIGINT');
  expect((await doctor.result).code).toBe(130);
  const scratch = createElection({ name: 'incumbent-doctor', backend });
  expect((await scratch.leader()).state).toBe('vacant');
});
