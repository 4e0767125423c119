import { checkOptions, defaultMaxFrameBytes, namesOf } from '@incumbent/zookeeper/internal';

export interface FakeZooKeeperOptions {
  /** Default 2000. Sessions end in steps of it; containers and TTLs are looked at in each. */
  readonly tickTimeMs?: number;
  /** The shortest session timeout that is granted. Default 2 ticks. */
  readonly minSessionTimeoutMs?: number;
  /** The longest session timeout that is granted. Default 20 ticks. */
  readonly maxSessionTimeoutMs?: number;
  /** Default 0: one that is free. */
  readonly port?: number;
  /** `user:base64(sha1(user:password))` of the user to whom no ACL applies. */
  readonly superDigest?: string;
  /** Longer requests close the connection without a reply. Default 1_048_575. */
  readonly maxFrameBytes?: number;
  /** Notifications carry the zxid of the change, as from 3.9 on, instead of -1. */
  readonly notificationZxid?: boolean;
  /** The upper half of the zxids. Default 1. */
  readonly epoch?: number;
  /** Time goes on by itself instead of by `advance`. */
  readonly realTime?: boolean;
  /** How many of the last requests `requests` keeps. Default 10_000. */
  readonly maxLoggedRequests?: number;
}

const names = namesOf<FakeZooKeeperOptions>({
  ...{ tickTimeMs: true, minSessionTimeoutMs: true, maxSessionTimeoutMs: true, port: true },
  ...{ superDigest: true, maxFrameBytes: true, notificationZxid: true, epoch: true },
  ...{ realTime: true, maxLoggedRequests: true },
});

/** The options with their defaults. */
export interface Settings {
  readonly tickTimeMs: number;
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  readonly superDigest: string | undefined;
  readonly maxFrameBytes: number;
  readonly notificationZxid: boolean;
  readonly epoch: number;
  readonly realTime: boolean;
  readonly maxLoggedRequests: number;
}

export function settingsOf(options: FakeZooKeeperOptions): Settings {
  checkOptions('FakeZooKeeper.start', options, names);
  const tickTimeMs = options.tickTimeMs ?? 2000;
  const settings: Settings = {
    tickTimeMs,
    minSessionTimeoutMs: options.minSessionTimeoutMs ?? 2 * tickTimeMs,
    maxSessionTimeoutMs: options.maxSessionTimeoutMs ?? 20 * tickTimeMs,
    superDigest: options.superDigest,
    maxFrameBytes: options.maxFrameBytes ?? defaultMaxFrameBytes,
    notificationZxid: options.notificationZxid ?? false,
    epoch: options.epoch ?? 1,
    realTime: options.realTime ?? false,
    maxLoggedRequests: options.maxLoggedRequests ?? 10_000,
  };
  if (!Number.isInteger(tickTimeMs) || tickTimeMs <= 0) {
    throw new RangeError(`tickTimeMs is a positive number of ms, not ${tickTimeMs}`);
  }
  const { minSessionTimeoutMs, maxSessionTimeoutMs } = settings;
  if (!(minSessionTimeoutMs <= maxSessionTimeoutMs)) {
    throw new RangeError(
      `minSessionTimeoutMs ${minSessionTimeoutMs} is above maxSessionTimeoutMs ${maxSessionTimeoutMs}`,
    );
  }
  return settings;
}
