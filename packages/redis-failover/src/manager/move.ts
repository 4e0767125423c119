import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import { askEverybody, choose, describe, eligible, isReady, isRefusing } from './choose.ts';
import type { ManagerStep } from './events.ts';
import type { Fenced } from './fence.ts';
import { fence, waitForEarlierViews, waitForViews, whileWatched } from './fence.ts';
import { join, missingFrom, StreamNotes } from './join.ts';
import { isRefusedAt } from './keeper.ts';
import type { Lineage, Replications } from './lineage.ts';
import {
  goesOn,
  includes,
  lineageOf,
  recordedLineage,
  withoutUnfinished,
  writtenLineage,
} from './lineage.ts';
import type { Moved, MovePlan, MoveWorld } from './move-world.ts';
import {
  everyNode,
  MoveRefusedError,
  MoveTooEarlyError,
  MoveWithdrawnError,
  memoryOf,
  NoCandidateError,
} from './move-world.ts';

/**
 * Moves the primary in six steps: `revoke`, `fence`, `choose`, `promote`, `redirect`, `publish`.
 *
 * From `revoke` to `publish` the record names no primary, and clients write to no node. A failure
 * in between leaves it so. The next attempt, here or in another manager, begins at `fence` with the
 * reason `unfinished`. It may make the former primary the primary again, because nothing was
 * written anywhere since.
 *
 * @returns rejects with MoveRefusedError, NoCandidateError, or an error of a server
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
  // An operator's `discard` was about the primary of that term only.
  const { discarded: _, ...going } = before;
  const record = { ...going, primary: null, former, viewMs, ...world.author };
  await step('revoke', former, () => revoke(before, record, plan, world));
  const fenceAndChoose = async () => {
    const fenced = await step('fence', former, () =>
      former === null ? nobody : fence(former, record, plan, world),
    );
    const choice = await step(
      'choose',
      former,
      () => choose(former, fenced, record, plan, world),
      (each) => each.chosen,
    );
    return { ...choice, fenced };
  };
  const { chosen, has, answered, included, refusal, fenced } = await (former === null
    ? fenceAndChoose()
    : whileWatched(former, record, world, fenceAndChoose));
  const { streams, promoted } = await step('promote', chosen, () =>
    promote(chosen, has, record, world),
  );
  const followers = await step('redirect', chosen, () =>
    orTakeBack(chosen, has, world, () =>
      redirect(chosen, answered, { former, fenced, streams, included }, record, world),
    ),
  );
  // If the request is refused, its answer must not say that it is done.
  const told = refusal === undefined ? plan : { ...plan, withPublication: undefined };
  await step('publish', chosen, async () => {
    const own = await orTakeBack(chosen, has, world, () => lookAgain(chosen, promoted, world));
    const lineage = writtenLineage(goesOn(streams.lineage, own));
    const ended = { ...record, lineage, promoting: undefined };
    await publish(chosen, own, followers, ended, told, world);
  });
  await Promise.all(answered.map((node) => world.hands.keepConfig(node)));
  const moved = { primary: chosen, term: record.term + 1 };
  const memory = memoryOf(moved, world.memory);
  if (plan.reason === 'down' && chosen === former) memory.cameBackAtMs = world.nowMs();
  const tookMs = world.nowMs() - began;
  world.tell({
    type: 'moved',
    from: former,
    to: chosen,
    term: moved.term,
    reason: plan.reason,
    tookMs,
  });
  if (refusal !== undefined) throw new MoveRefusedError(`${refusal}: ${chosen} goes on`);
  return moved;
}

const nobody: Promise<Fenced> = Promise.resolve({ how: 'silent' });

/** Checks, before anything is changed, that the move can succeed. */
async function checkPlan(plan: MovePlan, record: PrimaryRecord, world: MoveWorld): Promise<void> {
  const { target, available, reason } = plan;
  const nodes = everyNode(world);
  const others = nodes.filter((node) => reason !== 'down' || node !== record.primary);
  const known = await askEverybody(others, available, world);
  const fit = eligible(known, record, plan, { nodes });
  if (reason === 'request') {
    const missing = available.find((node) => !known.has(node) && !isRefusing(node, world));
    if (missing !== undefined) {
      throw new MoveRefusedError(
        `nothing is moved while ${missing}, which is up, does not answer this manager: try again`,
      );
    }
  }
  if (target === undefined) {
    const isOther = (node: NodeAddress) =>
      reason === 'lost-role' || reason === 'lost-data' || node !== record.primary;
    const primary = known.get(record.primary ?? '');
    const isTaken = ([node, each]: readonly [NodeAddress, Replication]) =>
      world.nodes.includes(node) &&
      isOther(node) &&
      // A node that is down by the managers' verdict would be replaced at once.
      (reason !== 'request' || (available.includes(node) && isReady(each, primary, record)));
    if ([...fit].some(isTaken)) return;
    if (reason === 'request') expectNoCopying(known, fit, record, plan);
    const isAlone = [...known].every(([node, each]) => node === record.primary && !each.isAside);
    const found = isAlone ? 'no other node is up' : describe(known, world, reason);
    throw new NoCandidateError(`nobody can take over from ${record.primary}: ${found}`);
  }
  if (reason === 'request') expectConnection(target, known, fit, record, plan);
  const why = whyNot(target, known, fit, record, plan);
  if (why !== undefined) throw new MoveRefusedError(`${target} cannot be promoted: ${why}`);
}

