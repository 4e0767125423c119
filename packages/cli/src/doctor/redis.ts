/** Findings about a Redis server, as far as elections depend on it. */
import type { Timing } from 'incumbent';
import { formatDuration, parseDuration } from 'incumbent';
import { redis } from 'incumbent/redis';
import type { RedisConnections, Reply } from '../redis/connect.ts';
import type { RedisLocation } from '../redis/url.ts';
import type { Finding } from './finding.ts';
import type { Scratch, Unmeasured } from './scratch.ts';
import { serverClockFinding } from './server-clock.ts';
import { compareVersions } from './zookeeper-servers.ts';

const defaultPrefix = 'incumbent:';
const oldestVersion = '5.0.0';

/** The report of one server that takes writes; undefined: it may not say. */
export interface RedisFacts {
  readonly name: string;
  /** `INFO`, as it is sent. */
  readonly info: string | undefined;
  /** The answers to `CONFIG GET` that matter to elections. */
  readonly settings: Readonly<Record<string, string>>;
}

const wanted = ['appendfsync', 'min-replicas-to-write', 'maxmemory-policy', 'save'];

export async function examineRedis(
  connections: RedisConnections,
  timing: Timing,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { location } = connections;
  const primaries = await connections.primaries();
  const findings: Finding[] = [];
  for (const { name, send } of primaries) {
    signal.throwIfAborted();
    const info = await send('INFO', 'everything').then(String, () => undefined);
    const settings: Record<string, string> = {};
    for (const each of wanted) {
      const reply = await send('CONFIG', 'GET', each).catch(() => undefined);
      Object.assign(settings, asPairs(reply));
    }
    findings.push(...redisFindings({ name, info, settings }, location));
  }
  findings.push(takeoverFinding(timing, location));
  const [first] = primaries;
  if (first !== undefined) {
    findings.push(
      await serverClockFinding(async () => {
        const [seconds, microseconds] = (await first.send('TIME')) as readonly string[];
        return Number(seconds) * 1000 + Number(microseconds) / 1000;
      }, clockUse(location)),
    );
  }
  return findings;
}

/** The election to measure on: its keys are removed again. */
export async function scratchOnRedis(
  name: string,
  { client, location, send }: RedisConnections,
): Promise<Scratch | Unmeasured> {
  const { prefix = defaultPrefix, wait } = location.options;
  const said = factsOf(await send('INFO', 'replication').then(String, () => ''));
  const replicas = Number(said.get('connected_slaves') ?? Number.POSITIVE_INFINITY);
  if (said.get('role') === 'slave' || (wait !== undefined && wait.replicas > replicas)) {
    return { unmeasured: 'no election can be held there', mayLook: true };
  }
  const key = `${prefix}{${name}}`;
  return {
    name,
    // No other process has this name, so none of its records can be forgotten: there is nothing to
    // wait for.
    backend: redis(client, { ...location.options, durable: true }),
    look: async () => [],
    async remove() {
      await send('DEL', key, `${key}:candidates`);
    },
  };
}

/** Replies of RESP3 are objects where those of RESP2 are lists. */
function asPairs(reply: Reply | undefined): Record<string, string> {
  if (reply === undefined || reply === null) return {};
  if (!Array.isArray(reply)) return reply as unknown as Record<string, string>;
  const pairs: Record<string, string> = {};
  for (let i = 0; i + 1 < reply.length; i += 2) pairs[String(reply[i])] = String(reply[i + 1]);
  return pairs;
}

export function redisFindings(facts: RedisFacts, location: RedisLocation): Finding[] {
  const { name, info, settings } = facts;
  if (info === undefined) {
    const message = `${name} does not let us ask INFO: nothing is known of its durability`;
    return [{ check: 'server', level: 'note', message, data: { server: name } }];
  }
  const said = factsOf(info);
  return [
    serverFinding(name, said),
    ...roleFindings(name, said, settings, location),
    durabilityFinding(name, said, settings, location),
    memoryFinding(name, said, settings),
  ];
}

/** `INFO` line by line. */
function factsOf(info: string): ReadonlyMap<string, string> {
  const lines = info.matchAll(/^([a-z0-9_-]+):(.*?)\r?$/gm);
  return new Map([...lines].map(([, key = '', value = '']) => [key, value]));
}

function serverFinding(name: string, said: ReadonlyMap<string, string>): Finding {
  const version = said.get('redis_version') ?? '';
  const what = said.has('valkey_version')
    ? `Valkey ${said.get('valkey_version')}`
    : `Redis ${version}`;
  const mode = said.get('redis_mode') ?? 'standalone';
  const message = `${name} ${what}, ${mode}, ${said.get('role') ?? 'role not told'}`;
  const data = { server: name, version, mode, role: said.get('role') ?? null };
  if (version !== '' && compareVersions(version, oldestVersion) < 0) {
    const why = `older than ${oldestVersion}, which elections need`;
    return { check: 'server', level: 'broken', message: `${message}: ${why}`, data };
  }
  return { check: 'server', level: 'ok', message, data };
}

