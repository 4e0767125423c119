import { StoreUnavailableError } from '../../base/errors.ts';
import { bounded, Wakeup } from '../../base/wait.ts';
import type { Scope, Snapshot } from '../../core/contest.ts';
import type { View } from '../../record/record.ts';
import { observe, toldBy } from '../observe.ts';
import { asking, askTimeoutMs } from './ask.ts';
import { leaderPlaceIn } from './named-places.ts';
import type { Member, QueueStore, RecordReading, Watched } from './store.ts';

/**
 * Looks after every change. A watch on the record tells each change of leader once. A watch on the
 * leader's place tells of a leader that has vanished without a successor. Where members of another
 * make write no record, a watch on the list is used.
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
  let watches: Watched<unknown>[] = [];
  const watch = async <Value>(
    what: (signal: AbortSignal) => Promise<Watched<Value>>,
  ): Promise<Value> => {
    const ofThisLook = watches;
    const watched = await bounded(clock, 'observing', askTimeoutMs(timing), signal, what);
    ofThisLook.push(watched);
    void watched.changed.then(() => {
      if (watches === ofThisLook) wakeup.raise();
    });
    return watched.value;
  };
  const look = async () => {
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
    return { view: viewOf(reading, isThere, seen, clock.wallMs()), waitMs: recheckMs };
  };
  const forget = () => {
    const over = watches;
    watches = [];
    for (const watched of over) watched.cancel();
  };
  try {
    yield* observe({ wakeup, look, forget }, scope, recheckMs, signal);
  } finally {
    stopListening();
  }
}

/** Everything that one look can tell. */
export async function inspectQueue(
  store: QueueStore,
  scope: Scope,
  signal: AbortSignal,
): Promise<Snapshot> {
  const ask = asking(scope, signal);
  // A server may lag behind the writes of others.
  await ask('catching up', (operation) => store.sync(operation));
  const { reading, names } = await ask('looking', (operation) => store.look(operation));
  const first = store.isMixed ? await firstOf(store, names, signal) : undefined;
  return snapshotOf(store, reading, { names, first }, scope.clock.wallMs());
}

/** @param seen the names of all places, and the first member where others are members */
export function snapshotOf(
  store: Pick<QueueStore, 'nameHere'>,
  reading: RecordReading,
  { names, first }: { readonly names: readonly string[]; readonly first: Member | undefined },
  wallMs: number,
): Snapshot {
  const { record } = reading;
  const leader = leaderPlaceIn(store, record);
  const isThere = leader !== undefined && names.includes(leader);
  return {
    view: viewOf(reading, isThere, first, wallMs),
    ...toldBy(record, wallMs),
    leaseMs: isThere ? record?.holding?.leaseMs : undefined,
    holderGone: leader !== undefined && !isThere,
  };
}

async function firstOf(
  store: QueueStore,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Member | undefined> {
  return names.length === 0 ? undefined : (await store.members(signal, 1))[0];
}

/** @param first the first in line, where others than this library are members */
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
    const { candidate: leader, ready = true, electedAtUnixMs: sinceUnixMs } = holding;
    return { state: 'led', leader, ready, ...token, sinceUnixMs };
  }
  // A member of another make leads as soon as it is the first. One of ours leads only when the
  // record says so.
  if (first !== undefined && !first.isOurs) {
    const { candidate: leader, token: theirs } = first;
    return { state: 'led', leader, ready: true, token: theirs, sinceUnixMs: wallMs };
  }
  if (record !== undefined && holding === undefined) {
    const sinceUnixMs = record.history.at(-1)?.toUnixMs ?? wallMs;
    return { state: 'vacant', ...token, sinceUnixMs };
  }
  return { state: 'vacant', ...token, sinceUnixMs: wallMs };
}