/** A request for any replica waits for one that will be ready soon. */
function expectNoCopying(
  known: Replications,
  fit: Replications,
  record: PrimaryRecord,
  plan: MovePlan,
): void {
  const others = [...known].filter(
    ([node, each]) => node !== record.primary && !each.isAside && each.priority > 0,
  );
  for (const [node, each] of others) {
    if (each.syncing || each.loading) {
      throw new MoveTooEarlyError(`${node} is ${stateOf(each)}`, true);
    }
  }
  for (const [node, each] of others) {
    if (each.role !== 'replica' || each.linkUp || !plan.available.includes(node)) continue;
    const lacks = fit.has(node) ? whyNot(node, known, fit, record, plan) : undefined;
    throw new MoveTooEarlyError(
      lacks === undefined
        ? `${node} has no connection with its primary yet`
        : `${node} cannot be promoted yet: ${lacks}`,
      false,
    );
  }
}

/** A request for one node waits while that gets what the primary has. */
function expectConnection(
  target: NodeAddress,
  known: Replications,
  fit: Replications,
  record: PrimaryRecord,
  plan: MovePlan,
): void {
  const wanted = known.get(target);
  if (wanted === undefined) return;
  // The managers may say that it is down: a node that loads refuses their PING.
  if (wanted.loading || wanted.syncing) {
    throw new MoveTooEarlyError(`${target} is ${stateOf(wanted)}`, true);
  }
  if (!plan.available.includes(target)) return;
  if (wanted.role !== 'replica' || wanted.isAside || wanted.linkUp) return;
  const why = whyNot(target, known, fit, record, plan);
  if (why === undefined) return;
  // If a primary delays its copies, a new replica is in this state for seconds.
  const lacks = fit.has(target)
    ? why
    : 'it has no connection with its primary, and no data of the set';
  throw new MoveTooEarlyError(`${target} cannot be promoted yet: ${lacks}`, false);
}

function stateOf({ syncing, copiedPercent }: Replication): string {
  if (!syncing) return 'still loading its data';
  return copiedPercent === undefined
    ? 'still copying the data'
    : `still copying the data, ${copiedPercent} %`;
}

function whyNot(
  target: NodeAddress,
  known: Replications,
  fit: Replications,
  record: PrimaryRecord,
  { available, reason }: MovePlan,
): string | undefined {
  const wanted = known.get(target);
  if (wanted?.loading) return `it is ${stateOf(wanted)}`;
  if (!available.includes(target)) return 'the managers say that it is down';
  if (wanted === undefined) return 'it does not answer this manager';
  if (!fit.has(target)) {
    return wanted.isAside ? 'it is set aside' : 'its data do not go on from those of the primary';
  }
  const primary = known.get(record.primary ?? '');
  if (reason !== 'request' || wanted.linkUp || primary === undefined) return undefined;
  const lineage = recordedLineage(record);
  if (includes(wanted, lineage, primary)) return undefined;
  return (
    `it has no connection with its primary, and lacks what ${record.primary} has ` +
    `(${missingFrom(wanted, lineage, primary)})`
  );
}

