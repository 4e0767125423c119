// Records of slots that are set back or damaged by hand.
import { RecordDamagedError } from 'incumbent';
import { leaseBackend } from 'incumbent/backend';
import type { SimulatedConnection } from 'incumbent/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decodeHead, decodeSlot } from '../src/codec.ts';
import type { SlotState } from '../src/slot.ts';
import { isLive } from '../src/slot.ts';
import { Group } from './group.ts';

let group: Group;
let ways: Map<string, SimulatedConnection>;
/** The records that all but one process cannot read, by their names, and its id. */
const unreadable = new Map<string, string>();

beforeEach(async () => {
  group = new Group();
  ways = new Map();
  unreadable.clear();
  for (const id of ['a', 'b', 'c']) {
    const way = group.store.connect();
    ways.set(id, way);
    group.join(id, { backend: readerOf(id, way) });
    // The first one leads.
    await group.clock.advance('2s');
  }
  await group.clock.advance('20s');
  expect(group.counts()).toEqual({ a: 4, b: 4, c: 4 });
  expect(leader()).toBe('a');
});
afterEach(() => group.end());

/** A store that tells no version of a record that cannot be read. */
function readerOf(id: string, way: SimulatedConnection) {
  return leaseBackend<undefined>({
    ...{ kind: 'simulated', description: 'a simulated store', guard: () => undefined },
    openStore({ election }) {
      const store = way.open(election);
      return {
        ...store,
        async read(signal) {
          const reading = await store.read(signal);
          if ((unreadable.get(election) ?? id) === id) return reading;
          throw new RecordDamagedError(election, 'it looks so from here');
        },
      };
    },
  });
}

const leader = () => group.store.record('queues')?.holding?.candidate.id;

function slotState(number: number): SlotState {
  const { shards = '' } = group.store.record(`queues/${number}`) ?? {};
  return decodeSlot(Buffer.from(shards, 'base64'), 'the slot');
}

/** By slot: the tokens that the record of the election has. */
function floors(): ReadonlyMap<number, bigint> {
  const { shards = '' } = group.store.record('queues') ?? {};
  return decodeHead(Buffer.from(shards, 'base64'), 'the head').floors;
}

/** Cuts the coordinator off, and stops right before b has won. */
async function beforeTheNext(): Promise<string> {
  const way = (id: string) => ways.get(id) as SimulatedConnection;
  way('a').outage = 'silent';
  for (let steps = 0; steps < 1_000; steps += 1) {
    for (const id of ['b', 'c']) {
      way(id).hold('swap');
      for (const held of [...way(id).held]) {
        const isWin = held.election === 'queues' && held.next?.holding?.candidate.id === id;
        if (!isWin) held.answer();
        else if (id === 'b') return id;
        else held.fail();
      }
    }
    await group.clock.advance('50ms');
  }
  throw new Error('no member has won');
}

test('a slot that is set back to before its last grant, as another coordinator begins, frees no shard', async () => {
  const next = await beforeTheNext();
  const victim = next === 'b' ? 'c' : 'b';
  const number = group.slotOf(victim);
  const lost = slotState(number).entries.filter(isLive);
  expect(lost).toHaveLength(4);
  // The slot of before has not forgotten the shards yet.
  const left = lost.map((entry) => ({ ...entry, token: 1n, state: 'clean' as const }));
  group.putSlot(group.slotOf(next), (slot) => ({
    ...slot,
    changes: slot.changes + 1n,
    entries: [...slot.entries, ...left].sort((x, y) => x.shard - y.shard),
  }));
  group.putSlot(number, (slot) => ({
    ...slot,
    changes: slot.changes - 1n,
    highest: slot.highest - 1n,
    presence: { ...slot.presence, leaving: true },
    entries: [],
  }));
  // Its holder cannot find out.
  ways.get(victim)!.outage = 'silent';
  ways.get(next)!.release('swap');
  ways.get(victim)!.release('swap');
  const last = (shard: number) => group.terms.findLast(({ term }) => term.shard === shard)!;
  const before = lost.map(({ shard }) => last(shard));
  for (let steps = 0; steps < 120; steps += 1) {
    await group.clock.advance('250ms');
    expect(group.ownedTwice()).toEqual([]);
  }
  await group.clock.advance('30s');
  for (const { id, term } of before) {
    expect(id).toBe(victim);
    expect(last(term.shard).id).toBe(next);
    expect(last(term.shard).term.token).toBeGreaterThan(term.token);
  }
  expect(group.members.get(next)?.owned()).toHaveLength(12);
});

