import type { Variant } from '../harness/mechanism.ts';
import type { guarantees } from './guarantees.ts';

// Two coordinators that act at once are rarer here than in packages/shards/test/walks.test.ts, which finds
// one that grants before it has sealed, and one that seals over a higher seal.
export const variants: readonly Variant<keyof typeof guarantees>[] = [
  {
    name: 'shards: a coordinator forgets a write that had no answer',
    edits: [
      {
        file: 'seen-slot.js',
        find: 'sent: this.sent === undefined ? [] : [this.sent.state]',
        replace: 'sent: []',
      },
      {
        file: 'coordinator.js',
        find: 'const { sent = { state, record: withShards(base, state), expected: slot.version } } = slot;',
        replace: 'const sent = { state, record: withShards(base, state), expected: slot.version };',
      },
    ],
    breaks: ['owner', 'effects', 'tokens'],
  },
  {
    name: 'shards: a slot is vacated before its holder has stopped to believe',
    edits: [
      {
        file: 'seen-slot.js',
        find: 'if (this.silentMs >= record.leaseMs)',
        replace: 'if (this.silentMs >= record.leaseMs / 2)',
      },
    ],
    breaks: ['owner', 'effects', 'tokens'],
  },
  {
    name: 'shards: a shard is given up before its work has settled',
    edits: [
      {
        file: 'stay.js',
        find: "if (entry.state === 'asked')\n                    work.stop('handed-over');",
        replace:
          "if (entry.state === 'asked') { work.stop('handed-over'); this.#gaveUp.set(shard, entry.token); this.wake(); }",
      },
    ],
    // A process that finds its shard gone from the record gives the whole slot up, so shards move.
    breaks: ['owner', 'effects', 'tokens', 'moves', 'rest', 'balance'],
  },
  {
    name: 'shards: a late answer of a slot counts',
    from: 110,
    edits: [
      {
        file: 'extended-store.js',
        find: '// For the lease race, a late answer is none: it has looked again, and written again.\n            signal.throwIfAborted();',
        replace: '',
      },
      {
        file: 'stay.js',
        find: 'if (state.changes < (this.#confirmed?.changes ?? 0n))',
        replace: 'if (false)',
      },
      {
        file: 'stay.js',
        find: 'if (entry.token <= (this.#ended.get(shard) ?? -1n))',
        replace: 'if (false)',
      },
    ],
    breaks: ['owner', 'effects', 'tokens'],
  },
  {
    name: 'shards: an entry is deleted before another slot has the shard',
    edits: [
      {
        file: 'plan.js',
        find: 'forgotten(seen, elsewhere(ledger, number))',
        replace: 'forgotten(seen, new Set(seen.entries.map(({ shard }) => shard)))',
      },
    ],
    breaks: ['standing'],
  },
  {
    name: 'shards: tokens of shards rise in their slots alone',
    edits: [
      {
        file: 'ledger.js',
        find: 'if (given > highest)\n                highest = given;',
        replace: ';',
      },
      {
        file: 'slot.js',
        find: 'require(token > slot.highest,',
        replace: 'require(true,',
      },
    ],
    breaks: ['tokens', 'effects'],
  },
  {
    name: 'shards: work for a shard begins although its process stood still',
    edits: [
      {
        file: 'shard-work.js',
        find: "return this.#has === 'begun' && this.#stay.isLeading();",
        replace: "return this.#has === 'begun';",
      },
    ],
    breaks: ['owner'],
  },
  {
    name: 'shards: a vacated slot that got no answer is left',
    edits: [
      {
        file: 'coordinator.js',
        find: 'if (sent !== undefined && lookTaken > lookAtWrite)',
        replace: 'if (false)',
      },
    ],
    breaks: ['balance', 'drain', 'settling'],
  },
  {
    name: 'shards: a slot that was set back frees its shards for the next coordinator',
    from: 300,
    edits: [
      {
        file: 'spell.js',
        find: 'if (highestOf(slot) >= below)',
        replace: 'if (true)',
      },
    ],
    breaks: ['owner', 'effects', 'tokens'],
  },
  {
    name: 'shards: slots are given tokens that the record of the election does not have',
    edits: [
      {
        file: 'coordinator.js',
        find: 'if ((this.#head.noted.floors.get(number) ?? 0n) < state.highest)',
        replace: 'if (false)',
      },
    ],
    breaks: ['owner', 'effects', 'tokens'],
  },
  {
    name: 'shards: a slot that cannot be read is replaced at once',
    from: 95,
    edits: [
      {
        file: 'coordinator.js',
        find: 'const leftMs = this.#longestMs(slots) - slot.spoiltMs;',
        replace: 'const leftMs = 0;',
      },
    ],
    breaks: ['owner', 'effects', 'tokens'],
  },
  {
    name: 'shards: a shard that is in the list no more goes on',
    edits: [
      {
        file: 'list-keeper.js',
        find: 'const isListed = (shard) => names.isListed(shard);',
        replace: 'const isListed = () => true;',
      },
    ],
    breaks: ['balance'],
  },
  {
    name: 'shards: names get new numbers when the list changes',
    edits: [
      {
        file: 'roster.js',
        find: 'const names = [...this.#names];',
        replace: 'const names = this.#names.filter((name) => isWanted.has(name));',
      },
      {
        file: 'roster.js',
        find: "if (before === '') {",
        replace: 'if (before !== name) {',
      },
    ],
    breaks: ['owner', 'effects', 'tokens', 'balance', 'rest', 'moves'],
  },
  {
    name: 'shards: shards do not stay where they are',
    edits: [
      {
        file: 'assign.js',
        find: 'owned.length = Math.min(owned.length, room);',
        replace: 'owned.length = 0;',
      },
    ],
    breaks: ['rest', 'moves', 'balance'],
  },
  {
    name: 'shards: a member that leaves is granted shards',
    edits: [
      {
        file: 'plan.js',
        find: '!isHere || presence.leaving || drained.has(number)',
        replace: '!isHere || drained.has(number)',
      },
    ],
    breaks: ['drain', 'balance'],
  },
];