async function revoke(
  before: PrimaryRecord,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Promise<void> {
  if (before.primary === null) {
    // Another manager has begun this move. Its time of revocation is not known here.
    world.revokedAtMs ??= world.nowMs();
    // Every write that an earlier manager sent before this one now fails its version check.
    await writeIfAsked(record, plan, world);
    return;
  }
  world.earlierRevokedAtMs = world.revokedAtMs ?? world.earlierRevokedAtMs;
  world.revokedAtMs = undefined;
  await writeIfAsked(record, plan, world);
  // Taken after the answer: a confirmation that a client sends later cannot succeed.
  world.revokedAtMs = world.nowMs();
}

/**
 * Writes the record in one transaction with a check of the request. A request that was withdrawn
 * earlier is never begun.
 */
async function writeIfAsked(
  record: PrimaryRecord,
  { withPublication }: MovePlan,
  world: MoveWorld,
): Promise<void> {
  const { path, stillAsked } = withPublication ?? {};
  try {
    await world.keeper.write({
      ...{ record, nodes: null },
      ...(stillAsked === undefined ? {} : { also: stillAsked }),
    });
  } catch (error) {
    if (path === undefined || !isRefusedAt(error, path)) throw error;
    throw new MoveWithdrawnError(`the request ${path} was withdrawn`);
  }
}

/**
 * Promotes the chosen node. Until it is published, its lineage stands in the record beside that of
 * the last term, and nodes are judged by both.
 * @returns the lineage of the new primary, as the record will have it, and what the node says
 *   itself
 */
async function promote(
  chosen: NodeAddress,
  has: Replication,
  record: PrimaryRecord,
  world: MoveWorld,
): Promise<{ readonly streams: StreamNotes; readonly promoted: Replication }> {
  // Done before the node takes writes, because clients may still have connections from its last
  // time as the primary.
  await waitForEarlierViews(record, world);
  const before = recordedLineage(record);
  const lineage = withoutUnfinished(lineageOf(has, before), record);
  const note = (next: Lineage) =>
    world.keeper.write({ record: { ...record, promoting: writtenLineage(next) } });
  // Redis forgets that stream with the promotion.
  if (!before.has(has.replicationId)) await note(lineage);
  // The former primary still has replicas. They would copy what it came back with.
  if (has.role === 'primary') {
    const { runId } = await world.hands.replication(chosen);
    expectStillThere(chosen, runId === has.runId);
  }
  let promoted: Replication;
  try {
    promoted = await world.hands.makePrimary(chosen);
    world.refused.delete(chosen);
  } catch (error) {
    world.refused.add(chosen);
    throw error;
  }
  // The offset goes on counting in a stream of the node's own. So the note says where that stream
  // began.
  const fork = { formerReplicationId: has.replicationId, formerOffset: has.offset + 1 };
  const goingOn = hasBegunStream(has, promoted) ? { ...promoted, ...fork } : promoted;
  const streams = new StreamNotes(goesOn(lineage, goingOn), note);
  await orTakeBack(chosen, has, world, async () => {
    expectStillThere(chosen, isStillThere(has, promoted));
    // No node copies a stream that the record does not name.
    if (!before.has(promoted.replicationId)) await note(streams.lineage);
  });
  return { streams, promoted };
}

/**
 * Runs a step between the promotion and the publication, when no client can know of the promoted
 * node. If the step fails, the node becomes a replica again. As a primary it would let keys expire,
 * and then have data of its own. A node that was a primary before stays one: without a backlog its
 * offset does not show what it has taken.
 */
async function orTakeBack<T>(
  chosen: NodeAddress,
  has: Replication,
  { hands }: MoveWorld,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (has.role === 'replica') {
      await (has.isAside ? hands.setAside(chosen) : hands.hold(chosen)).catch(() => {});
    }
    throw error;
  }
}

function expectStillThere(chosen: NodeAddress, isThere: boolean): void {
  if (isThere) return;
  throw new Error(`${chosen} has not the data any more that it was chosen by: it is looked again`);
}

/**
 * The node's first replica has come. With its first backlog Redis begins a new stream, and forgets
 * the one before.
 */
function hasBegunStream(has: Replication, promoted: Replication): boolean {
  return !has.hasBacklog && promoted.formerReplicationId === undefined;
}

/**
 * Whether the chosen node still has its data. It may have been emptied for a copy, or started anew.
 */
