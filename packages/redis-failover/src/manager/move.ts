import { formatDuration } from 'incumbent';
import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import type { ManagerEvent, ManagerStep, MoveReason } from './events.ts';
import type { Hands } from './hands.ts';
import type { ManagerHooks } from './hooks.ts';
import type { Change, Keeper } from './keeper.ts';
import { isRefusedAt } from './keeper.ts';
import type { Replications } from './lineage.ts';
import { hasAllOf, isSameLineage, mainLineage } from './lineage.ts';
import { rankCandidates } from './strategies.ts';

/** What a move goes by. */
export interface MovePlan {
  readonly reason: MoveReason;
  /** Whom to promote. Left out: the best. */
  readonly target?: NodeAddress | undefined;
  /** Nodes that the managers say are up, also the primary of before. */
  readonly available: readonly NodeAddress[];
  /** Mean of what the managers see, in ms. */
  readonly latencyMs: (node: NodeAddress) => number;
  /** How many managers do not see it. */
  readonly unavailableTo: (node: NodeAddress) => number;
  /** What belongs into the write that publishes the new primary. */
  readonly withPublication?: Publication | undefined;
}

/** The answer to whoever asked for a move. */
export interface Publication {
  readonly manualSeen?: string;
  /** Left out when `path` is gone meanwhile. */
  readonly path?: string;
  readonly also?: (moved: Moved) => NonNullable<Change['also']>;
}

export interface MoveWorld {
  readonly keeper: Keeper;
  readonly hands: Hands;
  readonly hooks: ManagerHooks;
  readonly tell: (event: ManagerEvent) => void;
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  readonly sleep: (forMs: number) => Promise<void>;
  readonly clientViewMs: number;
  /** All of the set. */
  readonly nodes: readonly NodeAddress[];
  /** What the record says of who wrote it. */
  readonly author: Pick<PrimaryRecord, 'manager' | 'token'>;
  /**
   * When this manager first knew that the record names no primary, by `nowMs`: nobody's view of an
   * earlier one can be younger.
   */
  revokedAtMs: number | undefined;
  /**
   * Until when clients may go by what managers of the gem have published, by `nowMs`: our clients
   * believe that for longer.
   */
  othersLapseAtMs: number;
}

/** No node can be promoted. The record is as it was before, or names no primary. */
export class NoCandidateError extends Error {
  override readonly name: string = 'NoCandidateError';
  readonly code = 'NO_CANDIDATE';
}

/** A wish that cannot be carried out; nothing was changed. */
export class MoveRefusedError extends Error {
  override readonly name: string = 'MoveRefusedError';
  readonly code = 'MOVE_REFUSED';
}

export interface Moved {
  readonly primary: NodeAddress;
  readonly term: number;
}

/** Of clock rates, as everywhere in `incumbent`: both sides' clocks may be off by 5 %. */
const viewFactor = 1.1;

/** For how long a replica may lack what a primary that was told to stop has written before. */
const catchUpMs = 5_000;

/** For how long a node that was silent is listened to once more before somebody else is promoted. */
const lastCallMs = 200;

/** At least; longer than the whole move, or writes would be let in again in the middle of it. */
const leastPauseMs = 15_000;

/** How the primary of before cannot acknowledge any more. */
type Fenced =
  /** It answers, and keeps those waiting who write. `cameBack`: it did not answer at first. */
  | { readonly how: 'paused'; readonly replication: Replication; readonly cameBack: boolean }
  /** It answers, and is a replica. */
  | { readonly how: 'replica' }
  /** It does not answer: what clients believe must have lapsed. */
  | { readonly how: 'silent' };

/**
 * Moves the primary: `revoke`, `fence`, `choose`, `promote`, `redirect`, `publish`.
 *
 * From `revoke` to `publish` the record names nobody, and nobody is written to. What fails in between
 * leaves it so, and the next attempt, here or in another manager, begins at `fence` with the reason
 * `unfinished`: it may give the node of before back, for nothing was written anywhere since.
 *
 * @returns rejects MoveRefusedError, NoCandidateError, or what a server said
 */
