import type { LeaseLister, LeasePage, ListedLease } from '../../mechanisms/lease/listing.ts';
import type { Reading } from '../../mechanisms/lease/store.ts';
import { decodeCandidates } from '../../record/candidate-entry.ts';
import { decodeRecordOf } from '../../record/lease-record.ts';
import type { RedisDriver, Send } from './driver.ts';
import { asStoreError, keyLocation } from './errors.ts';
import { electionOf, keysOf, patternOf } from './keys.ts';
import type { CheckedOptions } from './options.ts';
import { texts } from './run-script.ts';

/** A server looks at so many keys for a page. Most of them may be those of other programs. */
const keysLookedAt = '1000';

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
  /** What we write before a key, and what the client writes before that. */
  const ownPrefix = driver.ownPrefix + options.prefix;
  const prefix = driver.clientPrefix + ownPrefix;
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
        const isFirst = place.cursor === '0';
        const [now, found] = await Promise.all([
          isFirst || wanted === 'summaries' ? askServer(primary) : undefined,
          scan(primary, place.cursor),
        ]);
        hasRead = true;
        const listed = await Promise.all(
          [...found.keys].map(([election, kinds]) =>
            wanted === 'names' || now === undefined
              ? named(election, kinds, signal)
              : read(election, now, signal),
          ),
        );
        const isOver = found.cursor === '0';
        const next: Place = {
          primaries: isOver ? others : place.primaries,
          cursor: found.cursor,
        };
        return {
          elections: listed.filter((each) => each !== undefined),
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
    const keys = new Map<string, Set<string>>();
    for (const key of texts(names)) {
      const found = electionOf(prefix, key);
      if (found === undefined) continue;
      const kinds = keys.get(found.election) ?? new Set();
      keys.set(found.election, kinds.add(found.kind));
    }
    return { cursor: String(next), keys };
  }

  function send(key: string, args: readonly string[], signal: AbortSignal): Promise<unknown> {
    return driver.send(key, args, signal);
  }

  /** @returns undefined for a key that is not ours, and an election that was only looked at */
  async function named(
    name: string,
    kinds: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<ListedLease | undefined> {
    const keys = keysOf(ownPrefix, name);
    const isLed =
      kinds.has('record') &&
      Number(await unlessForeign(send(keys.record, ['HEXISTS', keys.record, 'record'], signal))) ===
        1;
    const isElection =
      isLed ||
      (kinds.has('candidates') && (await waitingIn(keys.candidates, 0, signal)).length > 0);
    return isElection ? { name, reading: () => ({ record: undefined, version: '' }) } : undefined;
  }

  async function read(
    name: string,
    now: ServerNow,
    signal: AbortSignal,
  ): Promise<ListedLease | undefined> {
    const keys = keysOf(ownPrefix, name);
    const fields = ['record', 'version', 'writtenAt', 'server', 'life', 'bornAt'];
    const [kept, waiting] = await Promise.all([
      // A scan may find the two keys on different pages. Both are read with the first one.
      unlessForeign(send(keys.record, ['HMGET', keys.record, ...fields], signal)),
      waitingIn(keys.candidates, now.nowMs, signal),
    ]);
    const [text, version, writtenAt, server, life, bornAt] = fieldsOf(kept);
    if (text === undefined && waiting.length === 0) return undefined;
    const reading = (): Reading => {
      const isSameLife = server === now.server && life !== undefined;
      const lifeAgeMs = isSameLife ? Math.max(0, now.nowMs - Number(bornAt ?? 0)) : 0;
      const ageMs = Math.min(Math.max(0, now.nowMs - Number(writtenAt ?? now.nowMs)), lifeAgeMs);
      const location = keyLocation(driver.clientPrefix + keys.record);
      return {
        record: text === undefined ? undefined : decodeRecordOf(name, text, location),
        version: version ?? '',
        ...(clockStepMs === undefined ? {} : { ageMs, lifeAgeMs }),
        ...(durable ? {} : { life: isSameLife ? life : now.server }),
      };
    };
    return { name, waiting, reading };
  }

  /** @param nowMs 0: also those that are overdue */
  async function waitingIn(key: string, nowMs: number, signal: AbortSignal) {
    const entries = texts(await unlessForeign(send(key, ['HVALS', key], signal)));
    return decodeCandidates(
      entries.flatMap((entry) => {
        const [, untilMs, candidate] = /^(\d+) (.*)$/s.exec(entry) ?? [];
        return candidate !== undefined && Number(untilMs) > nowMs ? candidate : [];
      }),
    );
  }
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

/** A key of that name may be another program's, and of another type. */
async function unlessForeign(reply: Promise<unknown>): Promise<unknown> {
  try {
    return await reply;
  } catch (error) {
    if (/\bWRONGTYPE\b/.test(String(error))) return undefined;
    throw error;
  }
}

function fieldsOf(reply: unknown): readonly (string | undefined)[] {
  const fields = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
  return fields.map((field) => (field === null || field === undefined ? undefined : String(field)));
}
