/**
 * What operators do. They never take the seat from under a believer: a request is left in the record
 * for the leader to see. Those who only wait can be sent to the end of the queue: deleting a place
 * is safe as long as the leader's own is there, which the same transaction checks.
 */

import { formatDuration } from '../../base/duration.ts';
import { isIncurable, RefusedError, StoreUnavailableError } from '../../base/errors.ts';
import { bounded, sleep } from '../../base/wait.ts';
import type { AdminRequest, AdminResult, Scope } from '../../core/contest.ts';
import type { LiftedHold } from '../../core/holds.ts';
import { holdOf, holdRefusal, reservationOf } from '../../core/holds.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { emptyQueueRecord } from '../../record/queue-record.ts';
import { drainLimit, keptDrains } from '../../record/record.ts';
import { leaderPlaceIn } from './named-places.ts';
import { viewOf } from './observer.ts';
import { patienceMs } from './patience.ts';
import type { Amendment, EndMark, Member, QueueStore, RecordReading } from './store.ts';

const maxTries = 20;

/** What is to be written, and which places are to be deleted with it. */
interface Change {
  readonly record: QueueRecord;
  /** A place that must be there. */
  readonly present?: string;
  readonly remove?: readonly string[];
  /** What that lifts. */
  readonly lifted?: LiftedHold;
}

/** What one look found. */
interface Situation {
  readonly reading: RecordReading;
  /** In order. */
  readonly members: readonly Member[];
  /** The leader that the record names, if its place is there. */
  readonly leader: Member | undefined;
}

