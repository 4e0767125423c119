import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import type { Duration } from '../../base/duration.ts';
import { parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';

/** The options of `redis`. */
export interface RedisOptions {
  /** The prefix of our keys and of our channel. Default `incumbent:`. */
  readonly prefix?: string;
  /**
   * `on` (default): a record that is old by Redis' own clock is known to be old at the first look.
   * `off`: every candidate finds out by itself, by waiting one lease.
   */
  readonly age?: 'on' | 'off';
  /** The most by which Redis' clock may be set forward during a lease. Default 2 s. */
  readonly clockStep?: Duration;
  /**
   * No term has this token or a lower one. Raise it after Redis has lost data, to the highest token
   * that any of your resources has seen: they refuse the terms below it. Default 0.
   */
  readonly tokenFloor?: bigint;
  /**
   * A write counts only once so many replicas have it. It counts as unknown when they do not have
   * it within `timeout` (default 1 s). Makes losing a confirmed write by a fail-over rarer, not
   * impossible. The client's connection waits meanwhile: use one of its own. Not on a cluster.
   */
  readonly wait?: { readonly replicas: number; readonly timeout?: Duration };
  /**
   * True: Redis never loses a write that it has confirmed. That takes `appendfsync always`, and no
   * fail-over to a replica. Then no candidate waits for one lease after a restart. Default false.
   */
  readonly durable?: boolean;
  /**
   * True (default): a copy of the client subscribes to news, which wakes waiting candidates. False:
   * they look every `pollEvery`.
   */
  readonly listen?: boolean;
}

export interface CheckedOptions {
  readonly prefix: string;
  readonly clockStepMs: number | undefined;
  readonly tokenFloor: bigint;
  readonly wait: { readonly replicas: number; readonly timeoutMs: number } | undefined;
  readonly durable: boolean;
  readonly listen: boolean;
}

const known: Readonly<Record<keyof RedisOptions, true>> = {
  prefix: true,
  age: true,
  clockStep: true,
  tokenFloor: true,
  wait: true,
  durable: true,
  listen: true,
};

/** @throws InvalidOptionError */
export function checkOptions(options: RedisOptions): CheckedOptions {
  checkNames('redis()', options, known);
  const { prefix = 'incumbent:', age = 'on', clockStep, tokenFloor = 0n } = options;
  if (typeof prefix !== 'string') {
    throw new InvalidOptionError(`prefix must be a string, not ${describeValue(prefix)}`);
  }
  if (prefix.includes('{}')) {
    throw new InvalidOptionError(
      `prefix ${describeValue(prefix)} has an empty hash tag: the keys of one election would be on ` +
        'several nodes of a cluster; leave out "{}"',
    );
  }
  if (age !== 'on' && age !== 'off') {
    throw new InvalidOptionError(`age must be "on" or "off", not ${describeValue(age)}`);
  }
  if (age === 'off' && clockStep !== undefined) {
    throw new InvalidOptionError('clockStep means nothing with age "off": leave one of them out');
  }
  if (typeof tokenFloor !== 'bigint' || tokenFloor < 0n) {
    throw new InvalidOptionError(
      `tokenFloor must be a bigint of 0n or more, such as 1000n, not ${describeValue(tokenFloor)}`,
    );
  }
  return {
    prefix,
    clockStepMs: age === 'off' ? undefined : parseDuration('clockStep', clockStep ?? 2_000),
    tokenFloor,
    wait: checkWait(options.wait),
    durable: checkFlag('durable', options.durable, false),
    listen: checkFlag('listen', options.listen, true),
  };
}

function checkWait(wait: RedisOptions['wait']): CheckedOptions['wait'] {
  if (wait === undefined) return undefined;
  const replicas = (wait as Partial<typeof wait> | null)?.replicas;
  if (!Number.isInteger(replicas) || (replicas as number) < 1) {
    throw new InvalidOptionError(
      `wait must be like { replicas: 1, timeout: "1s" }, with 1 replica or more, not ${describeValue(wait)}`,
    );
  }
  checkNames('wait', wait, { replicas: true, timeout: true });
  const timeoutMs = parseDuration('wait.timeout', wait.timeout ?? 1_000);
  // Redis takes 0 for "for ever".
  if (timeoutMs < 1) throw new InvalidOptionError('wait.timeout must be 1 ms or longer');
  return { replicas: replicas as number, timeoutMs: Math.round(timeoutMs) };
}

function checkFlag(name: string, value: unknown, otherwise: boolean): boolean {
  if (value === undefined) return otherwise;
  if (typeof value === 'boolean') return value;
  throw new InvalidOptionError(`${name} must be true or false, not ${describeValue(value)}`);
}
