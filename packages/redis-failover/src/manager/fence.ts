/** Fencing: how the former primary is kept from acknowledging another write. */
import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import { isSameProcess } from './lineage.ts';
import type { MovePlan, MoveWorld } from './move-world.ts';

/**
 * The drift of clock rates that we allow, as everywhere in `incumbent`: one clock 5 % fast, the
 * other 5 % slow.
 */
const viewFactor = 1.05 / 0.95;

/**
 * The shortest pause of writes. It has to be longer than the whole move, or writes would be let in
 * again in the middle of it.
 */
const leastPauseMs = 15_000;

/** How long a silent node is listened to once more before another one is promoted. */
export const lastCallMs: number = 200;

/** How often a primary that is gone is asked whether it is back. */
const watchEveryMs = 50;

/** Why the former primary cannot acknowledge writes any more. */
export type Fenced =
  /** It answers, and makes its writers wait. `cameBack`: it did not answer at first. */
  | {
      readonly how: 'paused';
      readonly replication: Replication;
      readonly cameBack: boolean;
      /** Until this time it has taken no write since `replication`. */
      readonly untilMs: number;
    }
  /** It answers, and is a replica. */
  | { readonly how: 'replica' }
  /**
   * It does not answer, or answers but cannot be paused (`answers`). So the views of all clients
   * must be over before another node is promoted.
   */
  | { readonly how: 'silent'; readonly answers?: boolean };

export async function fence(
  former: NodeAddress,
  record: PrimaryRecord,
  { reason }: MovePlan,
  world: MoveWorld,
): Promise<Fenced> {
  const asked = await tryToStop(former, record, false, world);
  if (asked.how !== 'silent') return asked;
  if (reason === 'request') {
    throw new Error(`${former} is up and could not be told to stop its writes: nothing is moved`);
  }
  await waitForViews(record, world);
  // It may be back, perhaps after a restart, and with more data than its replicas have.
  const again = tryToStop(former, record, true, world).catch(() => asked);
  return Promise.race([again, world.sleep(lastCallMs).then(() => asked)]);
}

/**
 * Runs `act`, which fences the former primary and chooses the next one, and watches the former
 * primary meanwhile. Its replicas go on copying it. If it comes back as a primary in another
 * process, it may have less data. So it is set aside before they copy that. When this resolves,
 * nothing of the watch is under way.
 */
export async function whileWatched<T>(
  former: NodeAddress,
  record: PrimaryRecord,
  world: MoveWorld,
  act: () => Promise<T>,
): Promise<T> {
  const watch = new AbortController();
  let settingAside: Promise<unknown> = Promise.resolve();
  const look = async (): Promise<void> => {
    while (!watch.signal.aborted && !world.signal.aborted) {
      const says = await world.hands.replication(former).catch(() => undefined);
      if (watch.signal.aborted) return;
      if (says?.role === 'primary' && !says.loading && !isSameProcess(record, says)) {
        settingAside = world.hands.setAside(former).catch(() => {});
        await settingAside;
      }
      await world.sleep(watchEveryMs);
    }
  };
  look().catch(() => {}); // the term has ended
  try {
    return await act();
  } finally {
    watch.abort();
    await settingAside;
  }
}

async function tryToStop(
  former: NodeAddress,
  record: PrimaryRecord,
  cameBack: boolean,
  world: MoveWorld,
): Promise<Fenced> {
  let answers = false;
  try {
    const says = await world.hands.replication(former);
    answers = true;
    if (says.role === 'replica') return { how: 'replica' };
    if (!isSameProcess(record, says)) {
      // No node may copy what it has come back with, before a manager knows what it lacks.
      await world.hands.setAside(former);
      return { how: 'replica' };
    }
    const pauseMs = Math.max(leastPauseMs, 3 * viewFactor * record.viewMs);
    const untilMs = world.nowMs() + pauseMs;
    if (!world.hooks.broken?.includes('no-pause')) {
      await world.hands.pauseWrites(former, Math.ceil(pauseMs));
    }
    // Asked after the pause, so this is all that was ever written.
    return { how: 'paused', replication: await world.hands.replication(former), cameBack, untilMs };
  } catch {
    world.signal.throwIfAborted();
    return { how: 'silent', answers };
  }
}

/** Waits until no client can take an answer of the former primary for an acknowledgement. */
export async function waitForViews({ viewMs }: PrimaryRecord, world: MoveWorld): Promise<void> {
  if (world.hooks.broken?.includes('no-view-wait')) return;
  const since = world.revokedAtMs ?? world.nowMs();
  await waitUntil(Math.max(since + viewFactor * viewMs, world.othersLapseAtMs), world);
}

/**
 * For a node that was the primary a moment ago, and is to be it again. Waits until no client can
 * write to it by a view of its earlier term.
 */
export async function waitForEarlierViews(
  { viewMs }: PrimaryRecord,
  world: MoveWorld,
): Promise<void> {
  await waitForViewsSince(world.earlierRevokedAtMs, { viewMs }, world);
}

/**
 * Waits until all views from before a moment are over, as if the record had been revoked at that
 * moment.
 */
export async function waitForViewsSince(
  sinceMs: number,
  { viewMs }: Pick<PrimaryRecord, 'viewMs'>,
  world: MoveWorld,
): Promise<void> {
  if (world.hooks.broken?.includes('no-view-wait')) return;
  await waitUntil(sinceMs + viewFactor * viewMs, world);
}

async function waitUntil(lapsedAtMs: number, world: MoveWorld): Promise<void> {
  // A timer may fire early.
  for (let leftMs = lapsedAtMs - world.nowMs(); leftMs > 0; leftMs = lapsedAtMs - world.nowMs()) {
    await world.sleep(Math.ceil(leftMs));
    world.signal.throwIfAborted();
  }
}
