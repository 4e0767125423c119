import { createElection, resolveTiming } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';
import { expect, test } from 'vitest';
import { leaseBackend } from '../../packages/incumbent/src/mechanisms/lease/backend.ts';
import {
  decodeLeaseRecord,
  encodeLeaseRecord,
} from '../../packages/incumbent/src/record/lease-record.ts';
import { decodeQueueRecord } from '../../packages/incumbent/src/record/queue-record.ts';
import { Coverage } from '../src/harness/coverage.ts';
import { Heap } from '../src/harness/heap.ts';
import { Host } from '../src/harness/host.ts';
import type { Library } from '../src/harness/library.ts';
import type { Prepare } from '../src/harness/mechanism.ts';
import { Random } from '../src/harness/random.ts';
import { coverageTable, describeFailure, missing } from '../src/harness/report.ts';
import { runSeed } from '../src/harness/run-seed.ts';
import { Trace } from '../src/harness/trace.ts';
import { World } from '../src/harness/world.ts';
import { emptyNode, Tree } from '../src/harness/zookeeper/tree.ts';
import { lease } from '../src/lease/mechanism.ts';
import { drawScenario } from '../src/lease/scenario.ts';
import { LeaseSimulation } from '../src/lease/simulation.ts';
import { lockGround } from '../src/lock/ground.ts';
import { drawLockScenario } from '../src/lock/scenario.ts';
import { mechanisms } from '../src/mechanisms.ts';
import { nodeGround } from '../src/node/ground.ts';
import { queueGround } from '../src/queue/ground.ts';
import { drawQueueScenario } from '../src/queue/scenario.ts';
import { QueueSimulation } from '../src/queue/simulation.ts';

const library: Library = {
  createElection,
  resolveTiming,
  leaseBackend,
  encodeLeaseRecord,
  decodeLeaseRecord,
  zookeeper,
  decodeQueueRecord,
};

/** Of the sources, and not of what is built. */
const simulated: readonly (readonly [string, Prepare])[] = [
  ['lease', (seed, readable) => new LeaseSimulation(library, seed, readable)],
  ['queue', (seed, readable) => new QueueSimulation(queueGround, library, seed, readable)],
  ['lock', (seed, readable) => new QueueSimulation(lockGround, library, seed, readable)],
  ['node', (seed, readable) => new QueueSimulation(nodeGround, library, seed, readable)],
];

test.each(simulated)(
  '%s: a seed takes the same course every time, whether somebody reads along or not',
  async (_name, prepare) => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const first = await runSeed(prepare, seed);
      const second = await runSeed(prepare, seed, { readable: true });
      expect(second.hash).toBe(first.hash);
      expect(second.events).toBe(first.events);
      expect(second.lines.length).toBeGreaterThan(20);
    }
  },
);

test.each(simulated)('%s: different seeds take different courses', async (_name, prepare) => {
  const hashes = new Set<string>();
  for (let seed = 1; seed <= 20; seed += 1) {
    hashes.add((await runSeed(prepare, seed)).hash);
  }
  expect(hashes.size).toBe(20);
});

test('a broken promise is named, with its schedule and how to see it again', async () => {
  const broken: Library = {
    ...library,
    // A candidate that asks is told that nobody holds the seat.
    leaseBackend: (options) =>
      leaseBackend({
        ...options,
        openStore(scope) {
          const store = options.openStore(scope);
          return {
            ...store,
            async read(signal) {
              const reading = await store.read(signal);
              const { record } = reading;
              return record === undefined
                ? reading
                : { ...reading, record: { ...record, holding: undefined } };
            },
          };
        },
      }),
  };
  const prepare: Prepare = (seed, readable) => new LeaseSimulation(broken, seed, readable);
  let seed = 0;
  let result = await runSeed(prepare, seed);
  while (result.violation === undefined && seed < 50) {
    seed += 1;
    result = await runSeed(prepare, seed, { readable: true });
  }
  expect(['belief', 'seat', 'lease', 'margin', 'truth', 'tokens']).toContain(
    result.violation?.guarantee,
  );
  const text = describeFailure(lease, result, 60);
  expect(text).toContain(lease.guarantees[result.violation?.guarantee ?? '']);
  expect(text).toContain(`npm run simulate -- --mechanism lease --from ${seed} --seeds 1 --trace`);
});

test('the scenarios fit the rules of timing', () => {
  for (let seed = 1; seed <= 2_000; seed += 1) {
    for (const { candidate, clock } of drawScenario(seed).hosts) {
      const { drift } = drawScenario(seed);
      expect(() => resolveTiming(candidate.timing)).not.toThrow();
      expect(Math.abs(clock.monotonicRate - 1)).toBeLessThanOrEqual(drift + 1e-12);
      expect(Math.abs(clock.wallRate - 1)).toBeLessThanOrEqual(drift + 1e-12);
    }
  }
});

