/**
 * Ends an election, and then deletes it with the mark of its end, as GoLea's `DeleteElection` does.
 *
 * The mark keeps all candidates out, and the record says how long its leader may believe. Both go
 * last. A schedule that must not be: the leader is cut off, its place is deleted, the election is
 * removed and made anew, and another candidate leads, while the old leader still believes. So the
 * election stays until no place has been there for as long as any leader may believe.
 */
import { formatDuration } from '../../base/duration.ts';
import { RefusedError } from '../../base/errors.ts';
import { bounded, sleep } from '../../base/wait.ts';
import type { AdminResult } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { administer } from '../administer.ts';
import { administerQueue, removeAll } from './administer.ts';
import type { Ask } from './ask.ts';
import { asking } from './ask.ts';
import { leaderPlaceIn } from './named-places.ts';
import { viewOf } from './observer.ts';
import type { QueueParts } from './settings.ts';
import type { Member, RecordReading, Removal } from './store.ts';

/** One look at the ended election. */
interface Sight {
  readonly reading: RecordReading;
  readonly members: readonly Member[];
  /** A leader of ours that goes in order, and so keeps its place for a while. */
  readonly leader: Member | undefined;
  /** The time after all answers, monotonic. */
  readonly atMs: number;
}

export async function endAndRemove<Guard>(
  parts: QueueParts<Guard>,
  removal: Removal,
  signal: AbortSignal,
): Promise<AdminResult> {
  const { store, scope } = parts;
  const ask = asking(scope, signal);
  // Before anything is changed.
  await refuseStrangers(scope.election, removal, ask);
  const ending = await administerQueue(store, scope, { kind: 'end' }, signal);
  const remover = new Remover(parts, removal, ask, signal);
  const look = () => remover.look();
  const removed = await administer(scope, { kind: 'removing the election' }, look, signal);
  return { ...ending, changed: ending.changed || removed.changed };
}

async function refuseStrangers(election: string, removal: Removal, ask: Ask): Promise<void> {
  const strangers = await ask('listing', (operation) => removal.strangers(operation));
  if (strangers.length === 0) return;
  const named = strangers.slice(0, 5).map((child) => JSON.stringify(child));
  const others = strangers.length > 5 ? ` and ${strangers.length - 5} more` : '';
  throw new RefusedError(
    `election "${election}" cannot be removed: below its node are children that are no candidates ` +
      `(${named.join(', ')}${others}). Delete or move them first`,
  );
}

class Remover<Guard> {
  readonly #parts: QueueParts<Guard>;
  readonly #removal: Removal;
  readonly #ask: Ask;
  readonly #signal: AbortSignal;
  /** The end that is carried out. A later one is another operator's. */
  #markId: bigint | undefined;
  /** Since when no place has been there, monotonic. */
  #emptySinceMs: number | undefined;
  /** How long the leader may take to go, monotonic. */
  #leaderUntilMs: number | undefined;

  constructor(parts: QueueParts<Guard>, removal: Removal, ask: Ask, signal: AbortSignal) {
    this.#parts = parts;
    this.#removal = removal;
    this.#ask = ask;
    this.#signal = signal;
  }

  async look() {
    const { store, scope } = this.#parts;
    await this.#ask('catching up', (operation) => store.sync(operation));
    const reading = await this.#ask('reading', (operation) => store.read(operation));
    const members = await this.#ask('listing', (operation) => store.members(operation));
    const markId = await this.#ask('looking for the mark', (operation) =>
      this.#removal.markId(operation),
    );
    const place = leaderPlaceIn(store, reading.record);
    const leader = members.find(({ name }) => name === place);
    const atMs = scope.clock.monotonicMs();
    const sight = { reading, members, leader, atMs };
    const plan = async () => {
      // It is removed.
      if (reading.version === undefined) return undefined;
      this.#requireSameEnd(markId);
      return { write: () => this.#step(sight) };
    };
    return {
      view: viewOf(reading, leader !== undefined, members[0], scope.clock.wallMs()),
      token: 0n,
      plan,
    };
  }

  /** @throws RefusedError when another operator has reopened the election */
  #requireSameEnd(markId: bigint | undefined): void {
    this.#markId ??= markId;
    if (markId !== undefined && markId === this.#markId) return;
    throw new RefusedError(
      `election "${this.#parts.scope.election}" was reopened while it was being removed, so it ` +
        'stays: end it again if that was not meant',
    );
  }

  /** @returns true when the election is removed; false: look again */
  async #step({ reading, members, leader, atMs }: Sight): Promise<boolean> {
    const { store } = this.#parts;
    const others = members.filter((member) => member !== leader);
    await removeAll(store, others, this.#ask);
    if (leader !== undefined) {
      await this.#waitFor(leader);
      return false;
    }
    if (members.length > 0) {
      this.#emptySinceMs = undefined;
      return false;
    }
    this.#emptySinceMs ??= atMs;
    const leftMs = this.#emptySinceMs + this.#beliefMs(reading.record) - atMs;
    if (leftMs > 0) {
      await sleep(this.#parts.scope.clock, leftMs, this.#signal);
      return false;
    }
    const outcome = await this.#ask('removing the election', (operation) =>
      this.#removal.remove(reading.version, operation),
    );
    if (outcome === 'removed') return true;
    await refuseStrangers(this.#parts.scope.election, this.#removal, this.#ask);
    return false;
  }

  /** A leader of ours goes in order: its work settles first. Its place goes last. */
  async #waitFor(leader: Member): Promise<void> {
    const { store, scope } = this.#parts;
    const { clock, timing, election } = scope;
    const patienceMs = timing.stopTimeoutMs + timing.leaseMs;
    this.#emptySinceMs = undefined;
    this.#leaderUntilMs ??= clock.monotonicMs() + patienceMs;
    const watched = await this.#ask('watching', (operation) =>
      store.watchPlace(leader.name, operation),
    );
    const leftMs = this.#leaderUntilMs - clock.monotonicMs();
    try {
      if (!watched.value) return;
      if (leftMs > 0) {
        await bounded(clock, 'the leader', leftMs, this.#signal, () => watched.changed);
        return;
      }
    } catch (error) {
      this.#signal.throwIfAborted();
      if (clock.monotonicMs() < this.#leaderUntilMs) throw error;
    } finally {
      watched.cancel();
    }
    throw new RefusedError(
      `"${leader.candidate.id}" has not left election "${election}" within ` +
        `${formatDuration(patienceMs)}. The election is ended, and its node stays. Ask again when the ` +
        'leader has gone, or delete its place by deleteCandidates() first',
    );
  }

  /**
   * How long a leader whose place has gone may believe. Members of ours may have led without a
   * record, where foreign data stands in its place.
   */
  #beliefMs(record: QueueRecord | undefined): number {
    const { scope, settings } = this.#parts;
    if (!settings.waitsForPredecessor) return 0;
    const { beliefMs, clockDrift } = scope.timing;
    const recordedMs = record?.holding === undefined ? 0 : record.beliefMs;
    return (Math.max(beliefMs, recordedMs) * (1 + clockDrift)) / (1 - clockDrift);
  }
}
