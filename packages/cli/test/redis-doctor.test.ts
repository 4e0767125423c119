import { deriveTiming } from 'incumbent';
import { expect, test } from 'vitest';
import { redisFindings, takeoverFinding } from '../src/doctor/redis.ts';
import { parseRedisUrl } from '../src/redis/url.ts';

const at = (query = '') => parseRedisUrl(`redis://h${query}`, '--store', {});

/** Findings about a healthy server whose answers differ as given. */
function findings(
  said: Readonly<Record<string, string>> = {},
  settings: Readonly<Record<string, string>> = {},
  query = '',
): string[] {
  const lines = {
    ...{ redis_version: '7.0.15', redis_mode: 'standalone', role: 'master', connected_slaves: '0' },
    ...{ aof_enabled: '1', aof_last_write_status: 'ok', maxmemory: '0' },
    ...{ maxmemory_policy: 'noeviction' },
    ...said,
  };
  const info = Object.entries(lines).map(([name, value]) => `${name}:${value}`);
  const facts = {
    name: 'h:6379',
    info: `# Server\r\n${info.join('\r\n')}\r\n`,
    settings: { appendfsync: 'always', ...settings },
  };
  return redisFindings(facts, at(query)).map(
    ({ check, level, message }) => `${level} ${check} ${message}`,
  );
}

test('a server that is well', () => {
  expect(findings()).toEqual([
    'ok server h:6379 Redis 7.0.15, standalone, master',
    'note replicas h:6379 has none: while it is away nobody is elected',
    'ok durability h:6379 writes every change to disk (appendfsync always)',
    'ok eviction h:6379 evicts no records (maxmemory-policy noeviction)',
  ]);
  expect(findings({ valkey_version: '8.0.1' })[0]).toBe(
    'ok server h:6379 Valkey 8.0.1, standalone, master',
  );
});

test.each([
  [
    { redis_version: '4.0.9' },
    {},
    '',
    'broken server h:6379 Redis 4.0.9, standalone, master: older than 5.0.0',
  ],
  [
    { role: 'slave', master_host: 'p', master_port: '1' },
    {},
    '',
    'broken role h:6379 is a read-only replica of p:1',
  ],
  [
    { connected_slaves: '2' },
    {},
    '',
    'warn replicas h:6379 has 2 replicas, and confirms writes before',
  ],
  [
    { connected_slaves: '2' },
    { 'min-replicas-to-write': '1' },
    '',
    'ok replicas h:6379 has 2 replicas',
  ],
  [{ connected_slaves: '1' }, {}, '?wait=1', 'ok replicas h:6379 has 1 replica'],
  [
    { connected_slaves: '1' },
    {},
    '?wait=2',
    'broken replicas h:6379 has 1 replicas connected, and wait=2',
  ],
  [{}, {}, '?sentinel=m', 'note replicas h:6379 has none: nobody takes over from it'],
  [
    { aof_enabled: '0' },
    {},
    '',
    'note durability h:6379 may be empty after a restart (no append-only file)',
  ],
  [
    {},
    { appendfsync: 'everysec' },
    '',
    'note durability h:6379 may forget the last second when it crashes',
  ],
  [
    {},
    { appendfsync: 'everysec' },
    '?durable=true',
    'broken durability h:6379 has appendfsync everysec, and durable=true',
  ],
  [
    { aof_enabled: '0' },
    {},
    '?durable=true',
    'broken durability h:6379 has no append-only file, and durable=true',
  ],
  [{}, {}, '?durable=true', 'ok durability h:6379 writes every change to disk'],
  [
    { aof_last_write_status: 'err' },
    {},
    '',
    'broken durability h:6379 cannot write its append-only file',
  ],
  [
    { maxmemory_policy: 'volatile-lru', maxmemory: '1' },
    {},
    '',
    'ok eviction h:6379 evicts no records',
  ],
  [
    { maxmemory_policy: 'allkeys-lru', maxmemory: '1' },
    {},
    '',
    'warn eviction h:6379 evicts any key',
  ],
  [{ maxmemory_policy: 'allkeys-lru' }, {}, '', 'note eviction h:6379 evicts any key'],
] as const)(
  'INFO with %j, CONFIG with %j and the URL with "%s": %s',
  (said, settings, query, words) => {
    const found = findings(said, settings, query);
    expect(
      found.some((each) => each.startsWith(words)),
      found.join('\n'),
    ).toBe(true);
  },
);

test('a server that does not say what it is', () => {
  const facts = { name: 'h:1', info: undefined, settings: {} };
  expect(redisFindings(facts, at())).toMatchObject([{ check: 'server', level: 'note' }]);
});

test('how long a take-over takes', () => {
  const timing = deriveTiming({ lease: '10s' });
  const words = (query: string) => takeoverFinding(timing, at(query)).message;
  expect(words('')).toContain('somebody leads within 12s of the last renewal');
  expect(words('?clock-step=5s')).toContain('within 15s of the last renewal');
  expect(words('?age=off')).toContain('who comes later waits as long from when it came');
});
