import type { Backend } from '../../src/core/contest.ts';
import { LockElection } from '../../src/mechanisms/lock/backend.ts';
import type { LockSettings } from '../../src/mechanisms/lock/settings.ts';
import type { Holder, LockReading, LockStore } from '../../src/mechanisms/lock/store.ts';
import type { Entry, QueueStore, RecordReading } from '../../src/mechanisms/queue/store.ts';
import type { SimulatedQueueSession } from '../../src/testing/index.ts';
import { Stage } from '../queue/support.ts';

/** The claims that the candidates of one session share: which of them may make the lock. */
interface Claims {
  claimant: string | undefined;
  readonly entries: Map<string, Entry>;
  readonly listeners: Set<() => void>;
}

/** As `Stage`, but candidates race for one lock: a queue that only the first one enters. */
export class LockStage extends Stage {
  readonly #claims = new WeakMap<SimulatedQueueSession, Claims>();
  #wipedAfter = 0n;
  /** Settings of the backend that differ from those here. */
  settings: Partial<LockSettings<bigint>> = {};
  /** The record is that of a member of another make. */
  isTheirs = false;

  constructor() {
    super({ isMixed: true });
  }

  /** Deletes the record by hand. */
  wipe(): void {
    this.store.put('jobs', undefined);
    // Nodes from before have lower numbers.
    this.#wipedAfter = 1_000_000n;
  }

  override backendOf(session: SimulatedQueueSession): Backend<bigint> {
    return {
      ...session.backend,
      open: (scope) =>
        new LockElection<bigint>(scope, this.#lockOn(session, session.open(scope.election)), {
          waitsForPredecessor: true,
          stepsDownWhenDisconnected: false,
          recheckMs: 30_000,
          delayAfterWinMs: 0,
          pollMs: undefined,
          guard: ({ token }) => token,
          ...this.settings,
        }),
    };
  }

  #claimsOf(session: SimulatedQueueSession): Claims {
    let claims = this.#claims.get(session);
    if (claims === undefined) {
      const made: Claims = { claimant: undefined, entries: new Map(), listeners: new Set() };
      claims = made;
      this.#claims.set(session, made);
      session.session.onEvent((event) => {
        if (event !== 'over') return;
        made.claimant = undefined;
        made.entries.clear();
      });
    }
    return claims;
  }

  #lockOn(session: SimulatedQueueSession, queue: QueueStore): LockStore {
    const claims = this.#claimsOf(session);
    const unclaim = (guid: string) => {
      if (claims.claimant !== guid) return;
      claims.claimant = undefined;
      for (const listener of [...claims.listeners]) listener();
    };
    const lockReading = (reading: RecordReading): LockReading => {
      const isWiped = (reading.record?.token ?? 0n) === 0n;
      const wipedAfter = isWiped ? this.#wipedAfter : undefined;
      return { ...reading, isTheirs: this.isTheirs, wasFenced: false, wipedAfter };
    };
    const read = async (signal: AbortSignal) => lockReading(await queue.read(signal));
    return {
      ...queue,
      claim: ({ guid }) => {
        claims.claimant ??= guid;
        return claims.claimant === guid;
      },
      isClaimedFor: ({ guid }) => claims.claimant === guid,
      onUnclaimed(listener) {
        claims.listeners.add(listener);
        return () => claims.listeners.delete(listener);
      },
      async take(entry, signal) {
        claims.entries.set(entry.guid, entry);
        if ((await queue.list(signal)).length > 0) return undefined;
        const place = await queue.enter(entry, signal);
        const [first] = await queue.list(signal);
        if (first === place.name) return { place, reading: await read(signal) };
        await queue.leave(entry, place, signal);
        return undefined;
      },
      async survey(signal) {
        const reading = await read(signal);
        const [member] = await queue.members(signal);
        if (member === undefined) return { holder: undefined, reading };
        const { name, token } = member;
        const own = claims.entries.get(guidOf(name));
        // Entering once more finds the place that was made.
        const place = own && (await queue.enter(own, signal));
        const holder: Holder = {
          name,
          place: place ?? { name, token, session: undefined },
          isOfOurSession: place !== undefined,
        };
        return { holder, reading };
      },
      async watchHolder(signal) {
        const { value, ...watched } = await queue.watchList(signal);
        const [name] = value;
        const place = { name: name ?? '', token: 0n, session: undefined };
        const holder = name === undefined ? undefined : { name, place, isOfOurSession: false };
        return { ...watched, value: holder };
      },
      read,
      async leave(entry, place, signal) {
        if (claims.claimant !== entry.guid) return;
        await queue.leave(entry, place, signal);
        unclaim(entry.guid);
      },
      async release(place, record, version, signal) {
        const result = await queue.release(place, record, version, signal);
        if (result.outcome !== 'conflict') unclaim(guidOf(place.name));
        return result;
      },
    };
  }
}

/** The guid of the entry at the place of that name: `<guid>-n_<ten digits>`. */
function guidOf(name: string): string {
  return name.slice(0, -'-n_0000000000'.length);
}
