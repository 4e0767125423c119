/** Chooses the node to promote: never one that has less of the data than another one. */
import { formatDuration } from 'incumbent';
import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import { NodeRefusedError } from '../redis/errors.ts';
import type { Replication } from '../redis/node-connection.ts';
import { isFollowable, isFollowedByAll, patienceMs } from './decide.ts';
import type { Fenced } from './fence.ts';
import { lastCallMs, waitForViews } from './fence.ts';
import { missingFrom } from './join.ts';
import type { Replications } from './lineage.ts';
import {
  includes,
  isEmptied,
  isMute,
  isOfReign,
  largestGroup,
  latestStream,
  lineageOf,
  offsetIn,
  positionOf,
  publishedLineage,
  reaches,
  recordedLineage,
} from './lineage.ts';
import type { MovePlan, MoveWorld } from './move-world.ts';
import { everyNode, memoryOf, NoCandidateError, PatienceError } from './move-world.ts';
import { oncePerProcess } from './node-lists.ts';
import { rankCandidates } from './strategies.ts';

/**
 * How long the chosen replica may lack writes that the paused primary has: it is still receiving
 * them.
 */
const catchUpMs = 5_000;

/**
 * Attempts that may be given up because a node did not answer. It is more than one manager makes
 * before it resigns, so others have tried, too.
 */
const mostIncompleteAttempts = 5;

export interface Choice {
  readonly chosen: NodeAddress;
  /** The chosen node's state when it was chosen. */
  readonly has: Replication;
  /**
   * The other nodes of this manager's list, and the former primary, as far as they answered. Only
   * these are told to copy the chosen node.
   */
  readonly answered: readonly NodeAddress[];
  /**
   * The nodes among those that have nothing the chosen one lacks, also if they may never be
   * promoted.
   */
  readonly included: ReadonlySet<NodeAddress>;
  /** Why a request for another node is refused, in words: the former primary stays the primary. */
  readonly refusal?: string | undefined;
}

