import { InvalidOptionError } from '../base/errors.ts';
import type { ElectionRecord } from './record.ts';

/**
 * How many seats the election of this record has, as the winners that wrote it have agreed.
 * Undefined: no candidate has won yet.
 */
export function seatsIn(record: ElectionRecord | undefined): number | undefined {
  return record === undefined || record.token === 0n ? undefined : (record.seats ?? 1);
}

/**
 * Called with every record that a candidate may win by. So a candidate with another count is found
 * before it leads.
 * @throws InvalidOptionError
 */
export function requireSeats(
  election: string,
  found: number | undefined,
  wanted: number | undefined = 1,
): void {
  if (found === undefined || found === wanted) return;
  throw new InvalidOptionError(
    `election "${election}" has ${count(found)}, and this candidate is for ${count(wanted)}: give all ` +
      `candidates the same \`seats\`. To change it, stop all of them and take another name`,
  );
}

/**
 * @param record the one that the store keeps under the name `election`
 * @throws InvalidOptionError for another count, or when one record serves two seats
 */
export function requireSeatsOf(
  record: ElectionRecord | undefined,
  election: string,
  wanted: number | undefined,
): void {
  requireSeats(election, seatsIn(record), wanted);
  if (wanted === undefined || record === undefined || record.election === election) return;
  throw new InvalidOptionError(
    `"${election}" and "${record.election}" are two seats, and have one record: let the function that ` +
      'names leases or objects make another name of each',
  );
}

function count(seats: number): string {
  return seats === 1 ? '1 seat' : `${seats} seats`;
}