test('a slot is given a token only after the record of the election has it', async () => {
  const way = ways.get('a')!;
  way.hold('swap');
  const b = group.members.get('b')!;
  b.term(b.owned()[0]!)?.resign();
  let noted = 0;
  for (let steps = 0; steps < 40; steps += 1) {
    await group.clock.advance('50ms');
    for (const held of [...way.held]) {
      const { shards } = held.next ?? {};
      const isSlot = /[/][0-9]+$/.test(held.election) && shards !== undefined;
      const before = group.store.record(held.election)?.shards;
      if (isSlot && before !== undefined) {
        const [was, will] = [before, shards].map((text) =>
          decodeSlot(Buffer.from(text, 'base64'), held.election),
        );
        const slot = Number(held.election.split('/')[1]);
        if (will!.highest > was!.highest) {
          expect(floors().get(slot)).toBeGreaterThanOrEqual(will!.highest);
          noted += 1;
        }
      }
      held.answer();
    }
  }
  way.release('swap');
  expect(noted).toBeGreaterThan(0);
});

test('a slot that cannot be read stops its own shards alone, and its error names them', async () => {
  const number = group.slotOf('b');
  const owned = [...group.members.get('b')!.owned()].sort((x, y) => x - y);
  const { length: before } = group.terms;
  group.store.put(`queues/${number}`, {
    ...group.store.record(`queues/${number}`)!,
    shards: '////',
  });
  group.join('d');
  await group.clock.advance('4s');
  const a = group.members.get('a')!;
  const moved = a.owned()[0]!;
  a.term(moved)!.resign();
  await group.clock.advance('6s');
  // Meanwhile shards of the others move.
  expect(group.terms.slice(before).map(({ term }) => term.shard)).toEqual([moved]);
  expect(group.terms.slice(before).some(({ term }) => owned.includes(term.shard))).toBe(false);
  expect(group.troubles.join()).toContain(`"queues/${number}" cannot be read`);
  expect(group.troubles.join()).toContain(`(${owned.join(', ')})`);
  for (let steps = 0; steps < 120; steps += 1) {
    await group.clock.advance('250ms');
    expect(group.ownedTwice()).toEqual([]);
  }
  // The record was replaced, and its process has joined again.
  expect(group.counts()).toEqual({ a: 3, b: 3, c: 3, d: 3 });
  expect(() => slotState(number)).not.toThrow();
});

test('a coordinator that has never read a damaged slot grants no shard that may be in it', async () => {
  const next = await beforeTheNext();
  const victim = next === 'b' ? 'c' : 'b';
  const number = group.slotOf(victim);
  const owned = group.members.get(victim)!.owned();
  group.store.put(`queues/${number}`, {
    ...group.store.record(`queues/${number}`)!,
    shards: '////',
  });
  ways.get(victim)!.outage = 'silent';
  ways.get(next)!.release('swap');
  ways.get(victim)!.release('swap');
  const { length: before } = group.terms;
  await group.clock.advance('10s');
  group.join('d');
  for (let steps = 0; steps < 200; steps += 1) {
    await group.clock.advance('250ms');
    expect(group.ownedTwice()).toEqual([]);
    if (steps > 8) continue;
    const begun = group.terms.slice(before).map(({ term }) => term.shard);
    expect(begun.some((shard) => owned.includes(shard))).toBe(false);
  }
  expect(group.counts()).toMatchObject({ [next]: 6, d: 6 });
});

test('a shard that two slots show after one was set back is granted to nobody for a lease, nor any other', async () => {
  const [b, c] = [group.members.get('b')!, group.members.get('c')!];
  const number = group.slotOf('b');
  const old = slotState(number);
  const shard = b.owned()[0]!;
  b.term(shard)!.resign();
  await group.clock.advance('5s');
  expect(b.owned()).not.toContain(shard);
  const { changes, highest } = slotState(number);
  expect(highest).toBe(old.highest);
  // Later changes have reached the old number.
  group.putSlot(number, () => ({ ...old, changes: changes + 1n }));
  await group.clock.advance('1s');
  const other = c.owned().find((each) => each !== shard)!;
  const { length: before } = group.terms;
  c.term(other)!.resign();
  for (let steps = 0; steps < 12; steps += 1) {
    await group.clock.advance('1s');
    expect(group.ownedTwice()).toEqual([]);
  }
  expect(group.terms).toHaveLength(before);
  await group.clock.advance('60s');
  expect(group.terms.slice(before).some(({ term }) => term.shard === other)).toBe(true);
  expect(group.counts()).toEqual({ a: 4, b: 4, c: 4 });
});

