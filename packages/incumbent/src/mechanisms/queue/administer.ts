/**
 * Operators' requests on a queue. Waiting members can be sent to its end by deleting their places.
 * That is safe as long as the leader's own place is there, which the same transaction checks.
 */

import { formatDuration } from '../../base/duration.ts';
import { RefusedError } from '../../base/errors.ts';
import type { AdminRequest, AdminResult, Scope } from '../../core/contest.ts';
import type { LiftedHold } from '../../core/holds.ts';
import { holdOf, holdRefusal, reservationOf } from '../../core/holds.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { emptyQueueRecord } from '../../record/queue-record.ts';
import { asked, drained, ended, opened, revoked } from '../../record/transitions.ts';
import type { Plan } from '../administer.ts';
import { administer, leadsAlready, notWaiting } from '../administer.ts';
import type { Ask } from './ask.ts';
import { asking } from './ask.ts';
import { leaderPlaceIn } from './named-places.ts';
import { viewOf } from './observer.ts';
import type { Amendment, EndMark, Member, QueueStore, RecordReading } from './store.ts';

/** The record to write, and the places to delete with it. */
interface Change {
  readonly record: QueueRecord;
  /** A place that must be there. */
  readonly present?: string;
  readonly remove?: readonly string[];
  /** The hold that this lifts. */
  readonly lifted?: LiftedHold;
}

/** The tools by which an operator's request is carried out. */
interface Administration {
  readonly store: QueueStore;
  readonly scope: Scope;
  readonly ask: Ask;
}

/** The result of one look. */
interface Situation {
  readonly reading: RecordReading;
  /** In the order of the queue. */
  readonly members: readonly Member[];
  /** The leader that the record names, if its place is there. */
  readonly leader: Member | undefined;
}

export function administerQueue(
  store: QueueStore,
  scope: Scope,
  request: AdminRequest,
  signal: AbortSignal,
): Promise<AdminResult> {
  const ask = asking(scope, signal);
  const look = async () => {
    await ask('catching up', (operation) => store.sync(operation));
    const reading = await ask('reading', (operation) => store.read(operation));
    const members = await ask('listing', (operation) => store.members(operation));
    const place = leaderPlaceIn(store, reading.record);
    const leader = members.find(({ name }) => name === place);
    const view = viewOf(reading, leader !== undefined, members[0], scope.clock.wallMs());
    if (reading.isForeign === true) refuseForeign(store, scope, request);
    const plan = () => planFor({ store, scope, ask }, request, { reading, members, leader });
    return { view, token: leader?.token ?? 0n, plan };
  };
  return administer(scope, request, look, signal);
}

async function planFor(
  { store, scope, ask }: Administration,
  request: AdminRequest,
  situation: Situation,
): Promise<Plan | undefined> {
  const { reading, members } = situation;
  const { endMark } = store;
  // An election that is not there is over.
  const isNothing = reading.version === undefined && endMark !== undefined;
  if (request.kind === 'end' && isNothing) return undefined;
  // It was removed with its end. Like `init`, this call makes it whatever the option `create` says.
  if (request.kind === 'reopen' && isNothing) {
    const write = async () => {
      await ask('making the election', (operation) => store.init(operation));
      return true;
    };
    return { write };
  }
  if (reading.isForeign === true && endMark !== undefined) {
    const write = async () => {
      if (request.kind === 'reopen') {
        await ask('taking back the end', (operation) => endMark.clear(operation));
        return true;
      }
      await ask('marking the end', (operation) => endMark.set(operation));
      // The mark says it all. Removing from the end keeps any waiting member from being promoted
      // on the way.
      await removeAll(store, members, ask);
      return true;
    };
    return { write };
  }
  // The mark is written with the record in one transaction, for two reasons. A leader of ours that
  // sees the mark alone leaves at once. And when an end and a reopening come together, one is done
  // whole, after the other.
  const mark = await changeOfMark(request, endMark, ask);
  const change =
    changeFor(request, situation, scope, endMark !== undefined) ??
    (mark && { record: reading.record ?? emptyQueueRecord(scope.election, scope.uniqueId()) });
  if (change === undefined) return undefined;
  const { lifted, ...amendment } = change;
  const write = async () => {
    const whole = { ...amendment, version: reading.version, ...(mark && { endMark: mark }) };
    const result = await ask(`asking for ${request.kind}`, (operation) =>
      store.amend(whole, operation),
    );
    return result.outcome === 'ok';
  };
  return { lifted, write };
}

/**
 * How the mark of the end must change. Undefined: it is as it should be, or this layout has none.
 */
async function changeOfMark(
  { kind }: AdminRequest,
  endMark: EndMark | undefined,
  ask: Ask,
): Promise<Amendment['endMark']> {
  if (endMark === undefined || (kind !== 'end' && kind !== 'reopen')) return undefined;
  const isSet = await ask('looking for the mark', (operation) => endMark.isSet(operation));
  if (isSet === (kind === 'end')) return undefined;
  return kind === 'end' ? 'set' : 'clear';
}

function refuseForeign(store: QueueStore, scope: Scope, request: AdminRequest): void {
  // GoLea's own protocol does without a record.
  if (store.endMark !== undefined && (request.kind === 'end' || request.kind === 'reopen')) return;
  throw new RefusedError(
    `the node of election "${scope.election}" holds data that is not ours, so a request ` +
      `(${request.kind}) cannot be left there: empty it, or ask the leader in its own way`,
  );
}

