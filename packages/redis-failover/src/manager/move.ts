import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import { askAll, choose, describe, eligible, isComplete } from './choose.ts';
import type { ManagerStep } from './events.ts';
import type { Fenced } from './fence.ts';
import { fence, waitForEarlierViews, waitForViews } from './fence.ts';
import { isRefusedAt } from './keeper.ts';
import type { Moved, MovePlan, MoveWorld } from './move-world.ts';
import { MoveRefusedError, NoCandidateError } from './move-world.ts';

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
  const step = async <T>(
    name: ManagerStep,
    node: NodeAddress | null,
    act: () => Promise<T>,
    nodeOf: (result: T) => NodeAddress | null = () => node,
  ) => {
    await world.hooks.onStep?.(`before ${name}`);
    const result = await act();
    const afterMs = world.nowMs() - began;
    world.tell({ type: 'step', step: name, node: nodeOf(result), afterMs });
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
    former === null ? nobody : fence(former, record, plan, world),
  );
  const { chosen, answered } = await step(
    'choose',
    former,
    () => choose(former, fenced, record, plan, world),
    (choice) => choice.chosen,
  );
  await step('promote', chosen, () => promote(chosen, record, world));
  const followers = await step('redirect', chosen, () =>
    redirect(chosen, answered, { former, fenced }, record, world),
  );
  await step('publish', chosen, () => publish(chosen, followers, record, plan, world));
  world.memory.incompleteAttempts = 0;
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
  const { target, available, reason } = plan;
  const known = await askAll(
    reason === 'down' ? available.filter((node) => node !== record.primary) : available,
    world,
  );
  const fit = eligible(known, record, plan, isComplete(known, record, world));
  if (reason === 'request') {
    const missing = available.find((node) => !known.has(node));
    if (missing !== undefined) {
      throw new MoveRefusedError(
        `nothing is moved while ${missing}, which is up, does not answer this manager: try again`,
      );
    }
  }
  if (target === undefined) {
    if ([...fit.keys()].some((node) => reason === 'lost-role' || node !== record.primary)) return;
    throw new NoCandidateError(
      `nobody can take over from ${record.primary}: ` +
        (available.every((node) => node === record.primary)
          ? 'no other node is up'
          : describe(known, world)),
    );
  }
  if (fit.has(target)) return;
  const wanted = known.get(target);
  const why = !available.includes(target)
    ? 'the managers say that it is down'
    : wanted === undefined
      ? 'it does not answer this manager'
      : wanted.syncing || wanted.loading
        ? 'it is still getting its data'
        : 'its data do not go on from those of the primary';
  throw new MoveRefusedError(`${target} cannot be promoted: ${why}`);
}

async function revoke(
  before: PrimaryRecord,
  record: PrimaryRecord,
  world: MoveWorld,
): Promise<void> {
  if (before.primary === null) {
    // By whoever began this move; when, is not known here.
    world.revokedAtMs ??= world.nowMs();
    // Whatever was sent before, and is on its way still, comes too late after this.
    await world.keeper.write({ record, nodes: null });
    return;
  }
  world.earlierRevokedAtMs = world.revokedAtMs ?? world.earlierRevokedAtMs;
  world.revokedAtMs = undefined;
  await world.keeper.write({ record, nodes: null });
  // After the answer: no confirmation that was sent later can have succeeded.
  world.revokedAtMs = world.nowMs();
}

async function promote(
  chosen: NodeAddress,
  record: PrimaryRecord,
  world: MoveWorld,
): Promise<void> {
  // Before it takes writes: somebody may have a connection to it from when it was the primary last.
  await waitForEarlierViews(record, world);
  try {
    await world.hands.makePrimary(chosen);
    world.refused.delete(chosen);
  } catch (error) {
    world.refused.add(chosen);
    throw error;
  }
}

async function redirect(
  chosen: NodeAddress,
  answered: readonly NodeAddress[],
  { former, fenced }: { readonly former: NodeAddress | null; readonly fenced: Fenced },
  record: PrimaryRecord,
  world: MoveWorld,
): Promise<readonly NodeAddress[]> {
  const follows = new Set<NodeAddress>();
  await Promise.all(
    answered.map(async (node) => {
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
  // It answered, and then went away: whether it takes writes again cannot be known.
  const isLost = fenced.how !== 'silent' && former !== null && former !== chosen;
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
  const { role, replicationId, runId } = await world.hands.replication(chosen);
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
  const next = { ...record, term: record.term + 1, primary: chosen, replicationId, runId };
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