export function isStillThere(has: Replication, promoted: Replication): boolean {
  if (promoted.runId !== has.runId) return false;
  if (hasBegunStream(has, promoted)) return has.isEmpty || !promoted.isEmpty;
  if (has.role === 'primary') return promoted.replicationId === has.replicationId;
  if (promoted.formerReplicationId !== has.replicationId) return false;
  return promoted.formerOffset - 1 >= has.offset;
}

async function redirect(
  chosen: NodeAddress,
  answered: readonly NodeAddress[],
  from: {
    readonly former: NodeAddress | null;
    readonly fenced: Fenced;
    readonly streams: StreamNotes;
    readonly included: ReadonlySet<NodeAddress>;
  },
  record: PrimaryRecord,
  world: MoveWorld,
): Promise<readonly NodeAddress[]> {
  const { former, fenced, streams, included } = from;
  const follows = new Set<NodeAddress>();
  const ahead: NodeAddress[] = [];
  // Only a paused primary is known to have sent nothing more. A process that was started anew does
  // not know what the one before it has sent. A replica may have been a primary a moment ago.
  const mayGetMore = fenced.how !== 'paused' && !world.hooks.broken?.includes('any-replica');
  let isStopped = false;
  await Promise.all(
    answered.map(async (node) => {
      const isHeld = node === former && fenced.how === 'paused' && world.nowMs() < fenced.untilMs;
      const stoodAt = isHeld ? fenced.replication : undefined;
      try {
        const wasIncluded = mayGetMore && included.has(node);
        const joined = await join({ node, primary: chosen, streams, stoodAt, wasIncluded }, world);
        if (joined === 'joined') follows.add(node);
        if (joined === 'ahead') ahead.push(node);
        if (node !== former || joined === 'loading') return;
        isStopped = true;
        // Writers that were kept waiting there are refused now.
        await world.hands.resumeWrites(node);
      } catch {
        // A node that cannot be reached now is made a replica when it can.
        world.signal.throwIfAborted();
      }
    }),
  );
  if (ahead.length > 0) {
    // No client knows of the new primary yet, so the next attempt may choose a node with more data.
    // Each such node is held and gets nothing more, so there are fewer of these attempts than
    // nodes.
    throw new NoCandidateError(
      `nobody is promoted yet: ${ahead.join(', ')} has got more since ${chosen} was chosen`,
    );
  }
  // It answered, and then went away. Whether it takes writes again cannot be known.
  const isLost = fenced.how !== 'silent' && former !== null && former !== chosen;
  if (isLost && !isStopped) await waitForViews(record, world);
  return [...follows];
}

/** @returns what the node has now */
async function lookAgain(
  chosen: NodeAddress,
  promoted: Replication,
  world: MoveWorld,
): Promise<Replication> {
  const own = await world.hands.replication(chosen);
  if (own.role !== 'primary') {
    throw new Error(`${chosen} was made the primary, and says now that it is a replica`);
  }
  // No manager has looked at the data of another process. (The stream may differ: Redis renames it
  // for the first replica.)
  if (own.runId !== promoted.runId) {
    throw new Error(`${chosen} was started anew while the others were told to follow it`);
  }
  // A manager that ended in the middle may have paused its writes.
  await world.hands.resumeWrites(chosen);
  return own;
}

async function publish(
  chosen: NodeAddress,
  { replicationId, runId }: Replication,
  followers: readonly NodeAddress[],
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Promise<void> {
  const nodes = {
    master: chosen,
    slaves: followers,
    unavailable: world.nodes.filter((node) => node !== chosen && !followers.includes(node)),
  };
  const next = { ...record, term: record.term + 1, primary: chosen, replicationId, runId };
  // A node that is started anew follows its configuration file, even if this manager ends before it
  // can correct that.
  await world.hands.keepConfig(chosen);
  const { also, path, manualSeen = record.manualSeen } = plan.withPublication ?? {};
  const change = { record: { ...next, manualSeen }, nodes };
  try {
    await world.keeper.write(
      also === undefined ? change : { ...change, also: also({ primary: chosen, term: next.term }) },
    );
  } catch (error) {
    // The requester has given up and withdrawn the request. The move is done all the same.
    if (path === undefined || !isRefusedAt(error, path)) throw error;
    await world.keeper.write(change);
  }
}
