// Records of slots that are set back or damaged by hand.
import type { SimulatedConnection } from 'incumbent/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeHead, decodeSlot } from '../src/codec.ts';
import type { SlotState } from '../src/slot.ts';
import { isLive } from '../src/slot.ts';
import { Group } from './group.ts';

let group: Group;
let ways: Map<string, SimulatedConnection>;

beforeEach(async () => {
  group = new Group();
  ways = new Map();
  for (const id of ['a', 'b', 'c']) {
    const way = group.store.connect();
    ways.set(id, way);
    group.join(id, { backend: way.backend });
    // The first one leads.
    await group.clock.advance('2s');
  }
  await group.clock.advance('20s');
  expect(group.counts()).toEqual({ a: 4, b: 4, c: 4 });
  expect(leader()).toBe('a');
});
afterEach(() => group.end());

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

/** Cuts the coordinator off, and stops right before another member has won. */
async function beforeTheNext(): Promise<string> {
  const way = (id: string) => ways.get(id) as SimulatedConnection;
  way('a').outage = 'silent';
  for (let steps = 0; steps < 1_000; steps += 1) {
    for (const id of ['b', 'c']) {
      way(id).hold('swap');
      for (const held of [...way(id).held]) {
        if (held.election === 'queues' && held.next?.holding?.candidate.id === id) return id;
        held.answer();
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
  const lost = slotState(number).entries.find(isLive);
  expect(lost).toBeDefined();
  const { shard } = lost!;
  // The slot of before has not forgotten the shard yet.
  group.putSlot(group.slotOf(next), (slot) => ({
    ...slot,
    changes: slot.changes + 1n,
    entries: [...slot.entries, { shard, token: 1n, state: 'clean' as const, unfenced: [] }].sort(
      (x, y) => x.shard - y.shard,
    ),
  }));
  group.putSlot(number, (slot) => ({
    ...slot,
    changes: slot.changes - 1n,
    highest: slot.highest - 1n,
    presence: { ...slot.presence, leaving: true },
    entries: slot.entries.filter((entry) => entry.shard !== shard),
  }));
  // Its holder cannot find out.
  ways.get(victim)!.outage = 'silent';
  ways.get(victim)!.release('swap');
  ways.get(next)!.release('swap');
  const before = group.terms.findLast(({ term }) => term.shard === shard)!;
  for (let steps = 0; steps < 120; steps += 1) {
    await group.clock.advance('250ms');
    expect(group.ownedTwice()).toEqual([]);
  }
  await group.clock.advance('30s');
  const after = group.terms.findLast(({ term }) => term.shard === shard)!;
  expect(after.id).toBe(next);
  expect(after.term.token).toBeGreaterThan(before.term.token);
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
  ways.get(victim)!.release('swap');
  ways.get(next)!.release('swap');
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
