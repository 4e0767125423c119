/** Whether an S3 endpoint honours the conditions that elections rely on, and our rights there. */
import { randomBytes } from 'node:crypto';
import type { Backend, Election, Timing } from 'incumbent';
import type { Examination } from '../context.ts';
import type { S3Connection } from '../s3/connect.ts';
import { nameOf, statusOf } from '../s3/connect.ts';
import type { S3Location } from '../s3/url.ts';
import { reasonOf } from '../url/reach.ts';
import {
  fixedName,
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

/** On ETags, after the one for an object that is not there. */
const races = 3;

export async function examineS3(
  connection: S3Connection,
  backend: Backend,
  { timing, signal }: Examination,
): Promise<readonly Finding[]> {
  const { location } = connection;
  const refusal = await refusalOf(backend, timing, tryElection(signal));
  if (refusal !== undefined) return [{ check: 'server', level: 'broken', message: refusal }];
  const objects = new RawObjects(connection, signal);
  const mayRemove = await objects.mayRemove();
  return [
    { check: 'server', level: 'ok', message: nameOf(location), data: { bucket: location.bucket } },
    rightsFinding(mayRemove),
    await conditionsFinding(objects, mayRemove),
    await versioningFinding(connection, timing, signal),
    takeoverFinding(timing, location.options, 4_000),
    await serverClockFinding(() => objects.serverMs(), clockUse(location), 1_000),
  ];
}

/** The election to measure on. */
export async function scratchOnS3(
  unique: string,
  connection: S3Connection,
  backend: Backend,
  signal: AbortSignal,
): Promise<Scratch | Unmeasured> {
  const objects = new RawObjects(connection, signal);
  const refusal = await refusalOf(backend, undefined, tryElection(signal));
  if (refusal !== undefined) return noElection;
  const look = async () => [];
  if (!(await objects.mayRemove())) return { name: fixedName, backend, look };
  return {
    name: unique,
    backend,
    look,
    remove: (until) => new RawObjects(connection, until).remove(unique),
  };
}

const tryElection = (signal: AbortSignal) => async (election: Election) => {
  await election.inspect({ signal });
  await election.init({ signal });
};

/**
 * Objects without the care of the library, which would repeat requests that must not be repeated
 * here.
 */
class RawObjects {
  readonly #connection: S3Connection;
  readonly #signal: AbortSignal;

  constructor(connection: S3Connection, signal: AbortSignal) {
    this.#connection = connection;
    this.#signal = signal;
  }

  /** @returns the ETag that it has now; undefined: the write was refused */
  async put(
    name: string,
    condition: { readonly IfMatch: string } | { readonly IfNoneMatch: '*' },
  ): Promise<string | undefined> {
    const { PutObjectCommand } = this.#connection.commands;
    const input = {
      ...this.#name(name),
      Body: randomBytes(16).toString('hex'),
      ContentType: 'text/plain',
      ...condition,
    };
    try {
      const { ETag = '' } = await this.#send(new PutObjectCommand(input));
      return ETag.replace(/^(?:W\/)?"(.*)"$/s, '$1');
    } catch (error) {
      if ([404, 409, 412].includes(statusOf(error) ?? 0)) return undefined;
      throw error;
    }
  }

  async remove(name: string): Promise<void> {
    await this.#send(new this.#connection.sdk.DeleteObjectCommand({ ...this.#name(name) }));
  }

  /** A caller that may remove objects may also remove one that does not exist. */
  async mayRemove(): Promise<boolean> {
    try {
      await this.remove(newObjectName());
      return true;
    } catch (error) {
      if (statusOf(error) === undefined) throw error;
      return false;
    }
  }

  /** The `Date` of an answer. */
  async serverMs(): Promise<number> {
    const command = new this.#connection.commands.GetObjectCommand(this.#name('.incumbent-probe'));
    let date = '';
    const listen = (next: (request: unknown) => Promise<unknown>) => async (request: unknown) => {
      const answer = (await next(request)) as { readonly response?: AnsweredHeaders };
      date = answer.response?.headers?.['date'] ?? '';
      return answer;
    };
    command.middlewareStack.add(
      listen as never,
      { step: 'deserialize', name: 'doctorDate' } as never,
    );
    const { Body } = await this.#send(command);
    await Body?.transformToString();
    return Date.parse(date);
  }

  #name(name: string): { Bucket: string; Key: string } {
    const { bucket, prefix } = this.#connection.location;
    return { Bucket: bucket, Key: `${prefix}${name}` };
  }

  async #send(command: object): Promise<{
    readonly ETag?: string;
    readonly Body?: { transformToString(): Promise<string> };
  }> {
    const sent = this.#connection.client.send(command as never, { abortSignal: this.#signal });
    return (await sent) as object;
  }
}

