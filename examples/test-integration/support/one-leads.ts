import type { Election } from 'incumbent';
import { expect } from 'vitest';
import type { Copies, Copy } from './copies.ts';

export interface Leader {
  readonly pid: number;
  readonly token: number;
}

/** Who leads, by the process id in its name; undefined while nobody does. */
export async function leaderOf(election: Election<unknown>): Promise<Leader | undefined> {
  const { state, leader, token } = await election.leader();
  if (state !== 'led' || leader === undefined || token === undefined) return undefined;
  return { pid: Number(/\d+$/.exec(leader.id)?.[0]), token: Number(token) };
}

/** What an example does, seen from outside. */
export interface Stage {
  readonly copies: Copies;
  leader(): Promise<Leader | undefined>;
  /** The tokens of all that was written, in the order in which it was accepted. */
  tokens(): Promise<readonly number[]>;
}

/**
 * Two copies, and the leader is frozen until the other one has worked, then the other one is killed.
 * At any time only one works, and somebody always does in the end.
 */
export async function oneLeadsAtATime(stage: Stage): Promise<void> {
  const { copies } = stage;
  const both = [await copies.start(), await copies.start()];
  const first = await workOfALeader(stage, both, 0);
  await first.copy.freeze();
  const second = await workOfALeader(stage, both, first.token);
  expect(second.copy.pid).not.toBe(first.copy.pid);
  first.copy.thaw();
  await second.copy.kill();
  const third = await workOfALeader(stage, both, second.token);
  expect(third.copy.pid).toBe(first.copy.pid);
  const tokens = await stage.tokens();
  expect(tokens, 'nothing was accepted of an older term').toEqual(tokens.toSorted((a, b) => a - b));
  expect(await third.copy.stop()).toBe('exit code 0');
  expect(await stage.leader(), 'the seat was given back').toBeUndefined();
}

async function workOfALeader(
  { copies, leader, tokens }: Stage,
  all: readonly Copy[],
  after: number,
): Promise<{ readonly copy: Copy; readonly token: number }> {
  let found: Leader | undefined;
  await copies.until(`a term after ${after} works`, async () => {
    found = await leader();
    const { token } = found ?? { token: 0 };
    return token > after && (await tokens()).includes(token);
  });
  const copy = all.find(({ pid }) => pid === found?.pid);
  if (copy === undefined || found === undefined) throw new Error('somebody else leads');
  return { copy, token: found.token };
}
