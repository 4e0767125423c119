import type { ZooKeeper } from '@incumbent/zookeeper';
import { AuthError, acl, permissions } from '@incumbent/zookeeper';
import { deriveTiming } from 'incumbent';
import { expect, test } from 'vitest';
import { compareVersions, longestTickMs, serverFindings } from '../src/doctor/zookeeper-servers.ts';
import {
  aclFinding,
  clockFinding,
  judgeAcl,
  sessionFindings,
  takeoverFinding,
} from '../src/doctor/zookeeper-session.ts';
import type { ServerReport } from '../src/zookeeper/servers.ts';
import { readReport } from '../src/zookeeper/servers.ts';
import { parseZooKeeperUrl } from '../src/zookeeper/url.ts';

const srvr = (mode: string, version = '3.8.0-1+deb12u1, built on 2022-02-25') =>
  `Zookeeper version: ${version}\nLatency min/avg/max: 0/0.5/3\nReceived: 12\nMode: ${mode}\nNode count: 5\n`;
const conf = (tick: number, min = 2 * tick, max = 20 * tick) =>
  `clientPort=2181\ntickTime=${tick}\nmaxClientCnxns=60\nminSessionTimeout=${min}\nmaxSessionTimeout=${max}\nserverId=1\n`;
const report = (server: string, mode: string, tick = 2_000, version?: string) =>
  readReport(server, srvr(mode, version), conf(tick));
const refused = (server: string) => readReport(server, '', '', `connect ECONNREFUSED ${server}`);

test('the report of a server is read, even a short one', () => {
  expect(report('h:1', 'follower')).toEqual({
    server: 'h:1',
    mode: 'follower',
    version: '3.8.0',
    conf: { tickTimeMs: 2_000, minSessionTimeoutMs: 4_000, maxSessionTimeoutMs: 40_000 },
    problem: undefined,
  });
  expect(
    readReport('h:1', srvr('leader'), 'conf is not executed because it is not in the whitelist.\n'),
  ).toMatchObject({ mode: 'leader', conf: undefined });
  expect(
    readReport('h:1', 'This ZooKeeper instance is not currently serving requests\n', ''),
  ).toMatchObject({
    mode: undefined,
    problem: 'This ZooKeeper instance is not currently serving requests',
  });
  expect(readReport('h:1', '', '')).toMatchObject({ problem: 'it answers nothing' });
});

test('a server that may not say what it is may say it in other words', () => {
  const no = (word: string) => `${word} is not executed because it is not in the whitelist.\n`;
  const mntr = 'zk_version\t3.7.1-a2fb57c, built on 2022-05-07\nzk_server_state\tfollower\n';
  expect(readReport('h:1', `${no('srvr')}\n${mntr}\n${no('stat')}`, no('conf'))).toEqual({
    server: 'h:1',
    mode: 'follower',
    version: '3.7.1',
    conf: undefined,
    problem: undefined,
  });
  const silent = readReport('h:1', no('srvr') + no('mntr'), no('conf'));
  expect(silent).toMatchObject({ mode: 'unknown', version: undefined });
  expect(levels([silent])).toEqual([
    'note server h:1 does not say what it is: its 4lw.commands.whitelist has none of srvr, mntr and stat',
    'note quorum not known: no server says what it is',
    'note tick not known: the 4lw.commands.whitelist of the servers does not have conf',
  ]);
  expect(levels([silent, report('a:1', 'leader')])).toContain(
    'ok quorum 1 of 2 named servers serve, one of them as leader',
  );
});

test('versions are compared by their numbers', () => {
  const sorted = ['3.3.6', '3.4', '3.4.14', '3.5.0', '3.10.1'];
  expect([...sorted].reverse().sort(compareVersions)).toEqual(sorted);
  expect(compareVersions('3.4', '3.4.0')).toBe(0);
});

const levels = (servers: readonly ServerReport[], compatibility?: '3.4' | '3.5') =>
  serverFindings(servers, compatibility).map(
    ({ check, level, message }) => `${level} ${check} ${message}`,
  );

test('an ensemble that is well', () => {
  const servers = [report('a:1', 'follower'), report('b:1', 'leader'), report('c:1', 'follower')];
  expect(levels(servers)).toEqual([
    'ok server a:1 follower, version 3.8.0, tick 2s, session timeouts from 4s to 40s',
    'ok server b:1 leader, version 3.8.0, tick 2s, session timeouts from 4s to 40s',
    'ok server c:1 follower, version 3.8.0, tick 2s, session timeouts from 4s to 40s',
    'ok quorum 3 of 3 named servers serve, one of them as leader',
  ]);
  expect(longestTickMs(servers)).toBe(2_000);
});

