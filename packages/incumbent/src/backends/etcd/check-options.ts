import { describeClient, describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import { formatDuration, parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { EtcdAuth } from './auth.ts';
import type { GrpcClient } from './client.ts';
import { checkRoot } from './keys.ts';
import type { EtcdOptions } from './options.ts';

export interface CheckedOptions {
  readonly ttlMs: number;
  readonly root: string;
  readonly auth: EtcdAuth | undefined;
  readonly waitsForPredecessor: boolean;
  readonly stepsDownWhenDisconnected: boolean;
  readonly recheckMs: number;
  readonly electionTimeoutMs: number;
  readonly delayAfterWinMs: number;
}

const known: Readonly<Record<keyof EtcdOptions, true>> = {
  ttl: true,
  root: true,
  auth: true,
  onDisconnect: true,
  predecessorWait: true,
  recheck: true,
  electionTimeout: true,
  delayAfterWin: true,
};

/** @throws InvalidOptionError */
export function checkClients(given: unknown): readonly GrpcClient[] {
  const clients: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (clients.length === 0) {
    throw new InvalidOptionError('etcd() takes at least one gRPC client, not an empty list');
  }
  for (const client of clients) {
    const { makeUnaryRequest, makeBidiStreamRequest } = (client ?? {}) as Partial<GrpcClient>;
    if (typeof makeUnaryRequest !== 'function' || typeof makeBidiStreamRequest !== 'function') {
      throw new InvalidOptionError(
        `etcd() takes clients of @grpc/grpc-js, not ${describeClient(client)}: ` +
          'etcd(new grpc.Client("127.0.0.1:2379", grpc.credentials.createInsecure()))',
      );
    }
  }
  return clients as readonly GrpcClient[];
}

/** @throws InvalidOptionError */
export function checkOptions(options: EtcdOptions): CheckedOptions {
  checkNames('etcd()', options, known);
  oneOf('onDisconnect', options.onDisconnect ?? 'hold', ['hold', 'step-down']);
  oneOf('predecessorWait', options.predecessorWait ?? 'belief', ['belief', 'off']);
  return {
    ttlMs: checkTtl(options.ttl ?? 15_000),
    root: checkRoot(options.root ?? ''),
    auth: options.auth === undefined ? undefined : checkAuth(options.auth),
    waitsForPredecessor: options.predecessorWait !== 'off',
    stepsDownWhenDisconnected: options.onDisconnect === 'step-down',
    recheckMs: positive('recheck', options.recheck ?? 30_000),
    electionTimeoutMs: positive('electionTimeout', options.electionTimeout ?? 1_000),
    delayAfterWinMs: parseDuration('delayAfterWin', options.delayAfterWin ?? 0),
  };
}

function checkTtl(value: unknown): number {
  const ms = parseDuration('ttl', value);
  if (ms < 1_000 || ms % 1_000 !== 0) {
    throw new InvalidOptionError(
      `ttl: ${formatDuration(ms)} is not a whole number of seconds from 1 s on, which is how etcd ` +
        'counts leases',
    );
  }
  return ms;
}

function checkAuth(auth: Partial<EtcdAuth> | null): EtcdAuth {
  const { user, password, Metadata } = auth ?? {};
  if (typeof user !== 'string' || typeof password !== 'string' || typeof Metadata !== 'function') {
    throw new InvalidOptionError(
      'auth must be { user, password, Metadata: grpc.Metadata }, with the class of @grpc/grpc-js',
    );
  }
  return { user, password, Metadata };
}

function oneOf(name: string, value: unknown, allowed: readonly string[]): void {
  if (typeof value === 'string' && allowed.includes(value)) return;
  throw new InvalidOptionError(
    `${name} must be one of ${allowed.map((each) => `"${each}"`).join(', ')}, not ` +
      describeValue(value),
  );
}

function positive(name: string, value: unknown): number {
  const ms = parseDuration(name, value);
  if (ms < 10) throw new InvalidOptionError(`${name}: it must be 10 ms or longer`);
  return ms;
}
