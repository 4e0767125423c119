import type { GivenSettings } from '../settings.ts';

/** The same for both sides. */
export interface Layout {
  readonly ports: readonly number[];
  /** Each node reaches each other one at a port of its own, where a proxy listens. */
  readonly ways: readonly { readonly from: number; readonly to: number; readonly port: number }[];
}

/** Where one is wanted, it is this. */
export const password = 'secret';

/** So that nothing happens by itself while the two sides are compared. */
export const calm: GivenSettings = {
  'min-replicas-max-lag': '1000000',
  'repl-backlog-ttl': '0',
  'repl-diskless-sync-delay': '0',
  'repl-ping-replica-period': '1000000',
  'repl-timeout': '1000000',
  'shutdown-timeout': '1',
};

/** Nothing is saved by itself, but at the end of the process. */
export const savesAtTheEnd = '1000000 1';
