import type { Timing } from 'incumbent';
import type { Situation } from './plan.ts';
import type { SeenSlot } from './seen-slot.ts';
import { isLive } from './slot.ts';

/** After a shard was given up unasked, it rests so long, and then twice as long, up to a lease. */
const firstRestMs = 1_000;

interface Rest {
  readonly slot: number;
  readonly token: bigint;
  readonly times: number;
  readonly untilMs: number;
}

/** Which moves the time allows. */
export type Times = Required<Pick<Situation, 'mayMove' | 'overdue' | 'avoided' | 'resting'>> & {
  readonly mayGrant: boolean;
  /** When this may be different, monotonic. */
  readonly dueMs: number | undefined;
};

/**
 * Remembers when members came and went, when shards were asked for, and which were given up unasked.
 * So a set that has just started, or is restarted, does not move its shards back and forth.
 */
export class Moves {
  #signature: string | undefined;
  /** When a member came or went last, and when the first of these changes in a row was. */
  #changedMs = 0;
  #firstChangeMs: number | undefined;
  /** When the first member was seen. */
  #joinedMs: number | undefined;
  /** By shard: the token, and the time since which it has been asked for. */
  #asked = new Map<number, { readonly token: bigint; readonly sinceMs: number }>();
  /** By shard: the token of its owner that was not asked. */
  #owned = new Map<number, bigint>();
  readonly #rests = new Map<number, Rest>();

  see(
    slots: readonly SeenSlot[],
    alive: ReadonlySet<number>,
    drained: ReadonlySet<number>,
    nowMs: number,
    timing: Timing,
  ): Times {
    const { renewEveryMs, stopTimeoutMs, leaseMs } = timing;
    this.#seeMembers(slots, alive, drained, nowMs, renewEveryMs);
    const overdue = this.#seeEntries(slots, nowMs, stopTimeoutMs, leaseMs);
    const dues: number[] = [];
    const quietMs = Math.min(
      this.#changedMs + renewEveryMs,
      (this.#firstChangeMs ?? Number.POSITIVE_INFINITY) + 3 * renewEveryMs,
    );
    const mayMove = nowMs >= quietMs;
    if (mayMove && nowMs >= this.#changedMs + renewEveryMs) this.#firstChangeMs = undefined;
    if (!mayMove) dues.push(quietMs);
    // The very first grants wait as well, so that processes that start together share.
    const isFirst = slots.every(({ state }) => (state?.highest ?? 0n) === 0n);
    const firstMs = (this.#joinedMs ?? Number.POSITIVE_INFINITY) + renewEveryMs;
    const mayGrant = !isFirst || nowMs >= firstMs;
    if (!mayGrant && Number.isFinite(firstMs)) dues.push(firstMs);
    const resting = new Set<number>();
    const avoided = new Map<number, number>();
    for (const [shard, { slot, untilMs }] of this.#rests) {
      avoided.set(shard, slot);
      if (nowMs >= untilMs) continue;
      resting.add(shard);
      dues.push(untilMs);
    }
    const dueMs = dues.length === 0 ? undefined : Math.min(...dues);
    return { mayGrant, mayMove, overdue, resting, avoided, dueMs };
  }

  #seeMembers(
    slots: readonly SeenSlot[],
    alive: ReadonlySet<number>,
    drained: ReadonlySet<number>,
    nowMs: number,
    renewEveryMs: number,
  ): void {
    const members = slots.flatMap(({ number, record, state }) => {
      if (state === undefined || !alive.has(number)) return [];
      const { weight, zone, leaving } = state.presence;
      return `${number} ${record?.token} ${weight} ${zone} ${leaving || drained.has(number)}`;
    });
    if (members.length > 0) this.#joinedMs ??= nowMs;
    const signature = members.join('\n');
    if (signature === this.#signature) return;
    // The members that a new coordinator finds were there before.
    const isFirst = this.#signature === undefined;
    this.#signature = signature;
    const wasQuiet = nowMs >= this.#changedMs + renewEveryMs;
    this.#changedMs = nowMs;
    if (isFirst || wasQuiet) this.#firstChangeMs = nowMs;
    else this.#firstChangeMs ??= nowMs;
  }

  #seeEntries(
    slots: readonly SeenSlot[],
    nowMs: number,
    stopTimeoutMs: number,
    leaseMs: number,
  ): ReadonlySet<number> {
    const asked = new Map<number, { readonly token: bigint; readonly sinceMs: number }>();
    const owned = new Map<number, bigint>();
    const overdue = new Set<number>();
    for (const { number, state, record } of slots) {
      if (state === undefined) continue;
      const isHere = record?.holding !== undefined && !state.presence.leaving;
      for (const entry of state.entries) {
        const { shard, token } = entry;
        if (isLive(entry)) {
          const rest = this.#rests.get(shard);
          // It went well for long.
          if (rest !== undefined && nowMs > rest.untilMs + leaseMs) this.#rests.delete(shard);
        }
        if (entry.state === 'owned') owned.set(shard, token);
        if (entry.state === 'clean' && isHere && this.#owned.get(shard) === token) {
          this.#rest(shard, token, number, nowMs, leaseMs);
        }
        if (entry.state !== 'asked') continue;
        const before = this.#asked.get(shard);
        const sinceMs = before?.token === token ? before.sinceMs : nowMs;
        asked.set(shard, { token, sinceMs });
        if (nowMs - sinceMs > stopTimeoutMs) overdue.add(shard);
      }
    }
    this.#asked = asked;
    this.#owned = owned;
    return overdue;
  }

  /** Its work has returned or thrown. At once it would do so again. */
  #rest(shard: number, token: bigint, slot: number, nowMs: number, leaseMs: number): void {
    const before = this.#rests.get(shard);
    if (before?.token === token) return;
    const times = (before?.times ?? 0) + 1;
    const restMs = Math.min(Math.max(firstRestMs, leaseMs), firstRestMs * 2 ** (times - 1));
    this.#rests.set(shard, { slot, token, times, untilMs: nowMs + restMs });
  }
}