export async function movePrimary(plan: MovePlan, world: MoveWorld): Promise<Moved> {
  const began = world.nowMs();
  const step = async <T>(name: ManagerStep, node: NodeAddress | null, act: () => Promise<T>) => {
    await world.hooks.onStep?.(`before ${name}`);
    const result = await act();
    world.tell({ type: 'step', step: name, node, afterMs: world.nowMs() - began });
    await world.hooks.onStep?.(`after ${name}`);
    return result;
  };
  const { record: before } = await world.keeper.read();
  if (before === undefined) throw new Error('a primary cannot be moved before there was one');
  const former = before.primary ?? before.former;
  if (before.primary !== null) await checkPlan(plan, before, world);

  const viewMs = Math.max(before.viewMs, world.clientViewMs);
  const record = { ...before, primary: null, former, viewMs, ...world.author };
  await step('revoke', former, () => revoke(before, record, world));
  const fenced = await step('fence', former, () =>
    former === null ? nobody : fence(former, record, world),
  );
  const chosen = await step('choose', former, () => choose(former, fenced, record, plan, world));
  await step('promote', chosen, () => world.hands.makePrimary(chosen));
  const followers = await step('redirect', chosen, () =>
    redirect(chosen, former, fenced, record, plan, world),
  );
  await step('publish', chosen, () => publish(chosen, followers, record, plan, world));
  world.revokedAtMs = undefined;
  const moved = { primary: chosen, term: record.term + 1 };
  const tookMs = world.nowMs() - began;
  world.tell({
    type: 'moved',
    from: former,
    to: chosen,
    term: moved.term,
    reason: plan.reason,
    tookMs,
  });
  return moved;
}

const nobody: Promise<Fenced> = Promise.resolve({ how: 'silent' });

/** Before anything is changed. */
async function checkPlan(plan: MovePlan, record: PrimaryRecord, world: MoveWorld): Promise<void> {
  const { target, available } = plan;
  if (target === undefined) {
    const others = available.filter((node) => node !== record.primary);
    const known = await askAll(others, world);
    if (eligible(known, record, plan).size > 0) return;
    throw new NoCandidateError(
      `nobody can take over from ${record.primary}: ` +
        (others.length === 0 ? 'no other node is up' : describe(known)),
    );
  }
  if (!available.includes(target)) {
    throw new MoveRefusedError(`${target} cannot be promoted: the managers say that it is down`);
  }
  const known = await askAll(available, world);
  const wanted = known.get(target);
  if (wanted === undefined) {
    throw new MoveRefusedError(`${target} cannot be promoted: it does not answer this manager`);
  }
  if (!eligible(known, record, plan).has(target)) {
    throw new MoveRefusedError(
      `${target} cannot be promoted: ` +
        (wanted.syncing || wanted.loading
          ? 'it is still getting its data'
          : 'its data do not go on from those of the primary'),
    );
  }
}

async function revoke(
  before: PrimaryRecord,
  record: PrimaryRecord,
  world: MoveWorld,
): Promise<void> {
  if (before.primary === null) {
    // By whoever began this move; when, is not known here.
    world.revokedAtMs ??= world.nowMs();
    return;
  }
  await world.keeper.write({ record, nodes: null });
  // After the answer: no confirmation that was sent later can have succeeded.
  world.revokedAtMs = world.nowMs();
}

async function fence(
  former: NodeAddress,
  record: PrimaryRecord,
  world: MoveWorld,
): Promise<Fenced> {
  const asked = await tryToStop(former, record, false, world);
  if (asked.how !== 'silent') return asked;
  await waitForViews(record, world);
  // It may be there again, perhaps after a restart and with more than its replicas have.
  const again = tryToStop(former, record, true, world).catch(() => asked);
  return Promise.race([again, world.sleep(lastCallMs).then(() => asked)]);
}

