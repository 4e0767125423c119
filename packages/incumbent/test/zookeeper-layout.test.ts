import { describe, expect, it } from 'vitest';
import { queueLayout, sequenceDistance } from '../src/backends/zookeeper/layout.ts';

const layouts = [
  'incumbent',
  'golea',
  'curator-latch',
  'curator-selector',
  'kazoo',
  'recipe',
] as const;
type Name = (typeof layouts)[number];

/** Data of the libraries' own members, captured on a server. */
const captured: Readonly<Record<Name, readonly (readonly [string, number])[]>> = {
  incumbent: [['_c_Zx-1_b-n_0000000007', 7]],
  golea: [['le_0000000003', 3]],
  'curator-latch': [
    ['_c_77a43f12-e374-448b-9d34-b560ddc265c4-latch-0000000001', 1],
    ['latch-0000000002', 2],
  ],
  'curator-selector': [
    ['_c_0e9479be-a26f-4e70-a36e-f1380136baa3-lock-0000000001', 1],
    ['lock-0000000002', 2],
  ],
  kazoo: [['7c9eded5d2f9476fa89f48c99191e422__lock__0000000001', 1]],
  recipe: [
    ['3f2504e0-4f89-11d3-9a0c-0305e82c3301-n_0000000001', 1],
    ['_c_5f2504e04f8911d39a0c0305e82c3301-p_0000000002', 2], // zkElection
    ['n_0000000003', 3],
  ],
};

/** Our own data, always the same for a guid. */
const ours: Readonly<Record<Name, RegExp>> = {
  incumbent: /^_c_a-guid-n_$/,
  golea: /^le_$/,
  'curator-latch':
    /^_c_[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{6}e1ec70-latch-$/,
  'curator-selector':
    /^_c_[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{6}e1ec70-lock-$/,
  kazoo: /^[0-9a-f]{12}8[0-9a-f]{3}a[0-9a-f]{9}e1ec70__lock__$/,
  recipe: /^[0-9a-f]{12}8[0-9a-f]{3}a[0-9a-f]{9}e1ec70-n_$/,
};

const candidate = { id: 'host-7', incarnation: 'i', addresses: ['a:1'], metadata: { zone: 'b' } };

describe.for(layouts)('%s', (name) => {
  const layout = queueLayout(name);

  it('reads the names that its members write', () => {
    for (const [child, sequence] of captured[name]) {
      expect(layout.sequenceOf(child)).toBe(sequence);
      expect(layout.memberFrom(child, 'theirs')).toMatchObject({
        isOurs: name === 'incumbent',
        candidate: { id: 'theirs' },
      });
    }
  });

  it('writes such names itself, the same for the same guid', () => {
    const prefix = layout.namePrefix('a-guid');
    expect(prefix).toMatch(ours[name]);
    expect(layout.namePrefix('a-guid')).toBe(prefix);
    expect(layout.sequenceOf(`${prefix}0000000042`)).toBe(42);
    if (layout.recurs) return;
    expect(layout.namePrefix('another')).not.toBe(prefix);
    expect(layout.wasMadeWith(`${prefix}0000000042`, 'a-guid')).toBe(true);
    expect(layout.wasMadeWith(`${prefix}0000000042`, 'another')).toBe(false);
    expect(layout.memberFrom(`${prefix}0000000042`, layout.dataOf(candidate)).isOurs).toBe(true);
  });

  it('says the id of a candidate, and nothing else where others read it', () => {
    const data = layout.dataOf(candidate);
    const member = layout.memberFrom(`${layout.namePrefix('g')}0000000001`, data);
    expect(member.candidate.id).toBe('host-7');
    if (name === 'incumbent') expect(member.candidate).toEqual(candidate);
    else expect(data).toBe('host-7');
  });

  it('shows the name of a place whose data is empty', () => {
    const child = `${layout.namePrefix('g')}0000000001`;
    for (const data of ['', ' ']) expect(layout.memberFrom(child, data).candidate.id).toBe(child);
  });

  it('takes no other child for a place', () => {
    for (const child of ['DONE', 'config', 'le_', '0000000001x', 'latch-1', 'lock-00000000001x']) {
      expect(layout.sequenceOf(child)).toBeUndefined();
    }
  });

  it('reads numbers that have run over', () => {
    const prefix = layout.namePrefix('a-guid');
    expect(layout.sequenceOf(`${prefix}2147483647`)).toBe(2147483647);
    expect(layout.sequenceOf(`${prefix}-2147483648`)).toBe(-2147483648);
    expect(layout.sequenceOf(`${prefix}-000000001`)).toBe(-1);
  });
});

it('the number that comes after the greatest is the least', () => {
  expect(sequenceDistance(2147483647, -2147483648)).toBe(1);
  expect(sequenceDistance(-2147483648, 2147483647)).toBe(-1);
  expect(sequenceDistance(-1, 0)).toBe(1);
  expect(sequenceDistance(3, 5)).toBe(2);
});

it('a name of the recipe has one hyphen, or zkElection panics over it', () => {
  const child = `${queueLayout('recipe').namePrefix('a-guid')}0000000001`;
  expect(child.split('-')).toHaveLength(2);
  expect(child.split('-')[1]?.split('_')).toEqual(['n', '0000000001']);
});
