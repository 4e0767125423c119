import { describeValue } from '../base/candidate.ts';
import { checkNames } from '../base/check-names.ts';
import { InvalidOptionError } from '../base/errors.ts';
import type { ActorProcess, Contest, SeatState } from './contest.ts';

const actorNames: Readonly<Record<keyof ActorProcess, true>> = {
  pid: true,
  group: true,
  session: true,
};

/** @throws InvalidOptionError */
export function checkActors(processes: readonly ActorProcess[] | null): void {
  if (processes !== null && !Array.isArray(processes)) {
    throw new InvalidOptionError(
      `declareActors takes a list of processes, or null, not ${describeValue(processes)}`,
    );
  }
  for (const each of processes ?? []) {
    checkNames('`declareActors`', each, actorNames, '[{ pid: child.pid }]');
  }
}

/**
 * Describes the processes that act for a term, this one included, as the record names them.
 * @returns null when the list may be incomplete, and so proves no death
 */
export async function describeActors(
  processes: readonly ActorProcess[] | null,
  contest: Pick<Contest<unknown>, 'describe'>,
): Promise<SeatState['actors']> {
  if (processes === null) return null;
  // The process that holds the belief acts for the term, whatever other processes do.
  const all = processes.some(({ pid, group }) => pid === process.pid && group === undefined)
    ? processes
    : [{ pid: process.pid }, ...processes];
  const described = await Promise.all(all.map((each) => contest.describe(each)));
  const known = described.filter((actor) => actor !== undefined);
  return known.length === described.length ? known : null;
}