/** From the last to the first, one by one. A member that has gone already is no reason to stop. */
export async function removeAll(
  store: QueueStore,
  members: readonly Member[],
  ask: Ask,
): Promise<void> {
  for (const { name } of [...members].reverse()) {
    await ask('removing a place', (operation) => store.remove(name, operation));
  }
}

/**
 * The record with the request in it. Undefined when it shows the request already, or there is
 * nothing to do.
 */
function changeFor(
  request: AdminRequest,
  situation: Situation,
  scope: Scope,
  othersKnowTheEnd: boolean,
): Change | undefined {
  const { reading, leader } = situation;
  const { election, uniqueId, clock } = scope;
  const record = reading.record ?? emptyQueueRecord(election, uniqueId());
  switch (request.kind) {
    case 'vacate':
      return vacate(record, situation, request.force, scope);
    case 'transfer': {
      const { to } = request;
      if (record.holding === undefined || leader === undefined) {
        throw new RefusedError(
          `nobody leads election "${election}" by our record, so there is nothing to transfer to "${to}"`,
        );
      }
      if (record.holding.candidate.id === to) throw leadsAlready(to, election);
      const between = membersBefore(to, situation);
      const next = asked(record, { kind: 'transfer', to, nonce: uniqueId() });
      if (next === undefined && between.length === 0) return undefined;
      // Members before the one that is named enter again behind it.
      const remove = between.map(({ name }) => name);
      return { record: next ?? record, present: leader.name, remove };
    }
    case 'drain': {
      const wallMs = clock.wallMs();
      const next = drained(record, request, wallMs);
      if (next === undefined) return undefined;
      if (request.untilUnixMs <= wallMs || leader === undefined) return { record: next };
      const waiting = waitingMembers(situation).filter(
        ({ candidate, isOurs }) => isOurs && candidate.id === request.id,
      );
      return { record: next, present: leader.name, remove: waiting.map(({ name }) => name) };
    }
    case 'end': {
      // From the last to the first, so that none is promoted on the way. A leader of ours sees the
      // mark, and goes in order. Members of another make know only the end of their own library. If
      // its place is deleted, such a member would go on, or come back and lead beside the others.
      const waiting = waitingMembers(situation).filter(({ isOurs }) => isOurs || othersKnowTheEnd);
      const next = ended(record, true);
      if (next === undefined && waiting.length === 0) return undefined;
      return { record: next ?? record, remove: waiting.map(({ name }) => name).reverse() };
    }
    case 'reopen': {
      const next = ended(record, false);
      return next && { record: next };
    }
    default:
      return request satisfies never;
  }
}

function vacate(
  record: QueueRecord,
  { members, leader }: Situation,
  force: boolean,
  { election, clock, uniqueId }: Scope,
): Change | undefined {
  const { holding } = record;
  const wallMs = clock.wallMs();
  if (holding === undefined || leader === undefined) {
    const [first] = members;
    if (first === undefined || first.isOurs) return liftOf(record, wallMs);
    if (force) return { record, remove: [first.name] };
    throw new RefusedError(
      `"${first.candidate.id}" leads election "${election}" and does not know this request: stop it in ` +
        'its own way. With --force only its place is deleted: that stops no program which does not look ' +
        'at it, and the next one leads beside it',
    );
  }
  const hold = holdOf(holding.candidate.id, holding.held, wallMs);
  if (hold !== undefined && !force) {
    const doubt = `its session is there; if it is dead, that ends within ${formatDuration(holding.leaseMs)}`;
    throw holdRefusal(hold, doubt, wallMs);
  }
  const { name } = leader;
  if (force) {
    const next = revoked(record, uniqueId());
    return { record: next, present: name, remove: [name], ...(hold && { lifted: hold }) };
  }
  if (holding.request?.kind === 'vacate') return undefined;
  const next = asked(record, { kind: 'vacate', nonce: uniqueId() });
  return next && { record: next, present: name };
}

/**
 * No candidate has the seat: lifts the hold that keeps it closed. The last leader stays in the
 * record, to be waited out.
 */
function liftOf(record: QueueRecord, wallMs: number): Change | undefined {
  const { holding, reservation, history } = record;
  const lifted =
    holding === undefined
      ? reservationOf(reservation, history, wallMs)
      : holdOf(holding.candidate.id, holding.held, wallMs);
  return lifted && { record: opened(record), lifted };
}

/**
 * All members but a leader of ours. One of ours that is about to lead is left out too: it
 * sees the record.
 */
function waitingMembers({ members, leader }: Situation): readonly Member[] {
  if (leader !== undefined) return members.filter(({ name }) => name !== leader.name);
  return members.filter(({ isOurs }, index) => index > 0 || !isOurs);
}

/**
 * The members between the leader and the candidate `id`.
 * @throws RefusedError
 */
function membersBefore(id: string, situation: Situation): readonly Member[] {
  const waiting = waitingMembers(situation);
  const index = waiting.findIndex(({ candidate, isOurs }) => isOurs && candidate.id === id);
  if (index < 0) {
    throw notWaiting(
      id,
      waiting.map(({ candidate }) => candidate),
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