test.each([
  [
    [refused('a:1'), report('b:1', 'leader')],
    'warn server serves nobody: connect ECONNREFUSED a:1',
  ],
  [[refused('a:1')], 'broken quorum no server serves: there is no quorum'],
  [
    [report('a:1', 'read-only')],
    'warn server a:1 read-only, version 3.8.0, tick 2s, session timeouts from 4s to 40s: it has lost its quorum',
  ],
  [[report('a:1', 'read-only')], 'broken quorum no server serves: there is no quorum'],
  [
    [report('a:1', 'standalone')],
    'note quorum a single server: while it is down, nobody can be elected',
  ],
  [
    [report('a:1', 'standalone'), report('b:1', 'leader')],
    'broken quorum these are not one ensemble: a:1 is standalone',
  ],
  [
    [report('a:1', 'standalone'), report('b:1', 'standalone')],
    'broken quorum these are not one ensemble: a:1, b:1 are standalone',
  ],
  [
    [report('a:1', 'leader'), report('b:1', 'leader')],
    'broken quorum a:1, b:1 all lead: these are not one ensemble, or it is just electing',
  ],
  [
    [report('a:1', 'follower'), refused('b:1')],
    'ok quorum 1 of 2 named servers serve; the leader is not among those that were named',
  ],
  [
    [report('a:1', 'follower', 2_000), report('b:1', 'leader', 3_000)],
    'warn tick tickTime is not the same on all servers: a:1 2s, b:1 3s',
  ],
  [
    [report('a:1', 'follower', 2_000), report('b:1', 'leader', 3_000)],
    'warn tick maxSessionTimeout is not the same on all servers: a:1 40s, b:1 1m',
  ],
  [
    [readReport('a:1', srvr('leader'), '')],
    'note tick not known: the 4lw.commands.whitelist of the servers does not have conf',
  ],
  [
    [report('a:1', 'leader', 2_000, '3.3.6-1366786')],
    'broken server a:1 leader, version 3.3.6, tick 2s, session timeouts from 4s to 40s: older than 3.4.0, which elections need',
  ],
  [
    [report('a:1', 'leader', 2_000, '3.4.14-4c25d48')],
    'broken server a:1 leader, version 3.4.14, tick 2s, session timeouts from 4s to 40s: add compatibility=3.4 to the URL',
  ],
  [
    [report('a:1', 'leader', 2_000, '3.5.9')],
    'broken server a:1 leader, version 3.5.9, tick 2s, session timeouts from 4s to 40s: add compatibility=3.5 to the URL',
  ],
])('servers %#: %s', (servers, words) => {
  expect(levels(servers)).toContain(words);
});

test('an old server that is treated as one', () => {
  expect(levels([report('a:1', 'leader', 2_000, '3.4.14')], '3.4')[0]).toMatch(/^ok /);
  expect(levels([report('a:1', 'leader', 2_000, '3.5.9')], '3.5')[0]).toMatch(/^ok /);
  expect(levels([report('a:1', 'leader', 2_000, '3.5.9')], '3.4')[0]).toMatch(/^ok /);
  expect(levels([report('a:1', 'leader', 2_000, '3.4.14')], '3.5')[0]).toMatch(/^broken /);
});

test('the session: as asked for or not, and what was given up', () => {
  const session = (
    parameters: string,
    negotiatedMs: number,
    servers: readonly ServerReport[] = [],
  ) =>
    sessionFindings(
      {
        askedTimeoutMs: 1_000,
        askedBy: '--lease',
        location: parseZooKeeperUrl(`zk://h?${parameters}`, '--store'),
      },
      negotiatedMs,
      servers,
    );
  expect(session('', 1_000)).toMatchObject([{ level: 'ok', message: 'timeout 1s, as asked for' }]);
  expect(session('', 4_000)).toMatchObject([
    {
      level: 'warn',
      message:
        'asked for a timeout of 1s (--lease) and got 4s, which is the lease: servers allow 2 to ' +
        '20 ticks unless they are told otherwise',
    },
  ]);
  expect(session('', 4_000, [report('a:1', 'leader')])[0]?.message).toContain(
    'the servers allow 4s to 40s',
  );
  expect(
    session('predecessor-wait=off&layout=kazoo&on-disconnect=step-down', 1_000).map(
      ({ check, level }) => `${level} ${check}`,
    ),
  ).toEqual(['ok session', 'warn predecessor', 'note layout', 'note on-disconnect']);
});

