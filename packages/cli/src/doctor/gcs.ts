/** Whether a bucket of Cloud Storage will do: rights, preconditions, settings that hurt, clocks. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Backend, Timing } from 'incumbent';
import { formatDuration } from 'incumbent';
import type { Examination } from '../context.ts';
import type { GcsConnection } from '../gcs/connect.ts';
import { nameOf, statusOf } from '../gcs/connect.ts';
import type { GcsLocation } from '../gcs/url.ts';
import { reasonOf } from '../url/reach.ts';
import {
  newObjectName,
  noElection,
  race,
  recordsADay,
  refusalOf,
  takeoverFinding,
  writers,
} from './bucket.ts';
import type { Finding } from './finding.ts';
import type { Scratch, Unmeasured } from './scratch.ts';
import { serverClockFinding } from './server-clock.ts';

/** On an object that does not exist, and then on one that does. */
const races = 4;
/** Cloud Storage takes about one write of an object in a second. */
const pauseMs = 1_100;
/** The permissions that an election uses. Replacing an object also needs the right to delete it. */
const needed = ['storage.objects.get', 'storage.objects.create', 'storage.objects.delete'];

export async function examineGcs(
  connection: GcsConnection,
  backend: Backend,
  { timing, signal }: Examination,
): Promise<readonly Finding[]> {
  const { location } = connection;
  const refusal = await refusalOf(backend, timing, (election) => election.inspect({ signal }));
  if (refusal !== undefined) return [{ check: 'server', level: 'broken', message: refusal }];
  const objects = new RawObjects(connection);
  const rights = await rightsFinding(connection, signal);
  const settings = await settingsOf(connection, signal);
  const mayTry = rights.level !== 'broken' && !keepsObjects(settings);
  return [
    { check: 'server', level: 'ok', message: nameOf(location), data: { bucket: location.bucket } },
    rights,
    ...(mayTry ? [await conditionsFinding(objects, location, signal)] : []),
    ...bucketFindings(settings, location, timing),
    takeoverFinding(timing, location.options, 3_000),
    await serverClockFinding(() => objects.serverMs(), clockUse(location), 1_000),
  ];
}

/** The election to measure on. */
export async function scratchOnGcs(
  unique: string,
  connection: GcsConnection,
  backend: Backend,
  signal: AbortSignal,
): Promise<Scratch | Unmeasured> {
  const refusal = await refusalOf(backend, undefined, (election) => election.inspect({ signal }));
  if (refusal !== undefined) return noElection;
  const { level } = await rightsFinding(connection, signal);
  if (level === 'broken') return { unmeasured: 'we may not write objects there', mayLook: true };
  if (keepsObjects(await settingsOf(connection, signal))) {
    return { unmeasured: 'what is written there cannot be removed', mayLook: true };
  }
  return {
    name: unique,
    backend,
    look: async () => [],
    remove: () => new RawObjects(connection).remove(unique),
  };
}

/** Objects as they are, without the library's care. */
class RawObjects {
  readonly #connection: GcsConnection;

  constructor(connection: GcsConnection) {
    this.#connection = connection;
  }

  /** @returns the generation that it has now; undefined: the write was refused */
  async put(name: string, generation: string): Promise<string | undefined> {
    const file = this.#file(name);
    try {
      await file.save(randomBytes(16).toString('hex'), {
        resumable: false,
        validation: false,
        preconditionOpts: { ifGenerationMatch: generation },
        metadata: { contentType: 'text/plain', cacheControl: 'no-store' },
      });
    } catch (error) {
      if ([409, 412, 429].includes(statusOf(error) ?? 0)) return undefined;
      throw error;
    }
    return String((file.metadata as { readonly generation: unknown }).generation);
  }

  async remove(name: string): Promise<void> {
    await this.#file(name).delete({ ignoreNotFound: true });
  }

  /** The `Date` of an answer. */
  serverMs(): Promise<number> {
    const source = this.#file('.incumbent').createReadStream({ validation: false });
    return new Promise((resolve, reject) => {
      source.on('response', ({ headers }: { readonly headers: Readonly<Record<string, string>> }) =>
        resolve(Date.parse(headers['date'] ?? '')),
      );
      // An object that is not there is an answer, too.
      source.on('error', reject);
      source.resume();
    });
  }

  #file(name: string): ReturnType<ReturnType<GcsConnection['storage']['bucket']>['file']> {
    const { storage, location } = this.#connection;
    return storage.bucket(location.bucket).file(location.prefix + name);
  }
}

