/**
 * One node of any name, broken on purpose: what its own store does, and what it takes from the
 * lock. See `../lease/variant-list.ts`.
 */
import type { Variant } from '../harness/mechanism.ts';
import type { nodeGuarantees } from './guarantees.ts';

/** Two leaders, or what leads to two leaders. */
const s1 = ['belief', 'waiting', 'margin', 'fencing'] as const;

const store = 'backends/zookeeper/node-store.js';
const session = 'backends/zookeeper/lock-session.js';
const memory = 'mechanisms/lock/memory.js';

export const nodeVariants: readonly Variant<keyof typeof nodeGuarantees>[] = [
  {
    name: 'node: belief without a confirmation',
    edits: [
      {
        file: session,
        find: 'const paths = places.map(({ name }) => pathOf(name));',
        replace: 'return { there: places, gone: [] };\n        const paths = [];',
      },
    ],
    breaks: [...s1, 'proof'],
  },
  {
    name: 'node: whoever has a node of that name taken for its maker',
    edits: [
      {
        file: session,
        find: '(isThat(read.value, place) ? there : gone).push(place);',
        replace: 'there.push(place);',
      },
    ],
    breaks: [...s1, 'proof'],
  },
  {
    name: 'node: no wait after an unclean predecessor',
    edits: [{ file: memory, find: 'if (!waitsForPredecessor)', replace: 'if (true)' }],
    breaks: [...s1, 'theirs'],
  },
  {
    name: 'node: one of theirs that led in between not waited for',
    edits: [{ file: memory, find: 'if (mayFollowOther)', replace: 'if (false)' }],
    breaks: ['theirs'],
  },
  {
    name: 'node: a node taken for the next one without a look at what came before',
    edits: [{ file: store, find: 'parent.pzxid !== own.stat.mzxid', replace: 'false' }],
    breaks: ['theirs'],
  },
  {
    name: 'node: an announcement without a check of badge and owner',
    edits: [
      {
        file: store,
        find: '.check(this.badgeOf(place))\n            .check(this.nodes.lockPath)',
        replace: '.check(this.nodes.path)\n            .check(this.nodes.path)',
      },
      {
        file: store,
        find: 'if (lock.value === undefined || !isThat(lock.value, place))\n                return',
        replace: 'if (false)\n                return',
      },
    ],
    breaks: [...s1, 'place'],
  },
  {
    name: 'node: a clean end that leaves the badge',
    edits: [
      {
        file: store,
        find: 'if (badge !== undefined)\n                transaction.delete(this.badgeOf(place));',
        replace: '',
      },
    ],
    breaks: ['badge'],
  },
  {
    name: 'node: a release without a look whose the node is',
    edits: [
      {
        file: store,
        find: 'if (lock === undefined || !isThat(lock, place)) {\n                if (badge',
        replace: 'if (lock === undefined) {\n                if (badge',
      },
    ],
    breaks: ['others', 'release', 'kept', 'stranger'],
  },
];
