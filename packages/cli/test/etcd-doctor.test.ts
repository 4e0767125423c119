import { deriveTiming } from 'incumbent';
import type { EtcdStatus } from 'incumbent/etcd';
import { expect, test } from 'vitest';
import { memberFindings, quorumFinding, takeoverFinding } from '../src/doctor/etcd.ts';
import type { EtcdReport } from '../src/etcd/connect.ts';
import { inWords } from '../src/etcd/connect.ts';

const status: EtcdStatus = {
  version: '3.5.16',
  memberId: 1n,
  leader: 1n,
  raftTerm: 2n,
  revision: 10n,
  dbSize: 20_480n,
  isLearner: false,
  errors: [],
};

const member = (server: string, change: Partial<EtcdStatus> = {}): EtcdReport => ({
  server,
  status: { ...status, ...change },
  problem: undefined,
});
const away = (server: string, why: string): EtcdReport => ({
  server,
  status: undefined,
  problem: new Error(why),
});
const lines = (reports: readonly EtcdReport[]) =>
  [...memberFindings(reports), quorumFinding(reports)].map(
    ({ check, level, message }) => `${level} ${check} ${message}`,
  );

test('a cluster that is well', () => {
  expect(
    lines([member('a:1'), member('b:1', { memberId: 2n }), member('c:1', { isLearner: true })]),
  ).toEqual([
    'ok member a:1 leader, version 3.5.16, 20 KiB',
    'ok member b:1 follower, version 3.5.16, 20 KiB',
    'ok member c:1 learner, version 3.5.16, 20 KiB',
    'ok quorum 3 of 3 named members serve, one leader',
  ]);
});

test.each([
  [[member('a:1')], 'note quorum one member is named: name them all'],
  [
    [member('a:1'), member('b:1', { leader: 2n })],
    'broken quorum the members name different leaders',
  ],
  [
    [member('a:1', { leader: 0n })],
    'warn member a:1 follower, version 3.5.16, 20 KiB: it knows no leader',
  ],
  [[member('a:1', { leader: 0n })], 'broken quorum no member knows a leader'],
  [
    [member('a:1', { version: '3.3.25' })],
    'warn member a:1 leader, version 3.3.25, 20 KiB: older than 3.4.0',
  ],
  [[member('a:1', { errors: ['memberID:1 alarm:NOSPACE '] })], 'broken member a:1 leader'],
  [[member('a:1', { errors: ['odd'] })], 'warn member a:1 leader, version 3.5.16, 20 KiB: odd'],
  [
    [member('a:1', { dbSize: 1_900_000_000n })],
    'warn member a:1 leader, version 3.5.16, 1.8 GiB: near the quota',
  ],
  [
    [member('a:1'), away('b:1', 'connect ECONNREFUSED b:1')],
    'warn member does not serve: connect ECONNREFUSED b:1',
  ],
  [[member('a:1'), away('b:1', 'x')], 'ok quorum 1 of 2 named members serve, one leader'],
  [[away('a:1', 'x')], 'broken quorum no member knows a leader'],
])('members %#: %s', (reports, words) => {
  const found = lines(reports);
  expect(
    found.some((each) => each.startsWith(words)),
    found.join('\n'),
  ).toBe(true);
});

test.each([
  [
    'No connection established. Last error: Error: unable to verify the first certificate. Resolution note: ',
    'h:1: unable to verify the first certificate',
  ],
  [
    'No connection established. Last error: Failed to connect (2026-11-21T18:32:45.644Z). Resolution note: ',
    'h:1: Failed to connect',
  ],
  [
    'No connection established. Last error: Error: connect ECONNREFUSED h:1. Resolution note: ',
    'connect ECONNREFUSED h:1',
  ],
  [
    'Name resolution failed for target dns:h:1: getaddrinfo ENOTFOUND h',
    'h:1: getaddrinfo ENOTFOUND h',
  ],
  ['it does not answer', 'h:1: it does not answer'],
])('of what gRPC says the reason is told: %s', (said, words) => {
  expect(inWords(away('h:1', said))).toBe(words);
});

test('how long a take-over takes', () => {
  const timing = deriveTiming({ belief: '4s' }, { sessionTimeoutMs: 10_000 });
  expect(takeoverFinding(timing, true).message).toContain('within 14.92s: lease 10s');
  expect(takeoverFinding(timing, false).message).toContain('within 10.5s: lease 10s');
});
