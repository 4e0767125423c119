import type { Election } from 'incumbent';
import { expect } from 'vitest';
import type { Copies, Copy } from './copies.ts';

export interface Leader {
  readonly pid: number;
  readonly token: number;
}

/** The leader, by the process id in its name; undefined while nobody leads. */
export async function leaderOf(election: Election<unknown>): Promise<Leader | undefined> {
  const { state, leader, token } = await election.leader();
  if (state !== 'led' || leader === undefined || token === undefined) return undefined;
  return { pid: Number(/\d+$/.exec(leader.id)?.[0]), token: Number(token) };
}

/** An example, seen from outside. */
export interface Stage {
  readonly copies: Copies;
  leader(): Promise<Leader | undefined>;
  /** The tokens of all that was written, in the order in which it was accepted. */
  tokens(): Promise<readonly number[]>;
  /** Whether a client has seen work of this term. Default: it is enough that the work was accepted. */
  hasArrived?(token: number): Promise<boolean>;
}

/**
 * Two copies, and the leader is frozen until the other one has worked, then the other one is killed.
 * At any time only one works, and somebody always does in the end.
 */
export async function oneLeadsAtATime(stage: Stage): Promise<void> {
  const { copies } = stage;
  const both = [await copies.start(), await copies.start()];
  const first = await workOfALeader(stage, both);
  await first.freeze();
  const second = await workOfALeader(stage, both, first);
  first.thaw();
  await second.kill();
  expect(await workOfALeader(stage, both, second)).toBe(first);
  const tokens = await stage.tokens();
  expect(tokens, 'nothing was accepted of an older term').toEqual(tokens.toSorted((a, b) => a - b));
  expect(await first.stop()).toBe('exit code 0');
  expect(await stage.leader(), 'the seat was given back').toBeUndefined();
}

/** Waits until a copy other than `except` leads and has worked in its term. */
async function workOfALeader(
  { copies, leader, tokens, hasArrived = async () => true }: Stage,
  all: readonly Copy[],
  except?: Copy,
): Promise<Copy> {
  let found: Leader | undefined;
  await copies.until(`a copy leads and works, not ${except?.pid}`, async () => {
    found = await leader();
    if (found === undefined || found.pid === except?.pid) return false;
    return (await tokens()).includes(found.token) && hasArrived(found.token);
  });
  const copy = all.find(({ pid }) => pid === found?.pid);
  if (copy === undefined) throw new Error(`${found?.pid} leads, who is not of us`);
  return copy;
}
