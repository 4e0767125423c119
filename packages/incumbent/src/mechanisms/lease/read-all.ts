import { setMaxListeners } from 'node:events';
import { ElectionError, MisuseError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { LeaseStore, Leases, Reading } from './store.ts';

/**
 * `readAll` of a store that has no request for many records: as many reads.
 * @param atOnce how many of them are under way at once
 */
export function readEach(atOnce: number = 32): Leases['readAll'] {
  return (stores, signal) => {
    let hasFailed = false;
    // Each read listens.
    setMaxListeners(0, signal);
    return inParallel(stores, atOnce, async (store) => {
      // The result is known, so the rest need not be asked for.
      if (hasFailed) throw new Error('another read has failed');
      try {
        return await orItsFault(() => store.read(signal));
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    });
  };
}

/** The reading, or the error of a record that cannot be read although the store can. */
export async function orItsFault(read: () => Reading | Promise<Reading>): Promise<Reading | Error> {
  try {
    return await read();
  } catch (error) {
    const isOfRecord =
      error instanceof ElectionError &&
      (error.code === 'RECORD_DAMAGED' || error.code === 'RECORD_TOO_NEW');
    if (isOfRecord) return error;
    throw error;
  }
}

/**
 * The stores, as the backend made them.
 * @throws MisuseError for a store of another make
 */
export function allOf<Store extends LeaseStore>(
  make: abstract new (...given: never[]) => Store,
  stores: readonly LeaseStore[],
): readonly Store[] {
  return stores.map((store) => {
    if (store instanceof make) return store;
    throw new MisuseError('readAll takes the stores that `leases.open` of the same backend made');
  });
}
