/**
 * The race for a lock node, as Hadoop's ActiveStandbyElector runs it. The candidate that makes the
 * node leads. All others watch it, and all race again when it is gone. For small groups, because
 * all of them wake up.
 *
 * The name of the lock recurs, so nothing is concluded from the name alone. "It exists" is never by
 * itself "another candidate has it": the reply to our own attempt may have been lost. A lock is
 * ours only if it is of our session, and has the number that it had when it was won. Only one
 * candidate at a time may use a session (`claim`).
 */

import type { CandidateInfo } from '../../base/candidate.ts';
import type { Candidacy, Contest, Seat, WaitMode } from '../../core/contest.ts';
import { contend } from '../contend.ts';
import { LockContender } from './contender.ts';
import { LockMemory } from './memory.ts';
import type { LockParts } from './settings.ts';

const standAsideMs = 1_000;

export class LockRace<Guard> implements Contest<Guard> {
  readonly standAsideMs: number;
  readonly #parts: LockParts<Guard>;
  #candidate: CandidateInfo;
  readonly #memory: LockMemory;

  constructor(parts: LockParts<Guard>, candidate: CandidateInfo) {
    this.#parts = parts;
    this.#candidate = candidate;
    this.#memory = new LockMemory(parts);
    // A candidate that polls does not see a free lock any sooner.
    const { pollMs } = parts.settings;
    const { operationTimeoutMs } = parts.scope.timing;
    this.standAsideMs =
      pollMs === undefined
        ? standAsideMs
        : Math.max(standAsideMs, 1.1 * pollMs + operationTimeoutMs);
  }

  present(candidate: CandidateInfo): void {
    this.#candidate = candidate;
  }

  /** A session proves no death: it may outlive its process, and end before it. */
  async describe(): Promise<undefined> {
    return undefined;
  }

  campaign(
    candidacy: Candidacy,
    waitMode: WaitMode,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | undefined> {
    const contender = new LockContender(this.#parts, this.#memory, {
      candidate: this.#candidate,
      candidacy,
      once: waitMode !== 'wait',
      signal,
    });
    return contend(contender, candidacy, this.#parts.scope, signal);
  }
}
