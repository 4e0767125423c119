/** Who is promoted: nobody who has less of the data than another one. */
import { formatDuration } from 'incumbent';
import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import type { Fenced } from './fence.ts';
import { lastCallMs, waitForViews } from './fence.ts';
import type { Replications } from './lineage.ts';
import {
  hasAllOf,
  isEmptied,
  isOfLineage,
  isSameLineage,
  mainLineage,
  offsetIn,
} from './lineage.ts';
import type { MovePlan, MoveWorld } from './move-world.ts';
import { NoCandidateError } from './move-world.ts';
import { rankCandidates } from './strategies.ts';

/** For how long a replica may lack what a primary that was told to stop has written before. */
const catchUpMs = 5_000;

/** More than one manager makes before it resigns: then others have tried, too. */
const mostIncompleteAttempts = 5;

export interface Choice {
  readonly chosen: NodeAddress;
  /** The others that have answered: only those are told to copy it. */
  readonly answered: readonly NodeAddress[];
}

export async function choose(
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
export function isComplete(known: Replications, record: PrimaryRecord, world: MoveWorld): boolean {
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

/** Those that answer, each with what it says of itself. */
export async function askAll(
  nodes: readonly NodeAddress[],
  world: MoveWorld,
): Promise<Replications> {
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
export function eligible(
  known: Replications,
  record: PrimaryRecord,
  { reason, target }: Pick<MovePlan, 'reason' | 'target'>,
  isWhole: boolean,
): Replications {
  const ready = new Map(
    [...known].filter(
      ([node, each]) =>
        !each.syncing &&
        !each.loading &&
        // One that has just started is at 0.
        !(isEmptied(each) && each.offset > 0) &&
        (each.priority > 0 || node === target),
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

export function describe(known: Replications, { errors }: MoveWorld): string {
  const answers = [...known].map(([node, { role, offset, syncing, loading, priority }]) => {
    const state = loading ? 'loading its data' : syncing ? 'getting its data' : `at ${offset}`;
    return `${node} (${role}, ${state}${priority === 0 ? ', replica-priority 0' : ''})`;
  });
  const others = [...errors].flatMap(([node, { message }]) => (known.has(node) ? [] : [message]));
  return [...(answers.length === 0 ? ['no other node answers'] : answers), ...others].join('; ');
}