test.each([
  ['queue', (seed: number) => drawQueueScenario(seed)],
  ['lock', (seed: number) => drawLockScenario(seed, 'hadoop')],
  ['node', (seed: number) => drawLockScenario(seed, 'node')],
] as const)('the scenarios of the %s fit the rules of timing', (_name, draw) => {
  for (let seed = 1; seed <= 2_000; seed += 1) {
    const { hosts, drift, layout, ensemble } = draw(seed);
    for (const { process, clock } of hosts) {
      const { timeoutMs } = process;
      const ms = timeoutMs - timeoutMs / 3 - ensemble.tickMs;
      const limits = {
        sessionTimeoutMs: timeoutMs,
        ...(layout === 'incumbent' ? {} : { maxBelief: { ms, because: '' } }),
      };
      expect(() => resolveTiming(process.timing, limits)).not.toThrow();
      expect(Math.abs(clock.monotonicRate - 1)).toBeLessThanOrEqual(drift + 1e-12);
      expect(Math.abs(clock.wallRate - 1)).toBeLessThanOrEqual(drift + 1e-12);
    }
  }
});

test('some sessions hold several places, and some clients spell one path in several ways', () => {
  const scenarios = Array.from({ length: 400 }, (_, seed) => drawQueueScenario(seed));
  expect(scenarios.some(({ elections }) => elections.length >= 4)).toBe(true);
  let spelledApart = 0;
  for (const { hosts, parent, spellings } of scenarios) {
    const all = [...hosts.map(({ process }) => process.spelling), ...Object.values(spellings)];
    for (const { chroot, root } of all) {
      expect(`${chroot}${root}`.replace(/\/$/, '')).toBe(parent);
    }
    if (new Set(hosts.map(({ process }) => process.spelling.root)).size > 1) spelledApart += 1;
  }
  expect(spelledApart).toBeGreaterThan(50);
});

test('some candidates of a lock poll, some share a client, and some do not wait for the one before', () => {
  const scenarios = Array.from({ length: 500 }, (_, index) =>
    drawLockScenario(index + 1, 'hadoop'),
  );
  const plans = scenarios.flatMap(({ hosts }) => hosts.map(({ process }) => process));
  expect(new Set(scenarios.map(({ layout }) => layout))).toEqual(new Set(['hadoop']));
  expect(plans.filter(({ pollMs }) => pollMs !== undefined).length).toBeGreaterThan(100);
  expect(plans.filter(({ handles }) => handles === 2).length).toBeGreaterThan(80);
  expect(scenarios.filter(({ waits }) => !waits).length).toBeGreaterThan(15);
  expect(scenarios.filter(({ strangers }) => strangers).length).toBeGreaterThan(100);
});

test('a place of the lock is known by the number of its making', () => {
  const { placeOf, pathOf, placesIn } = lockGround;
  const lock = '/incumbent/a/ActiveStandbyElectorLock';
  const made = (czxid: bigint) => placeOf(lock, emptyNode(czxid, 7n, null));
  expect(made(255n)).toBe(`${lock}@0xff`);
  expect(made(256n)).not.toBe(made(255n));
  expect(pathOf(made(255n))).toBe(lock);
  const tree = new Tree(new Map([[lock, emptyNode(255n, 7n, null)]]));
  expect(placesIn(tree, '/incumbent/a')).toEqual([made(255n)]);
  expect(placesIn(new Tree(), '/incumbent/a')).toEqual([]);
});

test('of an election that is one node, neither the record nor a badge is a place', () => {
  const { placeOf, placesIn, recordOf, placeIn } = nodeGround;
  const record = recordOf('/incumbent/a');
  expect(record).toBe('/incumbent/a.incumbent');
  const node = emptyNode(255n, 7n, null);
  expect(placeOf('/incumbent/a', node)).toBe('/incumbent/a@0xff');
  expect(placeOf(record, node)).toBe(record);
  expect(placeOf(`${record}/guid`, node)).toBe(`${record}/guid`);
  expect(placesIn(new Tree(new Map([['/incumbent/a', node]])), record)).toEqual([
    '/incumbent/a@0xff',
  ]);
  expect(placeIn(record, '/a@0xff')).toBe('/incumbent/a@0xff');
});

