import type { CandidateInfo } from '../../base/candidate.ts';
import type { Wanted } from '../../core/listing.ts';
import type { LeaseLister, LeasePage, ListedLease } from '../../mechanisms/lease/listing.ts';
import type { Reading } from '../../mechanisms/lease/store.ts';
import { decodeCandidates } from '../../record/candidate-entry.ts';
import { decodeRecordOf, isOfShards } from '../../record/lease-record.ts';
import type { RedisDriver, Send } from './driver.ts';
import { asStoreError, keyLocation } from './errors.ts';
import { electionOf, keysOf, patternOf } from './keys.ts';
import type { CheckedOptions } from './options.ts';
import { runScript, texts } from './run-script.ts';
import { surveyScript } from './scripts.ts';

/** A server looks at so many keys for a page. Most of them may be those of other programs. */
const keysLookedAt = '1000';

/** A script reads so many elections. Meanwhile the server does nothing else. */
const electionsAtOnce = 100;

/** The clock of a server, and what it calls itself in this life of its. */
interface ServerNow {
  readonly server: string;
  readonly nowMs: number;
}

/** Where a listing is: SCAN goes over one server after the other. */
interface Place {
  readonly primaries: readonly Send[];
  readonly cursor: string;
}

/** The keys with our prefix, as SCAN finds them, on every server that holds data. */
export function redisLister(driver: RedisDriver, options: CheckedOptions): LeaseLister {
  const { clockStepMs, durable } = options;
  /** We write this before a key. The client writes its own prefix before that. */
  const ownPrefix = driver.ownPrefix + options.prefix;
  const prefix = driver.clientPrefix + ownPrefix;
  // On a cluster, only the keys of one election are on one node for certain.
  const atOnce = driver.together === undefined ? 1 : electionsAtOnce;
  let hasRead = false;
  return {
    forgets: !durable,
    ...(clockStepMs === undefined ? {} : { clockStepMs }),
    async page(after, wanted, signal): Promise<LeasePage> {
      try {
        const place = (after ?? {
          primaries: await driver.primaries(),
          cursor: '0',
        }) as Place;
        const [primary, ...others] = place.primaries;
        if (primary === undefined) return { elections: [], next: undefined };
        const [now, found] = await Promise.all([askServer(primary), scan(primary, place.cursor)]);
        hasRead = true;
        const parts = partsOf([...found.elections], atOnce);
        const read = await Promise.all(parts.map((part) => readAll(part, wanted, now, signal)));
        const isOver = found.cursor === '0';
        const next: Place = {
          primaries: isOver ? others : place.primaries,
          cursor: found.cursor,
        };
        return {
          elections: read.flat(),
          next: next.primaries.length === 0 ? undefined : next,
        };
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        throw asStoreError(error, `${prefix}…`, driver.description, hasRead);
      }
    },
  };

  async function scan(primary: Send, cursor: string) {
    const pattern = patternOf(prefix);
    const reply = await primary(['SCAN', cursor, 'MATCH', pattern, 'COUNT', keysLookedAt]);
    const [next, names] = reply as readonly [unknown, readonly unknown[]];
    // Either key shows an election. A scan may find the two on different pages.
    const elections = new Set<string>();
    for (const key of texts(names)) {
      const election = electionOf(prefix, key);
      if (election !== undefined) elections.add(election);
    }
    return { cursor: String(next), elections };
  }

  async function readAll(
    names: readonly string[],
    wanted: Wanted,
    now: ServerNow,
    signal: AbortSignal,
  ): Promise<readonly ListedLease[]> {
    const keys = names.flatMap((name) => {
      const { record, candidates } = keysOf(ownPrefix, name);
      return [record, candidates];
    });
    const send: Send = (words) => driver.send(keys[0] ?? '', words, signal);
    const fields = wanted === 'names' ? ['record'] : summaryFields;
    const replies = await runScript(send, surveyScript, keys, fields);
    return names.flatMap((name, index) => {
      const [kept, entries] = ((replies as readonly unknown[])[index] ?? []) as readonly unknown[];
      return listed(name, fieldsOf(kept), texts(entries), now) ?? [];
    });
  }

  /** @returns undefined for a key that is not ours, and an election that was only looked at */
  function listed(
    name: string,
    [first, version, writtenAt, server, life, bornAt]: readonly (string | undefined)[],
    entries: readonly string[],
    { nowMs, server: present }: ServerNow,
  ): ListedLease | undefined {
    const waiting = waitingIn(entries, nowMs);
    if (first === undefined && waiting.length === 0) return undefined;
    const reading = (): Reading => {
      const isSameLife = server === present && life !== undefined;
      const lifeAgeMs = isSameLife ? Math.max(0, nowMs - Number(bornAt ?? 0)) : 0;
      const ageMs = Math.min(Math.max(0, nowMs - Number(writtenAt ?? nowMs)), lifeAgeMs);
      const location = keyLocation(driver.clientPrefix + keysOf(ownPrefix, name).record);
      return {
        record: first === undefined ? undefined : decodeRecordOf(name, first, location),
        version: version ?? '',
        ...(clockStepMs === undefined ? {} : { ageMs, lifeAgeMs }),
        ...(durable ? {} : { life: isSameLife ? life : present }),
      };
    };
    const hasShards = first !== undefined && isOfShards(first);
    return { name, waiting, reading, hasShards };
  }
}

/** The first one shows that there is a record. */
const summaryFields = ['record', 'version', 'writtenAt', 'server', 'life', 'bornAt'];

function waitingIn(entries: readonly string[], nowMs: number): readonly CandidateInfo[] {
  return decodeCandidates(
    entries.flatMap((entry) => {
      const [, untilMs, candidate] = /^(\d+) (.*)$/s.exec(entry) ?? [];
      return candidate !== undefined && Number(untilMs) > nowMs ? candidate : [];
    }),
  );
}

function partsOf(names: readonly string[], size: number): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(names.length / size) }, (_, i) =>
    names.slice(i * size, (i + 1) * size),
  );
}

async function askServer(send: Send): Promise<ServerNow> {
  const [replication, server, time] = await Promise.all([
    send(['INFO', 'replication']),
    send(['INFO', 'server']),
    send(['TIME']),
  ]);
  const runId = /run_id:(\w+)/.exec(String(server))?.[1];
  if (runId === undefined) throw new Error('NORUNID this server does not tell its run_id');
  if (/role:slave/.test(String(replication))) {
    throw new Error('READONLY this server is a read-only replica');
  }
  const replId = /master_replid:(\w+)/.exec(String(replication))?.[1] ?? '';
  const [seconds, microseconds] = texts(time);
  return {
    server: `${runId}:${replId}`,
    nowMs: Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000),
  };
}

function fieldsOf(reply: unknown): readonly (string | undefined)[] {
  const fields = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
  return fields.map((field) => (field === null || field === undefined ? undefined : String(field)));
}