test('a slot that is set back to before its last grant is found out by the coordinator, whatever changed since', async () => {
  const [b, c] = [group.members.get('b')!, group.members.get('c')!];
  const number = group.slotOf('b');
  const old = slotState(number);
  // It is given another one.
  const given = c.owned()[0]!;
  c.term(given)!.resign();
  b.term(b.owned()[0]!)!.resign();
  await group.clock.advance('20s');
  const { changes, highest } = slotState(number);
  expect(highest).toBeGreaterThan(old.highest);
  group.putSlot(number, () => ({ ...old, entries: [], changes: changes + 1n }));
  ways.get('b')!.outage = 'silent';
  const { length: before } = group.terms;
  for (let steps = 0; steps < 14; steps += 1) {
    await group.clock.advance('1s');
    expect(group.ownedTwice()).toEqual([]);
  }
  expect(group.terms).toHaveLength(before);
  await group.clock.advance('60s');
  expect(group.counts()).toMatchObject({ a: 6, c: 6 });
});

describe('a slot without a version that can be read by its holder alone', () => {
  async function expectNoMoves(victim: string): Promise<void> {
    const owned = [...group.members.get(victim)!.owned()];
    for (let steps = 0; steps < 200; steps += 1) {
      await group.clock.advance('250ms');
      expect(group.ownedTwice()).toEqual([]);
    }
    expect(group.members.get(victim)!.owned()).toEqual(owned);
    // The other shards go on.
    const { length: before } = group.terms;
    const other = [...group.members].find(([id]) => id !== victim && id !== leader())![0];
    const moved = group.members.get(other)!.owned()[0]!;
    group.members.get(other)!.term(moved)!.resign();
    await group.clock.advance('5s');
    expect(group.terms.slice(before).map(({ term }) => term.shard)).toEqual([moved]);
  }

  test('frees no shard, as long as it stands', async () => {
    unreadable.set(`queues/${group.slotOf('b')}`, 'b');
    await expectNoMoves('b');
  });

  test('frees none for a coordinator that has never read it', async () => {
    const next = await beforeTheNext();
    const victim = next === 'b' ? 'c' : 'b';
    unreadable.set(`queues/${group.slotOf(victim)}`, victim);
    ways.get('a')!.outage = 'none';
    for (const way of ways.values()) way.release('swap');
    group.join('d');
    await group.clock.advance('30s');
    expect(leader()).toBe(next);
    await expectNoMoves(victim);
  });
});

test('a slot of a newer release stops its own shards alone, and a coordinator that begins goes on', async () => {
  const next = await beforeTheNext();
  const victim = next === 'b' ? 'c' : 'b';
  const name = `queues/${group.slotOf(victim)}`;
  const owned = [...group.members.get(victim)!.owned()];
  const { shards = '', ...rest } = group.store.record(name)!;
  const newer = Buffer.from(shards, 'base64');
  // Its first field is the format.
  newer[1] = 2;
  ways.get(victim)!.outage = 'silent';
  const put = () => group.store.put(name, { ...rest, shards: newer.toString('base64') });
  put();
  for (const id of [next, victim]) ways.get(id)!.release('swap');
  const { length: before } = group.terms;
  for (let steps = 0; steps < 40; steps += 1) {
    await group.clock.advance('1s');
    put();
    expect(group.ownedTwice()).toEqual([]);
  }
  expect(leader()).toBe(next);
  const begun = group.terms.slice(before).map(({ term }) => term.shard);
  // Those of the former coordinator have another owner.
  expect(begun).toHaveLength(4);
  expect(begun.some((shard) => owned.includes(shard))).toBe(false);
  expect(group.troubles.filter((text) => text.startsWith('reading a slot'))).toEqual([
    expect.stringContaining(`the slot "${name}" is of a newer release`),
  ]);
  // An operator deletes it after all.
  group.store.put(name, undefined);
  await group.clock.advance('60s');
  expect(group.counts()).toMatchObject({ [next]: 12 });
});
