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
import { hasAllOf, isOfLineage, isSameLineage, mainLineage, offsetIn } from './lineage.ts';
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
  /** The same of the move before this one; of an earlier manager's: when this one began. */
  earlierRevokedAtMs: number;
  /** Who could not be made a primary: taken only when nobody else has as much. */
  readonly refused: Set<NodeAddress>;
  /** Why nodes did not answer when they were asked last. */
  readonly errors: Map<NodeAddress, Error>;
  /** What is not forgotten between terms of this manager. */
  readonly memory: MoveMemory;
  /** How many managers report: whether another one can try. */
  readonly managers: () => number;
  /**
   * Until when clients may go by what managers of the gem have published, by `nowMs`: our clients
   * believe that for longer.
   */
  othersLapseAtMs: number;
}

export interface MoveMemory {
  /** Attempts that were given up because a node that is up did not answer; since the last success. */
  incompleteAttempts: number;
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

/** Of clock rates, as everywhere in `incumbent`: one clock 5 % fast, the other 5 % slow. */
const viewFactor = 1.05 / 0.95;

/** For how long a replica may lack what a primary that was told to stop has written before. */
const catchUpMs = 5_000;

/** For how long a node that was silent is listened to once more before somebody else is promoted. */
const lastCallMs = 200;

/** More than one manager makes before it resigns: then others have tried, too. */
const mostIncompleteAttempts = 5;

/** At least; longer than the whole move, or writes would be let in again in the middle of it. */
const leastPauseMs = 15_000;

/** How the primary of before cannot acknowledge any more. */
type Fenced =
  /** It answers, and keeps those waiting who write. `cameBack`: it did not answer at first. */
  | { readonly how: 'paused'; readonly replication: Replication; readonly cameBack: boolean }
  /** It answers, and is a replica. */
  | { readonly how: 'replica' }
  /**
   * It does not answer, or cannot be told to stop (`answers`): what clients believe must have lapsed.
   */
  | { readonly how: 'silent'; readonly answers?: boolean };

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

async function fence(
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

async function tryToStop(
  former: NodeAddress,
  record: PrimaryRecord,
  cameBack: boolean,
  world: MoveWorld,
): Promise<Fenced> {
  let answers = false;
  try {
    const { role } = await world.hands.replication(former);
    answers = true;
    if (role === 'replica') return { how: 'replica' };
    if (!world.hooks.broken?.includes('no-pause')) {
      const pauseMs = Math.max(leastPauseMs, 3 * viewFactor * record.viewMs);
      await world.hands.pauseWrites(former, Math.ceil(pauseMs));
    }
    // Asked after the pause: this is all that was ever written.
    return { how: 'paused', replication: await world.hands.replication(former), cameBack };
  } catch {
    world.signal.throwIfAborted();
    return { how: 'silent', answers };
  }
}

/** Until no client can take an answer of the node of before for an acknowledgement. */
async function waitForViews({ viewMs }: PrimaryRecord, world: MoveWorld): Promise<void> {
  if (world.hooks.broken?.includes('no-view-wait')) return;
  const since = world.revokedAtMs ?? world.nowMs();
  await waitUntil(Math.max(since + viewFactor * viewMs, world.othersLapseAtMs), world);
}

/**
 * A node that was the primary a moment ago, and is to be it again, must not meet who believes that it
 * still is.
 */
async function waitForEarlierViews({ viewMs }: PrimaryRecord, world: MoveWorld): Promise<void> {
  if (world.hooks.broken?.includes('no-view-wait')) return;
  await waitUntil(world.earlierRevokedAtMs + viewFactor * viewMs, world);
}

async function waitUntil(lapsedAtMs: number, world: MoveWorld): Promise<void> {
  // A timer may be early.
  for (let leftMs = lapsedAtMs - world.nowMs(); leftMs > 0; leftMs = lapsedAtMs - world.nowMs()) {
    await world.sleep(Math.ceil(leftMs));
    world.signal.throwIfAborted();
  }
}

interface Choice {
  readonly chosen: NodeAddress;
  /** The others that have answered: only those are told to copy it. */
  readonly answered: readonly NodeAddress[];
}

async function choose(
  former: NodeAddress | null,
  fenced: Fenced,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Promise<Choice> {
  const asked = new Set(plan.available);
  if (former !== null && fenced.how === 'silent') asked.delete(former);
  if (former !== null && fenced.how !== 'silent') asked.add(former);
  const [known, isBack] = await Promise.all([
    askAll([...asked], world),
    former !== null && fenced.how === 'silent' && fenced.answers !== true
      ? answersSoon(former, world)
      : false,
  ]);
  if (isBack) {
    giveUpFor(world, `${former} is there again, and is asked first what it has`);
  }
  expectAll(asked, known, world);
  const fit = new Map(eligible(known, record, plan, isComplete(known, record, world)));
  const choice = (chosen: NodeAddress): Choice => {
    const answered = [...known.keys()].filter((node) => node !== chosen);
    return { chosen, answered };
  };
  if (former !== null && fenced.how === 'paused' && plan.target !== former) {
    const last = fit.get(former);
    fit.delete(former);
    const mayGoOn = plan.reason !== 'request' && plan.reason !== 'found';
    const isLeft = last !== undefined && fit.size === 0 && mayGoOn;
    if (
      isLeft ||
      isGivenBack(last ?? restartedWithAll(known.get(former)), fenced, fit, former, plan)
    ) {
      // Else somebody may go on in the term of before, beside others in the new one.
      await waitForViews(record, world);
      return choice(former);
    }
  }
  const best = bestOf(fit, record, plan, world);
  const chosen = plan.target ?? best;
  if (best === undefined || chosen === undefined || !fit.has(chosen)) {
    throw new NoCandidateError(`nobody can be promoted: ${describe(known, world)}`);
  }
  if (plan.reason === 'found') return choice(chosen);
  const { replicationId } = record;
  const most = offsetIn(fit.get(best) as Replication, replicationId);
  const owed = former === null ? 0 : owedBy(former, fenced, fit.get(chosen) as Replication, world);
  try {
    await waitForOffset(chosen, Math.max(most, owed), replicationId, world);
  } catch (error) {
    // What only the node of before has is lost when that one is down, as the managers say.
    if (plan.reason === 'request' || owed <= most) throw error;
  }
  return choice(chosen);
}

/**
 * Who is up and does not answer may have more than all others. Another manager may reach it; when
 * nobody seems to, it is gone on without.
 */
function expectAll(asked: ReadonlySet<NodeAddress>, known: Replications, world: MoveWorld): void {
  if (world.hooks.broken?.includes('any-replica')) return;
  const missing = [...asked].filter((node) => !known.has(node));
  if (missing.length === 0) return;
  giveUpFor(
    world,
    `${missing.join(', ')} may have more of the data than the others, is up as the managers say, and ` +
      'does not answer this one',
  );
}

/** Ends an attempt, so that the next one, here or in another manager, finds more; but not for ever. */
function giveUpFor(world: MoveWorld, why: string): void {
  const most = world.managers() > 1 ? mostIncompleteAttempts : 2;
  if (world.memory.incompleteAttempts >= most) return;
  world.memory.incompleteAttempts += 1;
  throw new NoCandidateError(`nobody is promoted yet: ${why}`);
}

/** Of a node that was silent. It may have been started again since, with all that was written. */
async function answersSoon(node: NodeAddress, world: MoveWorld): Promise<boolean> {
  const answer = world.hands.replication(node).then(
    () => true,
    () => false,
  );
  return Promise.race([answer, world.sleep(lastCallMs).then(() => false)]);
}

/** It writes every command to a file, and has read it: nobody can have more, whatever the stream is called. */
function restartedWithAll(former: Replication | undefined): Replication | undefined {
  return former?.keepsData === true && !former.loading && !former.syncing ? former : undefined;
}

/** Nobody is missing who may have data of the set; the node of before only if it is silent. */
function isComplete(known: Replications, record: PrimaryRecord, world: MoveWorld): boolean {
  const former = record.primary ?? record.former;
  return (
    world.nodes.every((node) => known.has(node) || node === former) &&
    [...known.values()].every(({ syncing, loading }) => !syncing && !loading)
  );
}

function bestOf(
  fit: Replications,
  { replicationId }: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): NodeAddress | undefined {
  const sign = world.hooks.broken?.includes('any-replica') ? -1 : 1;
  const ranked = rankCandidates(
    [...fit].map(([address, replication]) => ({
      address,
      offset: sign * offsetIn(replication, replicationId),
      latencyMs: plan.latencyMs(address),
      unavailableTo: plan.unavailableTo(address),
      priority: replication.priority,
    })),
  );
  const [first] = ranked;
  // Who could not be made a primary is passed over where another one has as much.
  const able = ranked.find(
    ({ address, offset }) => !world.refused.has(address) && offset === first?.offset,
  );
  return (able ?? first)?.address;
}

/** What the node of before has written, and a replica that follows it can still get. */
function owedBy(
  former: NodeAddress,
  fenced: Fenced,
  chosen: Replication,
  world: MoveWorld,
): number {
  const follows = chosen.role === 'replica' && world.hands.follows(chosen, former);
  if (fenced.how !== 'paused' || !follows || !chosen.linkUp) return 0;
  return isSameLineage(fenced.replication, chosen) ? fenced.replication.offset : 0;
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

/**
 * Nothing was written anywhere since the record names nobody, so the node of before lacks nothing: it
 * goes on when it is there again, unless somebody wants another one or the managers say it is down.
 */
function isGivenBack(
  last: Replication | undefined,
  fenced: Extract<Fenced, { how: 'paused' }>,
  fit: Replications,
  former: NodeAddress,
  { reason, available }: MovePlan,
): boolean {
  const mayBe =
    reason === 'unfinished' ? available.includes(former) : reason === 'down' && fenced.cameBack;
  if (!mayBe || last?.role !== 'primary') return false;
  if (restartedWithAll(last) !== undefined) return true;
  return [...fit.values()].every((other) => hasAllOf(last, other));
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

/** Those that answer, each with what it says of itself. */
async function askAll(nodes: readonly NodeAddress[], world: MoveWorld): Promise<Replications> {
  const answers = await Promise.all(
    nodes.map(async (node): Promise<[NodeAddress, Replication] | undefined> => {
      try {
        const replication = await world.hands.replication(node);
        world.errors.delete(node);
        return [node, replication];
      } catch (error) {
        world.signal.throwIfAborted();
        world.errors.set(node, error as Error);
        return undefined;
      }
    }),
  );
  return new Map(answers.filter((answer) => answer !== undefined));
}

/** Who has data of the set, and may be promoted. */
function eligible(
  known: Replications,
  record: PrimaryRecord,
  { reason, target }: Pick<MovePlan, 'reason' | 'target'>,
  isWhole: boolean,
): Replications {
  const ready = new Map(
    [...known].filter(
      ([node, { syncing, loading, priority }]) =>
        !syncing && !loading && (priority > 0 || node === target),
    ),
  );
  // Whom somebody else made the primary may have other data: the others have copied them already.
  return reason === 'found' ? ready : mainLineage(ready, streamOf(known, record), isWhole);
}

/**
 * The stream of writes that counts: that of the record, but where its primary was started anew and has
 * read its data from a file that does not say of which stream they are.
 */
function streamOf(known: Replications, record: PrimaryRecord): string | null {
  const { primary, former, replicationId, runId } = record;
  const last = known.get(primary ?? former ?? '');
  if (last === undefined || replicationId === null || isOfLineage(last, replicationId)) {
    return replicationId;
  }
  const isAnew = last.role === 'primary' && last.runId !== runId;
  return isAnew && restartedWithAll(last) !== undefined ? last.replicationId : replicationId;
}

/** @param known the stream of writes in which the offset counts */
async function waitForOffset(
  node: NodeAddress,
  offset: number,
  known: string | null,
  world: MoveWorld,
): Promise<void> {
  if (world.hooks.broken?.includes('any-replica')) return;
  const deadline = world.nowMs() + catchUpMs;
  for (;;) {
    const has = offsetIn(await world.hands.replication(node), known);
    if (has >= offset) return;
    if (world.nowMs() >= deadline) {
      throw new NoCandidateError(
        `${node} lacks ${offset - has} bytes of what was written, and has not got them in ` +
          formatDuration(catchUpMs),
      );
    }
    await world.sleep(20);
    world.signal.throwIfAborted();
  }
}

function describe(known: Replications, { errors }: MoveWorld): string {
  const answers = [...known].map(([node, { role, offset, syncing, loading, priority }]) => {
    const state = loading ? 'loading its data' : syncing ? 'getting its data' : `at ${offset}`;
    return `${node} (${role}, ${state}${priority === 0 ? ', replica-priority 0' : ''})`;
  });
  const others = [...errors].flatMap(([node, { message }]) => (known.has(node) ? [] : [message]));
  return [...(answers.length === 0 ? ['no other node answers'] : answers), ...others].join('; ');
}