/** Ten write at the same time, on what is not there and on what is: exactly one may win, each time. */
async function conditionsFinding(
  objects: RawObjects,
  { endpoint }: GcsLocation,
  signal: AbortSignal,
): Promise<Finding> {
  const check = 'conditions';
  const name = newObjectName();
  let generation = '0';
  try {
    for (let nth = 1; nth <= races; nth += 1) {
      const expected = generation;
      const taken = await race(() => objects.put(name, expected));
      if (taken.length !== 1) {
        const message =
          `of ${writers} writes on one generation ${taken.length} were taken: no election can be ` +
          'held there';
        return { check, level: 'broken', message };
      }
      generation = taken[0] as string;
      if (endpoint === undefined && nth < races) await sleep(pauseMs, undefined, { signal });
    }
    return {
      check,
      level: 'ok',
      message: `honoured: of ${writers} who wrote at the same time exactly one won, ${races} times`,
      data: { writers, races },
    };
  } finally {
    await objects.remove(name).catch(() => {});
  }
}

async function rightsFinding(
  { storage, location: { bucket } }: GcsConnection,
  signal: AbortSignal,
): Promise<Finding> {
  const check = 'rights';
  let allowed: Record<string, boolean> | undefined;
  try {
    [allowed] = await storage.bucket(bucket).iam.testPermissions(needed);
  } catch (error) {
    signal.throwIfAborted();
    return { check, level: 'note', message: `not known: ${reasonOf(error)}` };
  }
  const missing = needed.filter((each) => allowed?.[each] !== true);
  if (missing.length === 0) {
    return { check, level: 'ok', message: 'we may read, write and replace objects there' };
  }
  return {
    check,
    level: 'broken',
    message:
      `we lack ${missing.join(', ')}: the role roles/storage.objectUser on the bucket has all that an ` +
      'election needs',
    data: { missing },
  };
}

interface BucketSettings {
  readonly versioning?: { readonly enabled?: boolean };
  readonly retentionPolicy?: { readonly retentionPeriod?: string };
  readonly defaultEventBasedHold?: boolean;
  readonly softDeletePolicy?: { readonly retentionDurationSeconds?: string };
}

/** @returns why they are not known, where they are not */
async function settingsOf(
  { storage, location: { bucket } }: GcsConnection,
  signal: AbortSignal,
): Promise<BucketSettings | string> {
  try {
    const [settings = {}] = await storage.bucket(bucket).getMetadata();
    return settings as BucketSettings;
  } catch (error) {
    signal.throwIfAborted();
    return reasonOf(error);
  }
}

/** Nothing can be replaced there, nor removed. */
function keepsObjects(settings: BucketSettings | string): boolean {
  if (typeof settings === 'string') return false;
  return settings.retentionPolicy !== undefined || settings.defaultEventBasedHold === true;
}

function bucketFindings(
  settings: BucketSettings | string,
  { bucket }: GcsLocation,
  timing: Timing,
): readonly Finding[] {
  const check = 'bucket';
  if (typeof settings === 'string') {
    const message = `its settings are not known (storage.buckets.get): ${settings}`;
    return [{ check, level: 'note', message }];
  }
  const found: Finding[] = [];
  const { versioning, softDeletePolicy } = settings;
  const kept = Number(softDeletePolicy?.retentionDurationSeconds ?? 0);
  const aDay = recordsADay(timing);
  if (keepsObjects(settings)) {
    found.push({
      check,
      level: 'broken',
      message:
        'it keeps every object from being replaced (retention policy or default hold), and an election ' +
        'is one object that is replaced every few seconds: take another bucket',
    });
  }
  if (versioning?.enabled === true) {
    found.push({
      check,
      level: 'warn',
      message:
        `it keeps old versions: each leader leaves ${aDay} of them a day; have them expire by a ` +
        'lifecycle rule (numNewerVersions), or take a bucket without versions',
    });
  }
  if (kept > 0) {
    found.push({
      check,
      level: 'warn',
      message:
        `it keeps what was replaced for ${formatDuration(kept * 1_000)} (soft delete) and bills for it: ` +
        `each leader leaves ${aDay} records a day; \`gcloud storage buckets update gs://${bucket} ` +
        '--clear-soft-delete` ends that',
    });
  }
  if (found.length > 0) return found;
  const message = 'it keeps nothing of what was replaced: a renewal leaves nothing behind';
  return [{ check, level: 'ok', message }];
}

function clockUse({ options }: GcsLocation): string {
  return (
    'candidates of ours do not depend on it; Go programs on vimeo/leaderelection beside them must be ' +
    `within ${options.maxClockSkew ?? '5s'} of it (max-clock-skew)`
  );
}
