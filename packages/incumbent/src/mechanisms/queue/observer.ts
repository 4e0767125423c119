import { isIncurable, StoreUnavailableError } from '../../base/errors.ts';
import { asError } from '../../base/thrown.ts';
import { bounded, Wakeup } from '../../base/wait.ts';
import type { Scope, Snapshot } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import type { View } from '../../record/record.ts';
import { leaderPlaceIn } from './named-places.ts';
import { patienceMs } from './patience.ts';
import type { Member, QueueStore, RecordReading, Watched } from './store.ts';

/**
 * The present view, then a view after every change, until `signal` aborts: from a watch on the
 * record, so that one change of leader is told once, and one on the leader's place, so that a leader
 * is missed that has vanished without a successor. Where others are members who write no record, from
 * a watch on the list. The caller leaves out repetitions.
 */
export async function* observeQueue(
  store: QueueStore,
  scope: Scope,
  recheckMs: number,
  signal: AbortSignal,
): AsyncGenerator<View, void, void> {
  const { clock, timing } = scope;
  const wakeup = new Wakeup();
  const stopListening = store.session.onEvent(() => wakeup.raise());
  let vacantSinceMs: number | undefined;
  try {
    while (!signal.aborted) {
      const watches: Watched<unknown>[] = [];
      let live = true;
      const watch = async <Value>(
        what: (signal: AbortSignal) => Promise<Watched<Value>>,
      ): Promise<Value> => {
        const watched = await bounded(clock, 'observing', patienceMs(timing), signal, what);
        watches.push(watched);
        void watched.changed.then(() => {
          if (live) wakeup.raise();
        });
        return watched.value;
      };
      let waitMs = recheckMs;
      let view: View;
      try {
        wakeup.clear();
        if (store.session.isSuspended) {
          throw new StoreUnavailableError('the store cannot be reached at the moment');
        }
        const reading = await watch((operation) => store.watchRecord(operation));
        const seen = store.isMixed
          ? await firstOf(store, await watch((operation) => store.watchList(operation)), signal)
          : undefined;
        const leader = leaderPlaceIn(store, reading.record);
        const isThere =
          leader === undefined
            ? false
            : store.isMixed
              ? seen?.name === leader
              : await watch((operation) => store.watchPlace(leader, operation));
        view = viewOf(reading, isThere, seen, clock.wallMs());
      } catch (error) {
        if (signal.aborted) return;
        view = { state: 'unknown', sinceUnixMs: clock.wallMs(), error: asError(error) };
        if (!isIncurable(error)) waitMs = timing.pollEveryMs;
      }
      if (view.state === 'vacant') {
        vacantSinceMs ??= view.sinceUnixMs;
        view = { ...view, sinceUnixMs: vacantSinceMs };
      } else {
        vacantSinceMs = undefined;
      }
      try {
        yield view;
        await wakeup.wait(clock, waitMs, signal, true);
      } catch {
        return;
      } finally {
        live = false;
        for (const watched of watches) watched.cancel();
      }
    }
  } finally {
    stopListening();
  }
}

/** Everything one look can tell. */
export async function inspectQueue(
  store: QueueStore,
  scope: Scope,
  signal: AbortSignal,
): Promise<Snapshot> {
  const ask = <T>(what: string, operation: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    bounded(scope.clock, what, patienceMs(scope.timing), signal, operation);
  // A server may lag behind what others have done.
  await ask('catching up', (operation) => store.sync(operation));
  const { reading, names } = await ask('looking', (operation) => store.look(operation));
  const first = store.isMixed ? await firstOf(store, names, signal) : undefined;
  const { record } = reading;
  const wallMs = scope.clock.wallMs();
  const leader = leaderPlaceIn(store, record);
  const isThere = leader !== undefined && names.includes(leader);
  return {
    view: viewOf(reading, isThere, first, wallMs),
    history: record?.history ?? [],
    drains: (record?.drains ?? []).filter(({ untilUnixMs }) => untilUnixMs > wallMs),
    request: record?.holding?.request,
    leaseMs: isThere ? record?.holding?.leaseMs : undefined,
    holderGone: leader !== undefined && !isThere,
    ...reservationIn(record, wallMs),
  };
}

async function firstOf(
  store: QueueStore,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Member | undefined> {
  return names.length === 0 ? undefined : (await store.members(signal, 1))[0];
}

/** @param first who is first, where others than this library are members */
export function viewOf(
  { record }: RecordReading,
  isThere: boolean,
  first: Member | undefined,
  wallMs: number,
): View {
  const holding = record?.holding;
  const token = record === undefined || record.token === 0n ? {} : { token: record.token };
  if (record?.ended === true && !isThere) {
    return { state: 'ended', ...token, sinceUnixMs: record.history.at(-1)?.toUnixMs ?? wallMs };
  }
  if (holding !== undefined && isThere) {
    const { candidate, electedAtUnixMs } = holding;
    return { state: 'led', leader: candidate, ...token, sinceUnixMs: electedAtUnixMs };
  }
  // One of theirs leads as soon as it is the first; one of ours only when the record says so.
  if (first !== undefined && !first.isOurs) {
    return { state: 'led', leader: first.candidate, token: first.token, sinceUnixMs: wallMs };
  }
  if (record !== undefined && holding === undefined) {
    const sinceUnixMs = record.history.at(-1)?.toUnixMs ?? wallMs;
    return { state: 'vacant', ...token, sinceUnixMs };
  }
  return { state: 'vacant', ...token, sinceUnixMs: wallMs };
}

function reservationIn(
  record: QueueRecord | undefined,
  wallMs: number,
): Pick<Snapshot, 'reservation'> {
  const held = record?.holding?.held;
  const reservation =
    held === undefined ? record?.reservation : { for: undefined, untilUnixMs: held.untilUnixMs };
  if (reservation === undefined || reservation.untilUnixMs <= wallMs) return {};
  return { reservation: { for: reservation.for, untilUnixMs: reservation.untilUnixMs } };
}
