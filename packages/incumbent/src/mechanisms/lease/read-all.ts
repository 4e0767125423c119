import { ElectionError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Leases, Reading } from './store.ts';

/** How many requests of one `readAll` are under way at once. */
const readsAtOnce = 32;

/** `readAll` of a store that has no request for many records: as many reads. */
export const readEach: Leases['readAll'] = async (stores, signal) => {
  let hasFailed = false;
  return inParallel(stores, readsAtOnce, async (store) => {
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