test('the random numbers of a seed never change: an old seed still means what it meant', () => {
  const random = new Random(42);
  expect([0, 0, 0, 0].map(() => random.below(1_000))).toEqual([660, 200, 89, 882]);
  const other = new Random(42, 1);
  expect(other.next()).not.toBe(new Random(42).next());
  const even = Array.from({ length: 10_000 }, () => random.next());
  expect(even.reduce((sum, x) => sum + x, 0) / even.length).toBeCloseTo(0.5, 1);
  expect(Math.min(...even)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...even)).toBeLessThan(1);
});

test('the heap gives the smallest first, and equals in the order in which they came', () => {
  const heap = new Heap<string>();
  for (const [key, value] of [
    [3, 'c'],
    [1, 'a1'],
    [2, 'b'],
    [1, 'a2'],
    [1, 'a3'],
    [0, 'first'],
  ] as const) {
    heap.push(key, value);
  }
  expect(heap.firstKey).toBe(0);
  expect(Array.from({ length: 7 }, () => heap.pop())).toEqual([
    'first',
    'a1',
    'a2',
    'a3',
    'b',
    'c',
    undefined,
  ]);
  expect(heap.firstKey).toBe(Number.POSITIVE_INFINITY);
});

function setUpHost(errors: Partial<ConstructorParameters<typeof Host>[2]> = {}) {
  const world = new World(new Random(1), new Trace(false));
  const host = new Host(
    world,
    'n1',
    {
      monotonicRate: 1,
      wallRate: 1,
      monotonicStartMs: 1_000,
      wallStartMs: 5_000,
      coarseTimers: false,
      timerLagMs: 0,
      ...errors,
    },
    new Random(2),
  );
  return { world, host, owner: { alive: true, name: 'p' } };
}

test('a host counts by its own rate', async () => {
  const { world, host, owner } = setUpHost({ monotonicRate: 0.5, wallRate: 2 });
  const fired: number[] = [];
  host.setTimer(owner, () => fired.push(world.nowMs), 100);
  await world.run(1_000);
  expect(fired[0]).toBeCloseTo(200, 3);
  expect(host.monotonicMs()).toBeCloseTo(1_500, 6);
  expect(host.wallMs()).toBeCloseTo(7_000, 6);
});

test('a stalled host runs nothing, and then everything; its clocks go on', async () => {
  const { world, host, owner } = setUpHost();
  const ran: string[] = [];
  host.setTimer(owner, () => ran.push('timer'), 100);
  host.stall(500);
  world.at(200, () => host.deliver(owner, () => ran.push('reply')));
  await world.run(499);
  expect(ran).toEqual([]);
  await world.run(501);
  expect(ran.sort()).toEqual(['reply', 'timer']);
  expect(host.monotonicMs()).toBeCloseTo(1_501, 6);
});

test('a suspended host stands still by its monotonic clock only', async () => {
  const { world, host, owner } = setUpHost();
  const fired: number[] = [];
  host.setTimer(owner, () => fired.push(world.nowMs), 100);
  await world.run(50);
  host.suspend(1_000);
  await world.run(2_000);
  expect(fired[0]).toBeCloseTo(1_100, 3);
  expect(host.monotonicMs()).toBeCloseTo(1_000 + 1_000, 6);
  expect(host.wallMs()).toBeCloseTo(5_000 + 2_000, 6);
});

test('nothing of a dead process runs', async () => {
  const { world, host } = setUpHost();
  const owner = { alive: true, name: 'p' };
  const ran: string[] = [];
  host.setTimer(owner, () => ran.push('timer'), 100);
  owner.alive = false;
  host.deliver(owner, () => ran.push('reply'));
  await world.run(1_000);
  expect(ran).toEqual([]);
});

test.each(mechanisms)(
  '$name: events that no seed has contained are missing, by name',
  (mechanism) => {
    const coverage = new Coverage();
    expect(missing(mechanism, coverage)).toEqual(mechanism.required);
    for (const name of mechanism.required) coverage.count(name);
    expect(missing(mechanism, coverage)).toEqual([]);
    expect(coverageTable(mechanism, coverage)).toContain('crashes');
  },
);

test.each(mechanisms)(
  '$name: every variant has a name of its own, edits of what is loaded, and guarantees that it breaks',
  ({ variants, guarantees, packages }) => {
    expect(new Set(variants.map(({ name }) => name)).size).toBe(variants.length);
    for (const { edits, breaks } of variants) {
      expect(edits.length).toBeGreaterThan(0);
      for (const name of breaks) expect(guarantees).toHaveProperty(name);
      for (const edit of edits) {
        expect(edit.find).not.toBe(edit.replace);
        expect(packages).toContain(edit.package ?? packages[0]);
      }
    }
  },
);

test('every mechanism has a name of its own', () => {
  expect(new Set(mechanisms.map(({ name }) => name)).size).toBe(mechanisms.length);
});