test.each([
  ['layout=kazoo', 2_000, false],
  ['layout=kazoo', 3_000, true],
  ['layout=kazoo&tick-time=3s', 3_000, false],
  ['layout=kazoo&tick-time=1s', 2_000, true],
  ['tick-time=1s', 2_000, false],
])('%s with a tick of %i ms: what is believed relies on it', (parameters, tickMs, isBroken) => {
  const location = parseZooKeeperUrl(`zk://h?${parameters}`, '--store');
  const asked = { askedTimeoutMs: 9_000, askedBy: '', location };
  const findings = sessionFindings(asked, 9_000, [report('a:1', 'leader', tickMs)]);
  expect(findings.some(({ check, level }) => check === 'tick-time' && level === 'broken')).toBe(
    isBroken,
  );
});

test('how long a crash takes', () => {
  const timing = deriveTiming({}, { sessionTimeoutMs: 10_000 });
  expect(takeoverFinding(timing, true, [report('a:1', 'leader')]).message).toBe(
    'after a crash somebody leads within 18.42s: session 10s, expiry 4s, belief of the last leader 4.42s',
  );
  expect(takeoverFinding(timing, false, []).message).toBe(
    'after a crash somebody leads within 10s and 2 ticks: session 10s, expiry 2 ticks',
  );
});

test.each([
  [[acl.world()], [], 'note', 'everybody may do everything with /e (world:anyone:rwcda)'],
  [[acl.world(permissions.read)], [], 'broken', 'as nobody we may not write, create, delete'],
  [
    [acl.digest('joe', 'secret')],
    [{ scheme: 'digest', user: 'joe' }],
    'ok',
    '/e has digest:joe:rwcda',
  ],
  [
    [acl.digest('joe', 'secret')],
    [{ scheme: 'digest', user: 'eve' }],
    'broken',
    'as digest:eve we may not read',
  ],
  [
    [acl.sasl('joe', 7), acl.world(8)],
    [{ scheme: 'sasl', user: 'joe' }],
    'ok',
    'sasl:joe:rwc, world:anyone:d',
  ],
  [
    [acl.ip('10.0.0.0/8')],
    [{ scheme: 'ip', user: '10.0.0.7' }],
    'warn',
    'as ip:10.0.0.7 we may not',
  ],
  [[acl.ip('10.0.0.7')], undefined, 'note', '/e has ip:10.0.0.7:rwcda'],
] as const)('rights %#: %j for %j are %s', (entries, us, level, words) => {
  const finding = judgeAcl('/e', entries, us);
  expect(finding).toMatchObject({ check: 'acl', level, message: expect.stringContaining(words) });
  // Not even its hash.
  expect(JSON.stringify(finding)).not.toContain(acl.digest('joe', 'secret').id);
});

test('an ACL that may not be read, and a server that does not know who we are', async () => {
  const { signal } = new AbortController();
  const client = (getAcl: () => Promise<unknown>) =>
    ({ getAcl, whoAmI: () => Promise.reject(new Error('unimplemented')) }) as unknown as ZooKeeper;
  const denied = client(() => Promise.reject(new AuthError('NO_AUTH', 'no')));
  expect(await aclFinding(denied, '/e', signal)).toMatchObject({ level: 'broken' });
  const old = client(async () => ({ acl: [acl.auth()] }));
  expect(await aclFinding(old, '/e', signal)).toMatchObject({ level: 'note' });
});

test.each([
  [0, 'note', / the clock of the servers is /],
  [-3_600_000, 'warn', /1h behind ours .*: set one of them right; no election depends on it/],
  [3_600_000, 'warn', /1h ahead of ours/],
] as const)('a clock that is off by %i ms', async (offMs, level, words) => {
  const client = {
    set: async () => ({ stat: { mtime: Date.now() + offMs } }),
  } as unknown as ZooKeeper;
  const finding = await clockFinding(client, '/e', new AbortController().signal);
  expect(finding).toMatchObject({ check: 'clock', level });
  expect(` ${finding.message}`).toMatch(words);
});
