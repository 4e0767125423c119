/** The logs of all processes, put together. */
import { WrongElectionError } from '../benchmark.ts';
import type { OwnedEvent } from './messages.ts';

/** One process owned one shard. */
export interface Span {
  readonly member: number;
  readonly fromMs: number;
  /** When it was told to stop; Infinity: it still owns the shard. */
  readonly toMs: number;
  /** It ended by a SIGKILL. */
  readonly isKilled: boolean;
}

/** The events that one process has written. @param killedAtMs of a process that was killed */
export interface MemberLog {
  readonly events: readonly OwnedEvent[];
  readonly killedAtMs?: number;
}

/** Of each shard, in order. @throws WrongElectionError when two processes owned a shard */
export function spansOf(logs: readonly MemberLog[], shards: number): readonly (readonly Span[])[] {
  const all = Array.from({ length: shards }, (): Span[] => []);
  for (const [member, { events, killedAtMs }] of logs.entries()) {
    const open = new Map<number, number>();
    const add = (shard: number, toMs: number, isKilled: boolean) => {
      const fromMs = open.get(shard);
      if (fromMs === undefined) return;
      open.delete(shard);
      all[shard]?.push({ member, fromMs, toMs, isKilled });
    };
    for (const { shard, atMs, isOwned } of events) {
      if (isOwned) open.set(shard, atMs);
      else add(shard, atMs, false);
    }
    for (const shard of [...open.keys()]) {
      add(shard, killedAtMs ?? Number.POSITIVE_INFINITY, killedAtMs !== undefined);
    }
  }
  for (const [shard, spans] of all.entries()) {
    spans.sort((a, b) => a.fromMs - b.fromMs);
    for (const [index, { fromMs, member }] of spans.entries()) {
      const before = spans[index - 1];
      if (before === undefined || before.toMs <= fromMs) continue;
      throw new WrongElectionError(
        `process ${member} began with shard ${shard} while process ${before.member} owned it`,
      );
    }
  }
  return all;
}

export interface Change {
  /** Shards that another process owns than before. */
  readonly moved: number;
  /** The longest time that the owner of a shard which did not move was stopped. */
  readonly interruptedMs: number;
  /** From the change to the last event. */
  readonly balancedMs: number;
}

/** @param sinceMs when the change was made; the logs end when all is balanced again */
export function changeOf(spans: readonly (readonly Span[])[], sinceMs: number): Change {
  let moved = 0;
  let interruptedMs = 0;
  let lastMs = sinceMs;
  for (const all of spans) {
    const before = all.findLast(({ fromMs }) => fromMs < sinceMs);
    const now = all.at(-1);
    if (now === undefined || before === undefined) continue;
    lastMs = Math.max(lastMs, now.fromMs);
    if (now.member !== before.member) {
      moved += 1;
      continue;
    }
    for (let index = all.indexOf(before); index + 1 < all.length; index += 1) {
      const stoppedMs = (all[index + 1]?.fromMs ?? 0) - (all[index]?.toMs ?? 0);
      interruptedMs = Math.max(interruptedMs, stoppedMs);
    }
  }
  return { moved, interruptedMs, balancedMs: lastMs - sinceMs };
}

/** From each stop of an owner that lived to the beginning of the next owner's work. */
export function cleanMovesOf(spans: readonly (readonly Span[])[]): readonly number[] {
  return spans.flatMap((all) =>
    all.flatMap(({ member, fromMs }, index) => {
      const before = all[index - 1];
      if (before === undefined || before.isKilled || before.member === member) return [];
      return [fromMs - before.toMs];
    }),
  );
}