async function tryToStop(
  former: NodeAddress,
  record: PrimaryRecord,
  cameBack: boolean,
  world: MoveWorld,
): Promise<Fenced> {
  try {
    const { role } = await world.hands.replication(former);
    if (role === 'replica') return { how: 'replica' };
    if (!world.hooks.broken?.includes('no-pause')) {
      const pauseMs = Math.max(leastPauseMs, 3 * viewFactor * record.viewMs);
      await world.hands.pauseWrites(former, Math.ceil(pauseMs));
    }
    // Asked after the pause: this is all that was ever written.
    return { how: 'paused', replication: await world.hands.replication(former), cameBack };
  } catch {
    world.signal.throwIfAborted();
    return { how: 'silent' };
  }
}

/** Until no client can take an answer of the node of before for an acknowledgement. */
async function waitForViews({ viewMs }: PrimaryRecord, world: MoveWorld): Promise<void> {
  if (world.hooks.broken?.includes('no-view-wait')) return;
  const since = world.revokedAtMs ?? world.nowMs();
  const lapsedAtMs = Math.max(since + viewFactor * viewMs, world.othersLapseAtMs);
  const leftMs = lapsedAtMs - world.nowMs();
  if (leftMs > 0) await world.sleep(Math.ceil(leftMs));
  world.signal.throwIfAborted();
}

