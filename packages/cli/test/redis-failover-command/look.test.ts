// The problems that `status` names, and the changes that `watch` reports.
import { expect, test } from 'vitest';
import type { PrimaryRecord } from '../../../redis-failover/src/layout.ts';
import type { Replication } from '../../../redis-failover/src/redis/node-connection.ts';
import { replication } from '../../../redis-failover/test/support/replication.ts';
import { changesBetween } from '../../src/redis-failover-command/look/changes.ts';
import { findProblems } from '../../src/redis-failover-command/look/judge.ts';
import type { Answer } from '../../src/redis-failover-command/look/roles.ts';
import type { Znodes } from '../../src/redis-failover-command/look/znodes.ts';

const record: PrimaryRecord = {
  term: 3,
  primary: 'a:1',
  former: 'b:2',
  replicationId: null,
  viewMs: 1000,
  manager: 'm1',
  token: '12',
  manualSeen: '0',
  runId: null,
  gemViews: false,
};

const healthy: Znodes = {
  record,
  nodes: { master: 'a:1', slaves: ['b:2'], unavailable: [] },
  leader: { id: 'm1', token: 12n },
  reports: new Map([['m1', { available: { 'a:1': 0.001, 'b:2': 0.002 }, unavailable: [] }]]),
  requests: 0,
};

function says(change: Partial<Replication> = {}): Answer {
  return {
    replication: replication({
      ...{ role: 'replica', replicationId: 'x', offset: 1, primary: 'a:1' },
      ...change,
    }),
  };
}

const primary = says({ role: 'primary', primary: undefined });

function answers(a: Answer = primary, b: Answer = says()): ReadonlyMap<string, Answer> {
  return new Map([
    ['a:1', a],
    ['b:2', b],
  ]);
}

test('healthy', () => {
  expect(findProblems(healthy, answers())).toEqual([]);
});

const refused = Object.assign(new Error('b:2 refuses us'), { code: 'NODE_REFUSED' });
const moving = { ...healthy, record: { ...record, primary: null }, nodes: undefined };
const down = { ...healthy, nodes: { master: 'a:1', slaves: [], unavailable: ['b:2'] } };

test.each<[name: string, znodes: Znodes, answers: ReadonlyMap<string, Answer>, codes: string[]]>([
  [
    'nothing is there',
    { ...healthy, record: undefined, nodes: undefined, leader: undefined, reports: new Map() },
    new Map(),
    ['NO_RECORD', 'NO_MANAGER'],
  ],
  [
    'no primary was found',
    { ...healthy, record: undefined, nodes: undefined },
    answers(primary, primary),
    ['NO_RECORD', 'ROLE', 'ROLE'],
  ],
  [
    'the primary moves',
    moving,
    answers(says({ primary: 'b:2' }), says({ primary: 'a:1' })),
    ['MOVING'],
  ],
  ['nobody leads', { ...healthy, leader: undefined }, answers(), ['NO_MANAGER']],
  [
    'a manager of the gem has moved the primary',
    { ...healthy, nodes: { master: 'b:2', slaves: [], unavailable: [] } },
    answers(says({ primary: 'b:2' }), primary),
    ['RECORDS_DIFFER'],
  ],
  [
    'the records differ, and no node has followed',
    { ...healthy, nodes: { master: 'b:2', slaves: [], unavailable: [] } },
    answers(),
    ['RECORDS_DIFFER', 'ROLE', 'ROLE'],
  ],
  ['nodes is missing', { ...healthy, nodes: undefined }, answers(), ['RECORDS_DIFFER']],
  ['a node is down', down, answers(primary, { error: new Error('gone') }), ['NODE_DOWN']],
  ['a node that is down answers us', down, answers(), ['NODE_DOWN']],
  [
    'we do not reach a node',
    healthy,
    answers(primary, { error: new Error('gone') }),
    ['NODE_UNREACHABLE'],
  ],
  ['a node refuses us', healthy, answers(primary, { error: refused }), ['NODE_REFUSED']],
  ['a second primary', healthy, answers(primary, primary), ['ROLE']],
  ['a primary that is none', healthy, answers(says({ primary: 'b:2' })), ['ROLE']],
  ['a replica of another', healthy, answers(primary, says({ primary: 'c:3' })), ['ROLE']],
  ['a broken link', healthy, answers(primary, says({ linkUp: false })), ['REPLICATION']],
  [
    'a whole copy',
    healthy,
    answers(primary, says({ linkUp: false, syncing: true })),
    ['REPLICATION'],
  ],
  ['managers of the gem', { ...healthy, record: undefined, leader: undefined }, answers(), []],
  [
    'the gem without a primary',
    {
      ...healthy,
      record: undefined,
      leader: undefined,
      nodes: { master: null, slaves: [], unavailable: [] },
    },
    answers(says()),
    ['NO_PRIMARY'],
  ],
])('%s', (_name, znodes, said, codes) => {
  expect(findProblems(znodes, said).map(({ code }) => code)).toEqual(codes);
});

const sentences = (before: Znodes | undefined, after: Znodes) =>
  changesBetween(before, after).map(({ sentence }) => sentence);

test('changes', () => {
  expect(sentences(undefined, healthy)).toEqual([
    'primary a:1, term 3',
    'manager m1 leads',
    'manager m1 reports',
  ]);
  expect(sentences(healthy, healthy)).toEqual([]);
  expect(
    sentences(healthy, { ...moving, record: { ...record, primary: null, former: 'a:1' } }),
  ).toEqual(['no primary: it is being moved away from a:1']);
  expect(sentences(moving, healthy)).toEqual(['primary a:1, term 3']);
  expect(sentences(healthy, { ...healthy, record: { ...record, term: 4 } })).toEqual([
    'primary a:1, term 4',
  ]);
  expect(sentences(healthy, down)).toEqual(['node b:2 is down']);
  // While the primary moves, nothing is said of the nodes.
  expect(sentences(down, { ...down, nodes: undefined })).toEqual([]);
  expect(sentences(down, healthy)).toEqual(['node b:2 is up again']);
  expect(sentences(healthy, { ...healthy, leader: undefined, reports: new Map() })).toEqual([
    'no manager leads',
    'manager m1 reports no more',
  ]);
  const blind = {
    ...healthy,
    reports: new Map([['m1', { available: { 'a:1': 0.001 }, unavailable: ['b:2'] }]]),
  };
  expect(sentences(healthy, blind)).toEqual(['manager m1 does not reach b:2']);
  expect(sentences(blind, healthy)).toEqual(['manager m1 reaches b:2']);
  expect(sentences(healthy, { ...healthy, requests: 1 })).toEqual(['a request for a failover']);
});