function roleFindings(
  name: string,
  said: ReadonlyMap<string, string>,
  settings: Readonly<Record<string, string>>,
  { kind, options }: RedisLocation,
): Finding[] {
  if (said.get('role') === 'slave') {
    const primary = `${said.get('master_host')}:${said.get('master_port')}`;
    return [
      {
        check: 'role',
        level: 'broken',
        message: `${name} is a read-only replica of ${primary}: name that one, or its Sentinels (sentinel=NAME)`,
        data: { primary },
      },
    ];
  }
  const replicas = Number(said.get('connected_slaves') ?? 0);
  const data = { replicas, waitFor: options.wait?.replicas ?? 0 };
  if (options.wait !== undefined && options.wait.replicas > replicas) {
    return [
      {
        check: 'replicas',
        level: 'broken',
        message: `${name} has ${replicas} replicas connected, and wait=${options.wait.replicas} asks for more: no write would count`,
        data,
      },
    ];
  }
  if (replicas === 0) {
    const away =
      kind === 'server' ? 'while it is away nobody is elected' : 'nobody takes over from it';
    return [{ check: 'replicas', level: 'note', message: `${name} has none: ${away}`, data }];
  }
  const needed = Number(settings['min-replicas-to-write'] ?? 0);
  const many = `${name} has ${replicas} ${replicas === 1 ? 'replica' : 'replicas'}`;
  if (options.wait === undefined && needed === 0) {
    return [
      {
        check: 'replicas',
        level: 'warn',
        message:
          `${many}, and confirms writes before they have them: where one takes over while this server is ` +
          'cut off and lives on, two may believe, and tokens may be equal; wait=1 or min-replicas-to-write ' +
          'make that rarer',
        data,
      },
    ];
  }
  return [{ check: 'replicas', level: 'ok', message: `${many}`, data }];
}

function durabilityFinding(
  name: string,
  said: ReadonlyMap<string, string>,
  settings: Readonly<Record<string, string>>,
  { options }: RedisLocation,
): Finding {
  const hasLog = said.get('aof_enabled') === '1';
  const fsync = settings['appendfsync'];
  const data = {
    appendOnly: hasLog,
    appendfsync: fsync ?? null,
    durable: options.durable === true,
  };
  const finding = (level: Finding['level'], message: string): Finding => ({
    check: 'durability',
    level,
    message: `${name} ${message}`,
    data,
  });
  if (said.get('aof_last_write_status') === 'err') {
    return finding('broken', 'cannot write its append-only file: look at its disk and its log');
  }
  const isDurable = hasLog && fsync === 'always';
  if (options.durable === true && !isDurable) {
    return finding(
      fsync === undefined && hasLog ? 'note' : 'broken',
      `${hasLog ? `has appendfsync ${fsync ?? 'not told'}` : 'has no append-only file'}, and durable=true ` +
        'says that it forgets nothing: set appendonly yes and appendfsync always, or leave durable out',
    );
  }
  if (isDurable) return finding('ok', 'writes every change to disk (appendfsync always)');
  const loses = hasLog
    ? `may forget the last ${fsync === 'no' ? 'half minute' : 'second'} when it crashes (appendfsync ${fsync ?? 'not told'})`
    : 'may be empty after a restart (no append-only file)';
  return finding(
    'note',
    `${loses}: then nobody new leads for one lease; where no candidate that runs remembers the last token, and the ` +
      "server's clock was set back, tokens may fall: give token-floor=TOKEN then",
  );
}

/** Records have no time to live, so only who evicts any key may hit them. */
function memoryFinding(
  name: string,
  said: ReadonlyMap<string, string>,
  settings: Readonly<Record<string, string>>,
): Finding {
  const policy = said.get('maxmemory_policy') ?? settings['maxmemory-policy'];
  const max = Number(said.get('maxmemory') ?? 0);
  const data = { policy: policy ?? null, maxmemoryBytes: max };
  const finding = (level: Finding['level'], message: string): Finding => ({
    check: 'eviction',
    level,
    message: `${name} ${message}`,
    data,
  });
  if (policy === undefined) return finding('note', 'does not tell its maxmemory-policy');
  if (!policy.startsWith('allkeys')) {
    return finding('ok', `evicts no records (maxmemory-policy ${policy})`);
  }
  return finding(
    max > 0 ? 'warn' : 'note',
    `evicts any key when its memory is full (maxmemory-policy ${policy}` +
      `${max > 0 ? '' : ', no maxmemory is set'}): a record that is evicted is a term that ends; set ` +
      'noeviction, or hold elections on a server of their own',
  );
}

/** How long a takeover takes after a crash. */
export function takeoverFinding(
  { leaseMs }: Timing,
  { options }: Pick<RedisLocation, 'options'>,
): Finding {
  const stepMs = options.age === 'off' ? 0 : parseDuration('clock-step', options.clockStep ?? '2s');
  return {
    check: 'takeover',
    level: 'note',
    message:
      `after a crash somebody leads within ${formatDuration(leaseMs + stepMs)} of the last renewal` +
      (options.age === 'off' ? ', who comes later waits as long from when it came' : '') +
      `; the first term of all begins ${formatDuration(leaseMs)} after its first candidate`,
    data: { leaseMs },
  };
}

function clockUse({ options }: RedisLocation): string {
  if (options.age === 'off') return 'no election depends on it (age=off)';
  const step = options.clockStep ?? '2s';
  return `how far off it is does not matter, only that nobody sets it forward by more than ${step} while somebody leads (clock-step)`;
}