async function choose(
  former: NodeAddress | null,
  fenced: Fenced,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Promise<NodeAddress> {
  const asked = new Set(plan.available);
  if (former !== null && fenced.how === 'silent') asked.delete(former);
  if (former !== null && fenced.how !== 'silent') asked.add(former);
  const known = await askAll([...asked], world);
  const fit = new Map(eligible(known, record, plan));
  if (former !== null) {
    if (isGivenBack(former, fenced, fit, plan)) {
      // Else somebody may go on in the term of before, beside others in the new one.
      await waitForViews(record, world);
      return former;
    }
    if (plan.target !== former) fit.delete(former);
  }
  const [best] = rankCandidates(
    [...fit].map(([address, { offset, priority }]) => ({
      address,
      offset: world.hooks.broken?.includes('any-replica') ? -offset : offset,
      latencyMs: plan.latencyMs(address),
      unavailableTo: plan.unavailableTo(address),
      priority,
    })),
  );
  const chosen = plan.target ?? best?.address;
  if (best === undefined || chosen === undefined || !fit.has(chosen)) {
    throw new NoCandidateError(`nobody can be promoted: ${describe(known)}`);
  }
  // What was written before, and clients were told of, must be there first.
  const stopped = fenced.how === 'paused' ? fenced.replication : undefined;
  const isOwed = stopped !== undefined && fit.size > 0 && isComparable(stopped, fit.get(chosen));
  await waitForOffset(chosen, Math.max(isOwed ? stopped.offset : 0, best.offset), world);
  return chosen;
}

/**
 * Nothing was written anywhere since the record names nobody, so the node of before lacks nothing: it
 * goes on when it is there again, unless somebody wants another one or the managers say it is down.
 */
function isGivenBack(
  former: NodeAddress,
  fenced: Fenced,
  fit: Replications,
  { reason, target, available }: MovePlan,
): boolean {
  const last = fit.get(former);
  if (last?.role !== 'primary' || (target !== undefined && target !== former)) return false;
  const mayBe =
    reason === 'unfinished'
      ? available.includes(former)
      : reason === 'down' && fenced.how === 'paused' && fenced.cameBack;
  if (!mayBe) return false;
  return [...fit].every(([node, other]) => node === former || hasAllOf(last, other));
}

function isComparable(a: Replication, b: Replication | undefined): boolean {
  return b !== undefined && isSameLineage(a, b);
}

async function redirect(
  chosen: NodeAddress,
  former: NodeAddress | null,
  fenced: Fenced,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Promise<readonly NodeAddress[]> {
  const others = new Set(plan.available);
  others.delete(chosen);
  if (former !== null && former !== chosen) {
    if (fenced.how === 'silent') others.delete(former);
    else others.add(former);
  }
  const follows = new Set<NodeAddress>();
  await Promise.all(
    [...others].map(async (node) => {
      try {
        await world.hands.makeReplica(node, chosen);
        follows.add(node);
        // Now whoever was kept waiting there is refused.
        if (node === former) await world.hands.resumeWrites(node);
      } catch {
        // Who cannot be reached now is reconciled when it can.
        world.signal.throwIfAborted();
      }
    }),
  );
  // It was told to stop, and then went away: whether it has forgotten that cannot be known.
  const isLost = fenced.how === 'paused' && former !== null && former !== chosen;
  if (isLost && !follows.has(former)) await waitForViews(record, world);
  return [...follows];
}

async function publish(
  chosen: NodeAddress,
  followers: readonly NodeAddress[],
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Promise<void> {
  const { role, replicationId } = await world.hands.replication(chosen);
  if (role !== 'primary') {
    throw new Error(`${chosen} was made the primary, and says now that it is a replica`);
  }
  // It may have been told to keep writers waiting, by a manager that ended in the middle.
  await world.hands.resumeWrites(chosen);
  const nodes = {
    master: chosen,
    slaves: followers,
    unavailable: world.nodes.filter((node) => node !== chosen && !followers.includes(node)),
  };
  const next = { ...record, term: record.term + 1, primary: chosen, replicationId };
  const { also, path, manualSeen = record.manualSeen } = plan.withPublication ?? {};
  const change = { record: { ...next, manualSeen }, nodes };
  try {
    await world.keeper.write(
      also === undefined ? change : { ...change, also: also({ primary: chosen, term: next.term }) },
    );
  } catch (error) {
    // Whoever asked has given up meanwhile, and has taken the request away. It is done all the same.
    if (path === undefined || !isRefusedAt(error, path)) throw error;
    await world.keeper.write(change);
  }
}

/** Those that answer, each with what it says of itself. */
async function askAll(nodes: readonly NodeAddress[], world: MoveWorld): Promise<Replications> {
  const answers = await Promise.all(
    nodes.map(async (node): Promise<[NodeAddress, Replication] | undefined> => {
      try {
        return [node, await world.hands.replication(node)];
      } catch {
        world.signal.throwIfAborted();
        return undefined;
      }
    }),
  );
  return new Map(answers.filter((answer) => answer !== undefined));
}

/** Who has the data of the set, all that it was given of them, and may be promoted. */
function eligible(
  known: Replications,
  { replicationId }: PrimaryRecord,
  { reason, target }: Pick<MovePlan, 'reason' | 'target'>,
): Replications {
  const ready = new Map(
    [...known].filter(
      ([node, { syncing, loading, priority }]) =>
        !syncing && !loading && (priority > 0 || node === target),
    ),
  );
  // Whom somebody else made the primary has whatever data it has: the others follow it already.
  return reason === 'found' ? ready : mainLineage(ready, replicationId);
}

async function waitForOffset(node: NodeAddress, offset: number, world: MoveWorld): Promise<void> {
  if (world.hooks.broken?.includes('any-replica')) return;
  const deadline = world.nowMs() + catchUpMs;
  for (;;) {
    const replication = await world.hands.replication(node);
    if (replication.offset >= offset) return;
    if (world.nowMs() >= deadline) {
      throw new NoCandidateError(
        `${node} lacks ${offset - replication.offset} bytes of what was written, and has not got ` +
          `them in ${formatDuration(catchUpMs)}`,
      );
    }
    await world.sleep(20);
    world.signal.throwIfAborted();
  }
}

function describe(known: Replications): string {
  if (known.size === 0) return 'no other node answers';
  return [...known]
    .map(([node, { role, offset, syncing, loading, priority }]) => {
      const state = loading ? 'loading its data' : syncing ? 'getting its data' : `at ${offset}`;
      return `${node} (${role}, ${state}${priority === 0 ? ', replica-priority 0' : ''})`;
    })
    .join(', ');
}
