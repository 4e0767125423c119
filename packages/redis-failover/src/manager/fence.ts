/** How the primary of before is kept from acknowledging anything more. */
import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import { isSameProcess } from './lineage.ts';
import type { MovePlan, MoveWorld } from './move-world.ts';

/** Of clock rates, as everywhere in `incumbent`: one clock 5 % fast, the other 5 % slow. */
const viewFactor = 1.05 / 0.95;

/** At least; longer than the whole move, or writes would be let in again in the middle of it. */
const leastPauseMs = 15_000;

/** For how long a node that was silent is listened to once more before somebody else is promoted. */
export const lastCallMs: number = 200;

/** How often a primary that is gone is asked whether it is back. */
const watchEveryMs = 50;

/** How the primary of before cannot acknowledge any more. */
export type Fenced =
  /** It answers, and keeps those waiting who write. `cameBack`: it did not answer at first. */
  | {
      readonly how: 'paused';
      readonly replication: Replication;
      readonly cameBack: boolean;
      /** Until then nothing was written there since `replication`. */
      readonly untilMs: number;
    }
  /** It answers, and is a replica. */
  | { readonly how: 'replica' }
  /**
   * It does not answer, or cannot be told to stop (`answers`): what clients believe must have lapsed.
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
  // It may be there again, perhaps after a restart and with more than its replicas have.
  const again = tryToStop(former, record, true, world).catch(() => asked);
  return Promise.race([again, world.sleep(lastCallMs).then(() => asked)]);
}

/**
 * While `act` stops the primary of before and chooses the next one, its replicas go on copying it. When it
 * ends meanwhile and comes back as a primary in another process, it may have less: it is set aside, so that
 * nobody copies that. Nothing of that is under way any more when this resolves.
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
      // Nobody shall copy what it has come back with, before it is known what it lacks.
      await world.hands.setAside(former);
      return { how: 'replica' };
    }
    const pauseMs = Math.max(leastPauseMs, 3 * viewFactor * record.viewMs);
    const untilMs = world.nowMs() + pauseMs;
    if (!world.hooks.broken?.includes('no-pause')) {
      await world.hands.pauseWrites(former, Math.ceil(pauseMs));
    }
    // Asked after the pause: this is all that was ever written.
    return { how: 'paused', replication: await world.hands.replication(former), cameBack, untilMs };
  } catch {
    world.signal.throwIfAborted();
    return { how: 'silent', answers };
  }
}

/** Until no client can take an answer of the node of before for an acknowledgement. */
export async function waitForViews({ viewMs }: PrimaryRecord, world: MoveWorld): Promise<void> {
  if (world.hooks.broken?.includes('no-view-wait')) return;
  const since = world.revokedAtMs ?? world.nowMs();
  await waitUntil(Math.max(since + viewFactor * viewMs, world.othersLapseAtMs), world);
}

/**
 * A node that was the primary a moment ago, and is to be it again, must not meet who believes that it
 * still is.
 */
export async function waitForEarlierViews(
  { viewMs }: PrimaryRecord,
  world: MoveWorld,
): Promise<void> {
  await waitForViewsSince(world.earlierRevokedAtMs, { viewMs }, world);
}

/** Until nobody believes any more what stood there before a moment, as if that moment had been a revocation. */
export async function waitForViewsSince(
  sinceMs: number,
  { viewMs }: Pick<PrimaryRecord, 'viewMs'>,
  world: MoveWorld,
): Promise<void> {
  if (world.hooks.broken?.includes('no-view-wait')) return;
  await waitUntil(sinceMs + viewFactor * viewMs, world);
}

async function waitUntil(lapsedAtMs: number, world: MoveWorld): Promise<void> {
  // A timer may be early.
  for (let leftMs = lapsedAtMs - world.nowMs(); leftMs > 0; leftMs = lapsedAtMs - world.nowMs()) {
    await world.sleep(Math.ceil(leftMs));
    world.signal.throwIfAborted();
  }
}