interface AnsweredHeaders {
  readonly headers?: Readonly<Record<string, string>>;
}

/** Ten write at the same time, on what is not there and on what is: exactly one may win, each time. */
async function conditionsFinding(objects: RawObjects, mayRemove: boolean): Promise<Finding> {
  const name = mayRemove ? newObjectName() : `.${fixedName}-race`;
  const broken = (message: string): Finding => ({
    check: 'conditions',
    level: 'broken',
    message: `${message}: no election can be held there`,
  });
  try {
    const made = await race(() => objects.put(name, { IfNoneMatch: '*' }));
    if (mayRemove ? made.length !== 1 : made.length > 1) {
      return broken(
        `of ${writers} writes of an object that was not there ${made.length} were taken`,
      );
    }
    let last = made[0];
    let form: 'quoted' | 'unquoted' | undefined;
    for (const each of ['quoted', 'unquoted'] as const) {
      if (last === undefined || form !== undefined) break;
      const tag = await objects.put(name, { IfMatch: each === 'quoted' ? `"${last}"` : last });
      if (tag !== undefined) [last, form] = [tag, each];
    }
    if (last === undefined || form === undefined) {
      return {
        check: 'conditions',
        level: 'ok',
        message:
          'honoured, as far as could be seen without the right to remove what is made for it',
      };
    }
    for (let i = 0; i < races; i += 1) {
      const IfMatch: string = form === 'quoted' ? `"${last}"` : last;
      const taken = await race(() => objects.put(name, { IfMatch }));
      if (taken.length !== 1) {
        return broken(`of ${writers} writes on one ETag ${taken.length} were taken`);
      }
      last = taken[0] as string;
    }
    return {
      check: 'conditions',
      level: 'ok',
      message:
        `honoured: of ${writers} who wrote at the same time exactly one won, ${races + 1} times ` +
        `(ETags ${form})`,
      data: { writers, races: races + 1, etagQuotes: form },
    };
  } finally {
    if (mayRemove) await objects.remove(name).catch(() => {});
  }
}

function rightsFinding(mayRemove: boolean): Finding {
  const message = 'we may read, write and list objects there';
  return {
    check: 'rights',
    level: 'ok',
    message: mayRemove
      ? `${message}, and remove them, which no election needs`
      : `${message}, and not remove them, which no election needs: some that this command makes stay`,
    data: { mayRemove },
  };
}

async function versioningFinding(
  { client, sdk, location: { bucket } }: S3Connection,
  timing: Timing,
  signal: AbortSignal,
): Promise<Finding> {
  const check = 'versioning';
  let status: string | undefined;
  try {
    const command = new sdk.GetBucketVersioningCommand({ Bucket: bucket });
    const output = await client.send(command as never, { abortSignal: signal });
    status = (output as { readonly Status?: string }).Status;
  } catch (error) {
    signal.throwIfAborted();
    return { check, level: 'note', message: `not known: ${reasonOf(error)}` };
  }
  if (status !== 'Enabled') {
    return { check, level: 'ok', message: 'off: a renewal leaves nothing behind' };
  }
  return {
    check,
    level: 'warn',
    message:
      `on: each leader leaves ${recordsADay(timing)} versions of its record a day; have them expire by a ` +
      'lifecycle rule (NoncurrentVersionExpiration), or take a bucket without versions',
  };
}

function clockUse({ options }: S3Location): string {
  if (options.age === 'off') return 'no election depends on it (age=off)';
  const step = options.clockStep ?? '2s';
  return `how far off it is does not matter, only that nobody sets it forward by more than ${step} while somebody leads (clock-step)`;
}
