import { InvalidOptionError } from '../../base/errors.ts';
import type { Scope } from '../../core/contest.ts';
import type { LeaseLister } from '../../mechanisms/lease/listing.ts';
import { HintHub } from '../hint-hub.ts';
import type { RedisClient } from './client.ts';
import type { RedisDriver } from './driver.ts';
import { driverOf } from './driver-of.ts';
import type { Right } from './errors.ts';
import type { ElectionKeys } from './keys.ts';
import { channelOf, keysOf, leaseKeysOf } from './keys.ts';
import { redisLister } from './lister.ts';
import type { RedisOptions } from './options.ts';
import { checkOptions } from './options.ts';
import { RedisLeaseStore } from './store.ts';

export interface OpenedRedis {
  readonly driver: RedisDriver;
  /** The prefix of all our names. */
  readonly prefix: string;
  openStore(scope: Scope): RedisLeaseStore;
  openLease(scope: Scope): RedisLeaseStore;
  readonly lister: LeaseLister;
}

/** @throws InvalidOptionError */
export function openRedis(client: RedisClient, options: RedisOptions): OpenedRedis {
  const driver = driverOf(client);
  const checked = checkOptions(options);
  if (checked.wait !== undefined && driver.together === undefined) {
    throw new InvalidOptionError(
      'wait is not for a cluster, where WAIT goes to any node: set min-replicas-to-write in the ' +
        'configuration of the servers instead',
    );
  }
  const prefix = driver.ownPrefix + driver.clientPrefix + checked.prefix;
  const channel = channelOf(prefix);
  const worked = new Set<Right>();
  let tell: (error: unknown) => void = () => {};
  const hub = checked.listen
    ? new HintHub({
        connect: (onHint, onLost) => driver.subscribe(channel, onHint, onLost),
        onTrouble: (error) => tell(error),
      })
    : undefined;
  const open = (scope: Scope, keys: (prefix: string, name: string) => ElectionKeys) => {
    // All elections share the connection, so any of them may report its trouble.
    tell = (error) =>
      scope.onTrouble(`listening to channel ${channel}: changes are found by polling`, error);
    return new RedisLeaseStore(driver, checked, hub, worked, scope, keys);
  };
  return {
    driver,
    prefix,
    lister: redisLister(driver, checked),
    openStore: (scope) => open(scope, keysOf),
    openLease: (scope) => open(scope, leaseKeysOf),
  };
}
