/** Who is promoted: nobody who has less of the data than another one. */
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

/** For how long a replica may lack what a primary that was told to stop has written before. */
const catchUpMs = 5_000;

/** More than one manager makes before it resigns: then others have tried, too. */
const mostIncompleteAttempts = 5;

export interface Choice {
  readonly chosen: NodeAddress;
  /** What it had when it was chosen. */
  readonly has: Replication;
  /** The others of the list, and the one of before, that have answered: only those are told to copy it. */
  readonly answered: readonly NodeAddress[];
  /** The others that have nothing that this one lacks, also where they are never promoted. */
  readonly included: ReadonlySet<NodeAddress>;
  /** Whoever asked for another one is refused: the node of before goes on. */
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
  // Else somebody may go on with it in the term of before, beside others in the new one.
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
  // Another manager may spell the one of before as this one does not; nor need an operator.
  const kept = plan.reason === 'keep' ? plan.target : undefined;
  const names = [kept, former].filter((node) => typeof node === 'string');
  const known = oncePerProcess(answers, [...names, ...world.nodes]);
  const fit = new Map(eligible(known, record, plan, { nodes: everyNode(world) }));
  // The one of before counts as one of the list: it was promoted once.
  const isOwn = (node: NodeAddress) => node === former || world.nodes.includes(node);
  await expectPatience(onlyThose(isOwn, fit), known, record, plan, world);
  const choice = (chosen: NodeAddress, has: Replication, refusal?: string): Choice => {
    const answered = [...known.keys()].filter((node) => node !== chosen && isOwn(node));
    const lineage = recordedLineage(record);
    const isIncluded = ([node, each]: readonly [NodeAddress, Replication]) =>
      node !== former && node !== chosen && isOwn(node) && includes(has, lineage, each);
    // For an operator who keeps one it does not count what the others have.
    const others = plan.reason === 'keep' ? [] : [...known].filter(isIncluded);
    const included = new Set(others.map(([node]) => node));
    return { chosen, has, answered, included, refusal };
  };
  const stood = fenced.how === 'paused' ? fenced.replication : undefined;
  if (former !== null && fenced.how === 'paused' && plan.target !== former) {
    const isWanted = ['request', 'found', 'keep'].includes(plan.reason);
    // In its own process it has all that it ever had, also where its offset says nothing.
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
  // Those two compare the node that is wanted with all others by themselves.
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
  // A primary that was stopped has all that any replica has of it.
  const better = stood === undefined ? barredOf(has, known, record, plan, world) : undefined;
  if (chosen === former && better === undefined) return choice(chosen, has);
  const others = [...fit].filter(([node]) => node !== chosen && node !== former);
  const needed: [NodeAddress, Replication][] = isRequest ? others : [];
  if (stood !== undefined && former !== null) needed.push([former, stood]);
  if (better !== undefined) needed.push(better);
  // Asked to stop, it said that it is a replica, or is another process: it has what it says now.
  if (isRequest && stood === undefined && former !== null && former !== chosen && own) {
    needed.push([former, own]);
  }
  // Who is not connected gets nothing more.
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
  // It has what nobody else has, and nobody has written anywhere since: so it goes on.
  return choice(former, stood, isRequest ? lacks : undefined);
}

/** A primary that was told to stop has what it had then: its PINGs move its offset. */
function withStood(
  known: Replications,
  former: NodeAddress | null,
  stood: Replication | undefined,
): Replications {
  return former === null || stood === undefined ? known : new Map([...known, [former, stood]]);
}

/** A node of another list may have what nobody of this one has: a manager that lists it can promote it. */
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
 * Who is up and does not answer may have more than all others. Another manager may reach it; when
 * nobody seems to, it is gone on without.
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
 * Where nobody who may be promoted has all that the primary was known to have, or anything of its term:
 * those that are missing may have it, also those that the managers say are down.
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

/** Ends an attempt, so that the next one, here or in another manager, finds more; but not for ever. */
function giveUpFor(record: PrimaryRecord, world: MoveWorld, why: string): void {
  const most = world.managers() > 1 ? mostIncompleteAttempts : 2;
  const memory = memoryOf(record, world.memory);
  if (memory.incompleteAttempts >= most) return;
  memory.incompleteAttempts += 1;
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

/** Whether a node has all that the primary has, or gets it soon: a request stops writes for no other node. */
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
  // Where streams have forked, nobody has all: then what counts are the streams on record.
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
  // Who could not be made a primary is passed over where another one has as much.
  const able = ranked.find(
    ({ address, offset }) => !world.refused.has(address) && offset === first?.offset,
  );
  return (able ?? first)?.address;
}

/**
 * Those that go furthest in the stream of the term on record, or else in the one before it, and so on.
 * Streams of moves that were not finished do not count: nobody has written there.
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
 * Nothing was written anywhere since the record names nobody, so the node of before lacks nothing: it
 * goes on when it is there again, unless somebody wants another one or the managers say it is down.
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
 * All of the set: that managers do not see a node does not make its data worth less. Nobody waits for
 * long for a node that they do not see.
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

/** It answers, and does not take our password: no waiting, and no other manager, cures that. */
export function isRefusing(node: NodeAddress, { errors }: Pick<MoveWorld, 'errors'>): boolean {
  return errors.get(node) instanceof NodeRefusedError;
}

/** Those that answer, each with what it says of itself. */
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

/** Who has data of the set, and may be promoted. */
export function eligible(
  known: Replications,
  record: PrimaryRecord,
  { reason, target }: Pick<MovePlan, 'reason' | 'target'>,
  world: Pick<MoveWorld, 'nodes'>,
): Replications {
  const former = record.primary ?? record.former;
  const isKept = (node: NodeAddress) => node === target && reason === 'keep';
  // A move that was not finished has set it aside beside one that is gone: nobody has written since.
  const isOfTerm = (each: Replication) => {
    const position = positionOf(each, publishedLineage(record));
    return position.kind === 'known' && position.stream === record.replicationId;
  };
  const ready = new Map(
    [...known].filter(
      ([node, each]) =>
        !each.loading &&
        // One that has just started is at 0.
        !(isEmptied(each) && each.offset > 0) &&
        (each.priority > 0 || node === target) &&
        (!each.isAside || node === former || isKept(node) || isOfTerm(each)),
    ),
  );
  // Whom somebody else made the primary may have other data: the others have copied them already.
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
    // Nobody is known to have anything of its term: what it came back with may be all of it, or next to
    // nothing. So nobody else may have data.
    const others = [...known.values()].filter((each) => each !== own);
    const isPlaced = others.some((each) => kindOf(each) === 'known');
    const isBeside = others.some(
      (each) => kindOf(each) === 'unknown' && each.replicationId !== own.replicationId,
    );
    // It was decided for it while others were waited for, and it was set aside for so long.
    const isDecided = reason === 'lost-role' && own.isAside;
    return new Map(isPlaced || (isBeside && !isDecided) ? [] : [[former, own]]);
  }
  // A node that answers may have anything: to take one of before in its place is for an operator.
  const isUnplaced = [...known.values()].some(
    (each) => kindOf(each) === 'unknown' && !each.isAside && !each.isEmpty,
  );
  if (placed.length > 0 && isUnplaced) return new Map();
  if (placed.length > 0) {
    const others = [...known].filter(
      // The node of before is set aside by the move itself, and is one of those to choose from.
      ([node, each]) => node !== former && each.isAside && kindOf(each) === 'known',
    );
    const most = Math.max(...[...placed, ...others].map(([, each]) => latestStream(each, lineage)));
    const isOfMost = ([, each]: readonly [NodeAddress, Replication]) =>
      latestStream(each, lineage) === most;
    // One that is set aside may have more of it: then an operator decides.
    return new Map(
      placed
        .filter(isOfMost)
        .filter(([, each]) =>
          others.filter(isOfMost).every(([, aside]) => includes(each, lineage, aside)),
        ),
    );
  }
  // One that has nothing takes over only where nobody can have anything.
  const isEmpty =
    world.nodes.every((node) => known.has(node)) &&
    [...known.values()].every((each) => kindOf(each) === 'nothing');
  if (isEmpty) return ready;
  const some = oneStream(known, world);
  const most = Math.max(...some.map(([, { offset }]) => offset));
  // One that is set aside may be the furthest: then an operator decides.
  return new Map(some.filter(([node, { offset }]) => ready.has(node) && offset === most));
}

/**
 * Where nobody's position is known: all that have data, if they have them in one and the same stream. Then
 * the one that is furthest has all that is left. So it is when the primary came back empty and was copied
 * while no manager led.
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

/** Who could be promoted, if a priority of 0 did not matter. */
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
 * Who would be promoted, if its priority were not 0, and has what `has` lacks. Nobody else takes over then:
 * that may have been acknowledged.
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

/** Whether a node has still, or more of, what it had when it was judged. */
function isMoreOf(now: Replication, then: Replication, record: PrimaryRecord): boolean {
  if (now.runId !== then.runId || now.loading || (isEmptied(now) && !then.isEmpty)) return false;
  return now.replicationId === then.replicationId
    ? now.offset >= then.offset
    : includes(now, recordedLineage(record), then);
}

/** @returns what the node says when it has all of that; else what it lacks, in words */
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
  // Waiting cures it where somebody is loading: what that one has is known then.
  // And whoever asks for a move has a primary.
  const isStuck =
    reason !== 'request' && known.size > 0 && [...known.values()].every(({ loading }) => !loading);
  const wayOut = 'an operator may decide whose data count: incumbent-redis keep NODE';
  return [...found, ...(isStuck ? [wayOut] : [])].join('; ');
}