export async function choose(
  former: NodeAddress | null,
  fenced: Fenced,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Promise<Choice> {
  const choice = await pick(former, fenced, record, plan, world);
  // Without this wait a client could go on with the former primary in the old term, beside clients
  // in the new term.
  if (choice.chosen === former) await waitForViews(record, world);
  return choice;
}

async function pick(
  former: NodeAddress | null,
  fenced: Fenced,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Promise<Choice> {
  const isSilent = former !== null && fenced.how === 'silent';
  const asked = new Set(everyNode(world));
  if (former !== null) isSilent ? asked.delete(former) : asked.add(former);
  const [answers, isBack] = await Promise.all([
    askEverybody([...asked], isSilent ? plan.available : [...plan.available, former ?? ''], world),
    isSilent && fenced.answers !== true ? answersSoon(former, world) : false,
  ]);
  if (isBack) {
    giveUpFor(record, world, `${former} is there again, and is asked first what it has`);
  }
  expectAll(
    [...asked].filter((node) => plan.available.includes(node) || node === former),
    answers,
    record,
    world,
  );
  // One Redis may have two names: another manager, or the operator, may spell a node differently.
  // The names that the record and the operator use win.
  const kept = plan.reason === 'keep' ? plan.target : undefined;
  const names = [kept, former].filter((node) => typeof node === 'string');
  const known = oncePerProcess(answers, [...names, ...world.nodes]);
  const fit = new Map(eligible(known, record, plan, { nodes: everyNode(world) }));
  // The former primary counts as a node of the list: it was promoted once.
  const isOwn = (node: NodeAddress) => node === former || world.nodes.includes(node);
  await expectPatience(onlyThose(isOwn, fit), known, record, plan, world);
  const choice = (chosen: NodeAddress, has: Replication, refusal?: string): Choice => {
    const answered = [...known.keys()].filter((node) => node !== chosen && isOwn(node));
    const lineage = recordedLineage(record);
    const isIncluded = ([node, each]: readonly [NodeAddress, Replication]) =>
      node !== former && node !== chosen && isOwn(node) && includes(has, lineage, each);
    // An operator who keeps a node's data has decided that the data of the others do not count.
    const others = plan.reason === 'keep' ? [] : [...known].filter(isIncluded);
    const included = new Set(others.map(([node]) => node));
    return { chosen, has, answered, included, refusal };
  };
  const stood = fenced.how === 'paused' ? fenced.replication : undefined;
  if (former !== null && fenced.how === 'paused' && plan.target !== former) {
    const isWanted = ['request', 'found', 'keep'].includes(plan.reason);
    // In its own process the former primary has all that it ever had, even if its offset does not
    // count.
    const last = fit.get(former) ?? (fit.size === 0 && !isWanted ? stood : undefined);
    fit.delete(former);
    const isLeft = last !== undefined && onlyThose(isOwn, fit).size === 0 && !isWanted;
    if (last !== undefined && (isLeft || isGivenBack(last, fenced, fit, former, record, plan))) {
      return choice(former, last);
    }
  }
  const isRequest = plan.reason === 'request';
  const own = former === null ? undefined : known.get(former);
  const stopped = stood ?? own;
  const isUpAndReady = ([node, each]: readonly [NodeAddress, Replication]) =>
    plan.available.includes(node) && isReady(each, stopped, record);
  const ready = new Map([...fit].filter(isUpAndReady));
  const candidates = isRequest && onlyThose(isOwn, ready).size > 0 ? ready : fit;
  const first = bestOf(candidates, record, plan, world);
  const best =
    first === undefined || isOwn(first)
      ? first
      : bestOf(onlyThose(isOwn, candidates), record, plan, world);
  const chosen = plan.target ?? best;
  const has = fit.get(chosen ?? '');
  // For these two reasons the code below compares the wanted node with all others itself.
  const isCompared = plan.reason === 'request' || plan.reason === 'found';
  if (!isCompared && first !== best) expectNoMore(first, has, fit, record, world);
  if (best === undefined || chosen === undefined || has === undefined) {
    throw new NoCandidateError(`nobody can be promoted: ${describe(known, world, plan.reason)}`);
  }
  if (
    plan.reason === 'found' &&
    !isFollowable(chosen, withStood(known, former, stood), record, world)
  ) {
    throw new NoCandidateError(
      `${chosen}, which somebody has promoted, has not all that the others have any more`,
    );
  }
  if (plan.reason === 'found' || plan.reason === 'keep') return choice(chosen, has);
  // A paused primary has everything that any replica got from it, so no replica can have more.
  const better = stood === undefined ? barredOf(has, known, record, plan, world) : undefined;
  if (chosen === former && better === undefined) return choice(chosen, has);
  const others = [...fit].filter(([node]) => node !== chosen && node !== former);
  const needed: [NodeAddress, Replication][] = isRequest ? others : [];
  if (stood !== undefined && former !== null) needed.push([former, stood]);
  if (better !== undefined) needed.push(better);
  // The former primary could not be paused: it says that it is a replica, or it runs in another
  // process. It counts with what it says now.
  if (isRequest && stood === undefined && former !== null && former !== chosen && own) {
    needed.push([former, own]);
  }
  // A node without a connection to its primary gets nothing more, so waiting would not help.
  const forMs = isRequest || has.linkUp ? catchUpMs : 0;
  const lacks = await waitForAll(chosen, needed, forMs, record, world);
  if (typeof lacks !== 'string') {
    if (isMoreOf(lacks, has, record)) return choice(chosen, lacks);
    throw new NoCandidateError(`${chosen} has not the data any more that it was chosen by`);
  }
  if (better !== undefined) {
    const [node] = better;
    throw new NoCandidateError(
      `nobody is promoted: ${lacks}, and the replica-priority of ${node} is 0: raise it, or say ` +
        `incumbent-redis keep ${node}`,
    );
  }
  if (former === null || stood === undefined) throw new NoCandidateError(lacks);
  // It has data that no other node has, and no client has written anywhere since. So it stays the
  // primary.
  return choice(former, stood, isRequest ? lacks : undefined);
}

/**
 * A paused primary counts with what it had when it was paused, because its own PINGs move its
 * offset on.
 */
function withStood(
  known: Replications,
  former: NodeAddress | null,
  stood: Replication | undefined,
): Replications {
  return former === null || stood === undefined ? known : new Map([...known, [former, stood]]);
}

/**
 * Ends the attempt if a node that only other managers list has data that no node of this list has.
 * A manager that lists that node can promote it.
 */
function expectNoMore(
  first: NodeAddress | undefined,
  has: Replication | undefined,
  fit: Replications,
  record: PrimaryRecord,
  world: MoveWorld,
): void {
  const its = fit.get(first ?? '');
  if (its === undefined) return;
  const lineage = recordedLineage(record);
  if (has !== undefined && includes(has, lineage, its)) return;
  const lacks = has === undefined ? '' : ` (${missingFrom(has, lineage, its)})`;
  throw new NoCandidateError(
    `nobody is promoted: ${first} has data that no node of the manager ${world.author.manager} has${lacks}, ` +
      `and the list of that manager lacks it (${world.nodes.join(', ')}): give all managers the same ` +
      'nodes, spelt alike, or say whose data count: incumbent-redis keep NODE',
  );
}

function onlyThose(isThat: (node: NodeAddress) => boolean, known: Replications): Replications {
  return new Map([...known].filter(([node]) => isThat(node)));
}

/**
 * A node that other managers can reach, but this one cannot, may have the newest data. Then the
 * attempt is given up, so that another manager tries. After enough attempts the move goes on
 * without that node.
 */
function expectAll(
  asked: readonly NodeAddress[],
  known: Replications,
  record: PrimaryRecord,
  world: MoveWorld,
): void {
  if (world.hooks.broken?.includes('any-replica')) return;
  const missing = asked.filter((node) => !known.has(node) && !isRefusing(node, world));
  if (missing.length === 0) return;
  giveUpFor(
    record,
    world,
    `${missing.join(', ')} may have more of the data than the others, is up as the managers say, and ` +
      'does not answer this one',
  );
}

/**
 * Waits for missing nodes if every candidate has no data of the last term, or lacks something that
 * the primary was known to have. A missing node may have those data, even one that the managers say
 * is down. The wait ends after `patienceMs`.
 */
async function expectPatience(
  fit: Replications,
  known: Replications,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Promise<void> {
  const { nodes, nowMs, keeper } = world;
  const { reason, target } = plan;
  const memory = memoryOf(record, world.memory);
  const missing = everyNode(world).filter((node) => known.get(node)?.loading !== false);
  const isCopied = reason === 'found' && isFollowedByAll(target, known, nodes);
  const isSaid = isCopied || reason === 'keep' || record.replicationId === null;
  if (isSaid || world.rejoin === 'always' || fit.size === 0 || missing.length === 0) return;
  const lineage = recordedLineage(record);
  const position = await keeper.position();
  const lacks = (each: Replication) =>
    !isOfReign(each, record) || (position !== undefined && !reaches(each, lineage, position));
  const candidates = reason === 'found' ? [...fit].filter(([node]) => node === target) : [...fit];
  if (!candidates.every(([, each]) => lacks(each))) return;
  memory.waitsSinceMs ??= nowMs();
  if (nowMs() - memory.waitsSinceMs >= patienceMs) return;
  const most = bestOf(ofAnyPriority(known, record, plan, world), record, plan, world);
  throw new PatienceError(
    `nobody is promoted yet: ${candidates.map(([node]) => node).join(', ')} cannot have all that the primary had, and ` +
      `${missing.join(', ')} may have it: it is waited for, ${formatDuration(patienceMs)} at most; ` +
      `incumbent-redis keep ${most} ends that`,
  );
}

/**
 * Ends this attempt, so that the next one, here or in another manager, may find more nodes. After a
 * bounded number of attempts it returns, and the move goes on.
 */
function giveUpFor(record: PrimaryRecord, world: MoveWorld, why: string): void {
  const most = world.managers() > 1 ? mostIncompleteAttempts : 2;
  const memory = memoryOf(record, world.memory);
  if (memory.incompleteAttempts >= most) return;
  memory.incompleteAttempts += 1;
  throw new NoCandidateError(`nobody is promoted yet: ${why}`);
}

/**
 * Asks a node that was silent once more: it may have been started again with all that was written.
 */
async function answersSoon(node: NodeAddress, world: MoveWorld): Promise<boolean> {
  const answer = world.hands.replication(node).then(
    () => true,
    () => false,
  );
  return Promise.race([answer, world.sleep(lastCallMs).then(() => false)]);
}

/**
 * Whether a node has all that the primary has, or will get it soon. A planned failover pauses
 * writes only for such a node.
 */
export function isReady(
  node: Replication,
  primary: Replication | undefined,
  record: PrimaryRecord,
): boolean {
  if (node.syncing) return false;
  if (node.role === 'replica' && node.linkUp) return true;
  return primary !== undefined && includes(node, recordedLineage(record), primary);
}

function bestOf(
  fit: Replications,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): NodeAddress | undefined {
  const isBroken = world.hooks.broken?.includes('any-replica') === true;
  const lineage = recordedLineage(record);
  const whole = [...fit].filter(([node, each]) =>
    [...fit].every(([other, its]) => other === node || includes(each, lineage, its)),
  );
  // If streams have forked, no node has all data. Then the streams on record decide.
  const pool = isBroken ? [...fit] : whole.length === 0 ? furthest(fit, record) : whole;
  const ranked = rankCandidates(
    pool.map(([address, replication]) => ({
      address,
      offset: (isBroken ? -1 : 1) * offsetIn(replication, record.replicationId),
      latencyMs: plan.latencyMs(address),
      unavailableTo: plan.unavailableTo(address),
      priority: replication.priority,
    })),
  );
  const [first] = ranked;
  // A node that could not be made a primary before is passed over if another one has as much.
  const able = ranked.find(
    ({ address, offset }) => !world.refused.has(address) && offset === first?.offset,
  );
  return (able ?? first)?.address;
}

/**
 * The nodes that are furthest in the stream of the term on record; among equals, in the stream
 * before it, and so on. Streams of unfinished moves do not count: no client has written there.
 */
function furthest(fit: Replications, record: PrimaryRecord): [NodeAddress, Replication][] {
  const lineage = recordedLineage(record);
  const streams = [...publishedLineage(record).keys()];
  const ended = streams.slice(0, streams.indexOf(record.replicationId ?? '') + 1);
  return ended.reduceRight(
    (pool, stream) => {
      const has = ([, each]: readonly [NodeAddress, Replication]) =>
        lineageOf(each, lineage).get(stream) ?? -1;
      const most = Math.max(...pool.map(has));
      return pool.filter((each) => has(each) === most);
    },
    [...fit],
  );
}

/**
 * Whether the former primary may stay the primary. While the record names no primary nothing is
 * written, so the former one lacks nothing. It goes on if it is back, unless a request names
 * another node or the managers say that it is down.
 */
function isGivenBack(
  last: Replication,
  fenced: Extract<Fenced, { how: 'paused' }>,
  fit: Replications,
  former: NodeAddress,
  record: PrimaryRecord,
  { reason, available }: MovePlan,
): boolean {
  const mayBe =
    reason === 'unfinished' ? available.includes(former) : reason === 'down' && fenced.cameBack;
  if (!mayBe || last.role !== 'primary') return false;
  const lineage = recordedLineage(record);
  return [...fit.values()].every((other) => includes(last, lineage, other));
}

/**
 * Asks all given nodes. A node that the managers do not see may still have the newest data, so it
 * is asked as well, but waited for only briefly.
 */
export async function askEverybody(
  nodes: readonly NodeAddress[],
  available: readonly NodeAddress[],
  world: MoveWorld,
): Promise<Replications> {
  const seen = nodes.filter((node) => available.includes(node));
  const unseen = nodes.filter((node) => !available.includes(node));
  const answers = await Promise.all([
    askAll(seen, world),
    ...unseen.map((node) =>
      Promise.race([
        askAll([node], world),
        world.sleep(lastCallMs).then((): Replications => new Map()),
      ]),
    ),
  ]);
  const known = new Map(answers.flatMap((each) => [...each]));
  return new Map(
    nodes.flatMap((node) => {
      const answer = known.get(node);
      return answer === undefined ? [] : [[node, answer] as const];
    }),
  );
}

/**
 * The node answers, but refuses our credentials. Neither waiting nor another manager changes that.
 */
export function isRefusing(node: NodeAddress, { errors }: Pick<MoveWorld, 'errors'>): boolean {
  return errors.get(node) instanceof NodeRefusedError;
}

/** The nodes that answer, each with what it says of itself. */
export async function askAll(
  nodes: readonly NodeAddress[],
  world: MoveWorld,
): Promise<Replications> {
  const answers = await Promise.all(
    nodes.map(async (node): Promise<[NodeAddress, Replication] | undefined> => {
      try {
        const isOwn = world.nodes.includes(node);
        const { hands } = world;
        const replication = await (isOwn ? hands.replication(node) : hands.look(node));
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

/** The nodes that have data of the set and may be promoted. */
export function eligible(
  known: Replications,
  record: PrimaryRecord,
  { reason, target }: Pick<MovePlan, 'reason' | 'target'>,
  world: Pick<MoveWorld, 'nodes'>,
): Replications {
  const former = record.primary ?? record.former;
  const isKept = (node: NodeAddress) => node === target && reason === 'keep';
  // An unfinished move has set such a node aside, beside one that is gone. No client has written
  // since.
  const isOfTerm = (each: Replication) => {
    const position = positionOf(each, publishedLineage(record));
    return position.kind === 'known' && position.stream === record.replicationId;
  };
  const ready = new Map(
    [...known].filter(
      ([node, each]) =>
        !each.loading &&
        // A node that has just started is at offset 0.
        !(isEmptied(each) && each.offset > 0) &&
        (each.priority > 0 || node === target) &&
        (!each.isAside || node === former || isKept(node) || isOfTerm(each)),
    ),
  );
  // A primary that somebody else has made may have other data, but the other nodes have copied them
  // already.
  if (reason === 'found') return ready;
  if (reason === 'keep') return new Map([...ready].filter(([node]) => node === target));
  if (record.replicationId === null) return largestGroup(ready);
  const lineage = recordedLineage(record);
  const kindOf = (each: Replication) => positionOf(each, lineage).kind;
  const placed = [...ready].filter(([, each]) => kindOf(each) === 'known');
  const ofReign = placed.filter(([, each]) => isOfReign(each, record));
  if (ofReign.length > 0) return new Map(ofReign);
  const own = former === null ? undefined : ready.get(former);
  if (former !== null && own !== undefined && kindOf(own) === 'unknown') {
    // No node is known to have data of its term. The data it came back with may be all of them, or
    // next to nothing. So it is eligible only if no other node has data.
    const others = [...known.values()].filter((each) => each !== own);
    const isPlaced = others.some((each) => kindOf(each) === 'known');
    const isBeside = others.some(
      (each) => kindOf(each) === 'unknown' && each.replicationId !== own.replicationId,
    );
    // That was decided while the manager waited for other nodes, and the node was set aside for
    // that time.
    const isDecided = reason === 'lost-role' && own.isAside;
    return new Map(isPlaced || (isBeside && !isDecided) ? [] : [[former, own]]);
  }
  // A node that answers may have anything. Only an operator may promote a node with older data in
  // its place.
  const isUnplaced = [...known.values()].some(
    (each) => kindOf(each) === 'unknown' && !each.isAside && !each.isEmpty,
  );
  if (placed.length > 0 && isUnplaced) return new Map();
  if (placed.length > 0) {
    const others = [...known].filter(
      // The move itself has set the former primary aside, and may choose it.
      ([node, each]) => node !== former && each.isAside && kindOf(each) === 'known',
    );
    const most = Math.max(...[...placed, ...others].map(([, each]) => latestStream(each, lineage)));
    const isOfMost = ([, each]: readonly [NodeAddress, Replication]) =>
      latestStream(each, lineage) === most;
    // A node that is set aside may have more of that stream. Then an operator decides.
    return new Map(
      placed
        .filter(isOfMost)
        .filter(([, each]) =>
          others.filter(isOfMost).every(([, aside]) => includes(each, lineage, aside)),
        ),
    );
  }
  // A node without data takes over only if no node can have any.
  const isEmpty =
    world.nodes.every((node) => known.has(node)) &&
    [...known.values()].every((each) => kindOf(each) === 'nothing');
  if (isEmpty) return ready;
  const some = oneStream(known, world);
  const most = Math.max(...some.map(([, { offset }]) => offset));
  // A node that is set aside may be the furthest. Then an operator decides.
  return new Map(some.filter(([node, { offset }]) => ready.has(node) && offset === most));
}

/**
 * For a set in which no node's position is known. If all data are in one and the same stream, the
 * node that is furthest has all that is left. That happens if the primary came back empty, and was
 * copied while no manager led.
 * @returns all nodes that have data; none if a node is missing or the data are in several streams
 */
function oneStream(
  known: Replications,
  world: Pick<MoveWorld, 'nodes'>,
): readonly [NodeAddress, Replication][] {
  if (!world.nodes.every((node) => known.has(node))) return [];
  const some = [...known].filter(([, each]) => positionOf(each, new Map()).kind !== 'nothing');
  const isOne = some.every(([, each]) => {
    const isCopying = each.loading || each.syncing;
    return each.replicationId === some[0]?.[1].replicationId && !isMute(each) && !isCopying;
  });
  return isOne ? some : [];
}

/** The nodes that would be eligible if a priority of 0 did not matter. */
function ofAnyPriority(
  known: Replications,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): Replications {
  const raised = [...known].map(
    ([node, each]) => [node, { ...each, priority: Math.max(each.priority, 1) }] as const,
  );
  return eligible(new Map(raised), record, plan, world);
}

/**
 * The best node that only its priority of 0 keeps from being promoted, if it has data that `has`
 * lacks. Then no node takes over, because those data may have been acknowledged.
 */
function barredOf(
  has: Replication,
  known: Replications,
  record: PrimaryRecord,
  plan: MovePlan,
  world: MoveWorld,
): [NodeAddress, Replication] | undefined {
  if (world.rejoin === 'always' || world.hooks.broken?.includes('any-replica')) return undefined;
  const all = ofAnyPriority(known, record, plan, world);
  const first = bestOf(all, record, plan, world);
  const its = all.get(first ?? '');
  if (first === undefined || its === undefined || known.get(first)?.priority !== 0)
    return undefined;
  return includes(has, recordedLineage(record), its) ? undefined : [first, its];
}

/** Whether a node still has what it had when it was judged, or more. */
function isMoreOf(now: Replication, then: Replication, record: PrimaryRecord): boolean {
  if (now.runId !== then.runId || now.loading || (isEmptied(now) && !then.isEmpty)) return false;
  return now.replicationId === then.replicationId
    ? now.offset >= then.offset
    : includes(now, recordedLineage(record), then);
}

/** @returns what the node says, once it has all of that; else what it lacks, in words */
async function waitForAll(
  node: NodeAddress,
  needed: readonly (readonly [NodeAddress, Replication])[],
  forMs: number,
  record: PrimaryRecord,
  world: MoveWorld,
): Promise<Replication | string> {
  const deadline = world.nowMs() + forMs;
  const lineage = recordedLineage(record);
  for (;;) {
    const has = await world.hands.replication(node);
    const lacking = needed.find(([, each]) => !includes(has, lineage, each));
    if (lacking === undefined || world.hooks.broken?.includes('any-replica')) return has;
    if (world.nowMs() >= deadline) {
      const [other, its] = lacking;
      return (
        `${node} lacks what ${other} has (${missingFrom(has, lineage, its)}), and has not got it in ` +
        formatDuration(forMs)
      );
    }
    await world.sleep(20);
    world.signal.throwIfAborted();
  }
}

export function describe(
  known: Replications,
  { errors }: MoveWorld,
  reason: MovePlan['reason'],
): string {
  const answers = [...known].map(([node, each]) => {
    const { role, offset, syncing, loading, priority, isAside } = each;
    const at = `at ${offset} in ${each.replicationId.slice(0, 8)}`;
    const state = loading ? 'loading its data' : syncing ? `copying, ${at}` : at;
    const place = isAside ? 'set aside' : role;
    return `${node} (${place}, ${state}${priority === 0 ? ', replica-priority 0' : ''})`;
  });
  const others = [...errors].flatMap(([node, { message }]) => (known.has(node) ? [] : [message]));
  const found = [...(answers.length === 0 ? ['no other node answers'] : answers), ...others];
  // If a node is loading, waiting helps: its data are known afterwards. A planned failover needs no
  // way out either: its primary still runs. Otherwise only an operator can decide.
  const isStuck =
    reason !== 'request' && known.size > 0 && [...known.values()].every(({ loading }) => !loading);
  const wayOut = 'an operator may decide whose data count: incumbent-redis keep NODE';
  return [...found, ...(isStuck ? [wayOut] : [])].join('; ');
}