export async function administerQueue(
  store: QueueStore,
  scope: Scope,
  request: AdminRequest,
  signal: AbortSignal,
): Promise<AdminResult> {
  const { clock, timing, random, onTrouble } = scope;
  const ask = <T>(what: string, operation: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    bounded(clock, what, patienceMs(timing), signal, operation);
  let mayHaveWritten = false;
  /** By a write that had no answer. */
  let lifted: Pick<AdminResult, 'lifted'> = {};
  /** The term that was asked: a later one is not meant. By its token, for a name may come again. */
  let asked: bigint | undefined;
  for (let tries = 0; tries < maxTries; tries += 1) {
    await ask('catching up', (operation) => store.sync(operation));
    const situation = await look(store, ask);
    const { reading, leader, members } = situation;
    const view = viewOf(reading, leader !== undefined, members[0], clock.wallMs());
    if (reading.isForeign === true) refuseForeign(store, scope, request);
    if (request.kind === 'vacate' || request.kind === 'transfer') {
      asked ??= leader?.token ?? 0n;
      // It has gone meanwhile.
      if ((leader?.token ?? 0n) !== asked) return { changed: mayHaveWritten, view, ...lifted };
    }
    const { endMark } = store;
    if (request.kind === 'end' && endMark !== undefined && reading.version === undefined) {
      return { changed: false, view }; // what is not there is over
    }
    if (reading.isForeign === true && endMark !== undefined) {
      if (request.kind === 'reopen') {
        await ask('taking back the end', (operation) => endMark.clear(operation));
      } else {
        await ask('marking the end', (operation) => endMark.set(operation));
        // The mark says it all, and nobody who waits may be promoted on the way.
        await removeAll(store, members, ask);
      }
      return { changed: true, view };
    }
    // With the record in one transaction: a leader of ours that sees the mark alone leaves at once, and
    // of an end and a reopening at the same time one is done whole, after the other.
    const mark = await changeOfMark(request, endMark, ask);
    const change =
      changeFor(request, situation, scope, endMark !== undefined) ??
      (mark && { record: reading.record ?? emptyQueueRecord(scope.election, scope.uniqueId()) });
    if (change === undefined) return { changed: mayHaveWritten, view, ...lifted };
    const { lifted: lifts, ...amendment } = change;
    if (lifts !== undefined) lifted = { lifted: lifts };
    try {
      const result = await ask(`asking for ${request.kind}`, (operation) =>
        store.amend(
          { ...amendment, version: reading.version, ...(mark && { endMark: mark }) },
          operation,
        ),
      );
      if (result.outcome === 'ok') return { changed: true, view, ...lifted };
      if (!mayHaveWritten) lifted = {};
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (isIncurable(error)) throw error;
      mayHaveWritten = true;
      onTrouble(`asking for ${request.kind}`, error);
    }
    await sleep(clock, random() * Math.min(100, timing.retryBackoffMs), signal);
  }
  throw new StoreUnavailableError(
    `the request (${request.kind}) for election "${scope.election}" could not be recorded in ` +
      `${maxTries} attempts: look whether it took effect, and ask again`,
  );
}

/** What is to become of the mark of the end; undefined: it is as it should be, or there is none. */
async function changeOfMark(
  { kind }: AdminRequest,
  endMark: EndMark | undefined,
  ask: <T>(what: string, operation: (signal: AbortSignal) => Promise<T>) => Promise<T>,
): Promise<Amendment['endMark']> {
  if (endMark === undefined || (kind !== 'end' && kind !== 'reopen')) return undefined;
  const isSet = await ask('looking for the mark', (operation) => endMark.isSet(operation));
  if (isSet === (kind === 'end')) return undefined;
  return kind === 'end' ? 'set' : 'clear';
}

async function look(
  store: QueueStore,
  ask: <T>(what: string, operation: (signal: AbortSignal) => Promise<T>) => Promise<T>,
): Promise<Situation> {
  const reading = await ask('reading', (operation) => store.read(operation));
  const members = await ask('listing', (operation) => store.members(operation));
  const place = leaderPlaceIn(store, reading.record);
  return { reading, members, leader: members.find(({ name }) => name === place) };
}

function refuseForeign(store: QueueStore, scope: Scope, request: AdminRequest): void {
  // GoLea's own protocol does without a record.
  if (store.endMark !== undefined && (request.kind === 'end' || request.kind === 'reopen')) return;
  throw new RefusedError(
    `the node of election "${scope.election}" holds data that is not ours, so a request ` +
      `(${request.kind}) cannot be left there: empty it, or ask the leader in its own way`,
  );
}

/** From the last to the first, one by one: who has gone already is no reason to stop. */
async function removeAll(
  store: QueueStore,
  members: readonly Member[],
  ask: <T>(what: string, operation: (signal: AbortSignal) => Promise<T>) => Promise<T>,
): Promise<void> {
  for (const { name } of [...members].reverse()) {
    await ask('removing a place', (operation) => store.remove(name, operation));
  }
}

/** The record with the request in it; undefined when it says so already or there is nothing to do. */
function changeFor(
  request: AdminRequest,
  situation: Situation,
  scope: Scope,
  othersKnowTheEnd: boolean,
): Change | undefined {
  const { reading, members, leader } = situation;
  const wallMs = scope.clock.wallMs();
  const record = reading.record ?? emptyQueueRecord(scope.election, scope.uniqueId());
  const { holding } = record;
  switch (request.kind) {
    case 'vacate': {
      if (holding === undefined || leader === undefined) {
        const [first] = members;
        if (first !== undefined && !first.isOurs) {
          if (request.force) return { record, remove: [first.name] };
          throw new RefusedError(
            `"${first.candidate.id}" leads election "${scope.election}" and does not know this ` +
              'request: stop it in its own way. With --force only its place is deleted: that stops no ' +
              'program which does not look at it, and the next one leads beside it',
          );
        }
        return liftOf(record, wallMs);
      }
      const hold = holdOf(holding.candidate.id, holding.held, wallMs);
      if (hold !== undefined && !request.force) {
        const doubt =
          'its session is there; if it is dead, that ends within ' +
          formatDuration(holding.leaseMs);
        throw holdRefusal(hold, doubt, wallMs);
      }
      if (holding.request?.kind === 'vacate' && !request.force) return undefined;
      const asked = { kind: 'vacate', nonce: scope.uniqueId() } as const;
      const next = { ...holding, request: asked, revoked: request.force };
      if (!request.force) return { record: { ...record, holding: next }, present: leader.name };
      return {
        record: { ...record, holding: { ...next, held: undefined } },
        present: leader.name,
        remove: [leader.name],
        ...(hold === undefined ? {} : { lifted: hold }),
      };
    }
    case 'transfer': {
      if (holding === undefined || leader === undefined) {
        throw new RefusedError(
          `nobody leads election "${scope.election}" by our record, so there is nothing to ` +
            `transfer to "${request.to}"`,
        );
      }
      if (holding.candidate.id === request.to) {
        throw new RefusedError(`"${request.to}" leads election "${scope.election}" already`);
      }
      const between = membersBefore(request.to, situation);
      const standing = holding.request;
      if (standing?.kind === 'transfer' && standing.to === request.to && between.length === 0) {
        return undefined;
      }
      const asked = { kind: 'transfer', to: request.to, nonce: scope.uniqueId() } as const;
      return {
        record: { ...record, holding: { ...holding, request: asked } },
        // Whoever was before the one that is named enters again behind it.
        present: leader.name,
        remove: between.map(({ name }) => name),
      };
    }
    case 'drain': {
      const standing = record.drains.find(({ id }) => id === request.id);
      const lifts = request.untilUnixMs <= wallMs;
      if (lifts ? standing === undefined : standing?.untilUnixMs === request.untilUnixMs) {
        return undefined;
      }
      const others = keptDrains(
        record.drains.filter(({ id }) => id !== request.id),
        wallMs,
        lifts ? 0 : 1,
      );
      if (!lifts && others.length >= drainLimit) {
        throw new RefusedError(
          `election "${scope.election}" has ${drainLimit} drained candidates already, the most ` +
            'that are kept: lift one first',
        );
      }
      const drains = lifts
        ? others
        : [...others, { id: request.id, untilUnixMs: request.untilUnixMs }];
      const waiting = waitingMembers(situation).filter(
        ({ candidate, isOurs }) => isOurs && candidate.id === request.id,
      );
      return {
        record: { ...record, drains },
        ...(lifts || leader === undefined
          ? {}
          : { present: leader.name, remove: waiting.map(({ name }) => name) }),
      };
    }
    case 'end': {
      // From the last to the first, so that nobody is promoted on the way; a leader of ours sees
      // the mark, and goes in order. Others know of no end but their own library's: one whose place
      // is deleted would go on, or come back and lead beside it.
      const waiting = waitingMembers(situation).filter(({ isOurs }) => isOurs || othersKnowTheEnd);
      if (record.ended && waiting.length === 0) return undefined;
      return {
        record: { ...record, ended: true },
        remove: waiting.map(({ name }) => name).reverse(),
      };
    }
    case 'reopen':
      return record.ended ? { record: { ...record, ended: false } } : undefined;
    default:
      return request satisfies never;
  }
}

/** The seat is nobody's: what keeps it closed. Its last leader stays in the record, to be waited out. */
function liftOf(record: QueueRecord, wallMs: number): Change | undefined {
  const { holding, reservation, history } = record;
  if (holding === undefined) {
    const lifted = reservationOf(reservation, history, wallMs);
    return lifted && { record: { ...record, reservation: undefined }, lifted };
  }
  const lifted = holdOf(holding.candidate.id, holding.held, wallMs);
  return lifted && { record: { ...record, holding: { ...holding, held: undefined } }, lifted };
}

/** Everybody but a leader of ours; and not whoever of ours is about to lead, who sees the record. */
function waitingMembers({ members, leader }: Situation): readonly Member[] {
  if (leader !== undefined) return members.filter(({ name }) => name !== leader.name);
  return members.filter(({ isOurs }, index) => index > 0 || !isOurs);
}

/** Those between the leader and the candidate `id`. @throws RefusedError */
function membersBefore(id: string, situation: Situation): readonly Member[] {
  const waiting = waitingMembers(situation);
  const index = waiting.findIndex(({ candidate, isOurs }) => isOurs && candidate.id === id);
  if (index < 0) {
    const known = waiting.map(({ candidate }) => `"${candidate.id}"`).join(', ');
    throw new RefusedError(
      `"${id}" is not waiting for this election; ${known === '' ? 'nobody is' : `waiting: ${known}`}`,
    );
  }
  const before = waiting.slice(0, index);
  const foreign = before.find(({ isOurs }) => !isOurs);
  if (foreign !== undefined) {
    throw new RefusedError(
      `"${foreign.candidate.id}" waits before "${id}" and does not yield: it is not ours; let it ` +
        'leave the queue in its own way first',
    );
  }
  return before;
}
