/**
 * A process that owns shards. Its argument is a `MemberPlan`. While it owns a shard it writes effects to
 * the shard's fenced log, each with the token under which it was allowed.
 */
import { appendFileSync, closeSync, openSync, writeSync } from 'node:fs';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatEffect } from '@incumbent/cli/trial';
import type { Shards, ShardTerm } from '@incumbent/shards';
import { createShards } from '@incumbent/shards';
import { Teller } from '../harness/tell.ts';
import { followCoordinator } from './follow-coordinator.ts';
import type { MemberOrder, MemberPlan, MemberTells } from './messages.ts';
import { openStore } from './open-store.ts';
import { settleMsOf } from './settle.ts';

const beatEveryMs = 20;
/** Longer than the next owner needs to begin. */
const workOnMs = 500;
const name = 'chaos';

const plan = JSON.parse(process.argv[2] ?? '') as MemberPlan;
const { id, broken } = plan;
const { pid } = process;
const logs = plan.logs.map((path) => openSync(path, 'a'));
const works = new Map<number, ShardTerm<number>>();
/** Of the variant that works on. */
const unsettled = new Set<ShardTerm<number>>();

const teller = new Teller<MemberTells, MemberOrder>((order) => void obey(order));

function act(term: ShardTerm<number>, kind: 'start' | 'beat'): void {
  const atNs = process.hrtime.bigint();
  if (!mayAct(term)) return;
  const { token } = term;
  const effect = formatEffect({ token, candidate: id, group: pid, pid, atNs, kind });
  writeSync(logs[term.shard] as number, effect);
}

function mayAct(term: ShardTerm<number>): boolean {
  if (unsettled.has(term)) return true;
  return broken === 'trusts-signal' ? !term.signal.aborted : term.isLeading();
}

function beat(): void {
  for (const term of [...works.values(), ...unsettled]) act(term, 'beat');
}

async function own(shard: number, term: ShardTerm<number>): Promise<void> {
  if (broken === 'idles' && id === 'm1') return;
  works.set(shard, term);
  act(term, 'start');
  await new Promise<void>((resolve) => {
    term.signal.addEventListener('abort', () => resolve());
    if (term.signal.aborted) resolve();
  });
  // It goes on acting meanwhile: the next owner must not begin before it has settled.
  await sleep(settleMsOf(shard));
  works.delete(shard);
  if (broken === 'works-on') {
    unsettled.add(term);
    void sleep(workOnMs).then(() => unsettled.delete(term));
  }
}

async function obey(order: MemberOrder): Promise<void> {
  switch (order) {
    case 'freeze':
      return freeze();
    case 'resign':
      works.values().next().value?.resign();
      return;
    case 'drain':
    case 'close': {
      const { shards, closeStore } = await joining;
      await shards[order]();
      return leave(closeStore);
    }
    default:
      return order satisfies never;
  }
}

/**
 * Never between a check and its effect: nothing but the token at the resource helps against that. But
 * the effects that come next after the thaw are checked before any timer of the library runs.
 */
function freeze(): void {
  process.kill(pid, 'SIGSTOP');
  beat();
}

async function leave(closeStore: () => Promise<void>): Promise<void> {
  clearInterval(beating);
  await closeStore();
  for (const log of logs) closeSync(log);
  unfollow();
  teller.closed();
  await teller.tell({ say: 'left' });
}

async function join(): Promise<{ shards: Shards<number>; closeStore: () => Promise<void> }> {
  const { backend, timing, close } = await openStore(plan);
  const shards = createShards({
    ...{ name, backend, shards: logs.length, init: 'auto', candidate: { id }, own, ...timing },
    onTrouble: ({ what, error }) => {
      const line = `${new Date().toISOString()} ${id} ${what}: ${String(error)}\n`;
      appendFileSync(plan.troubles, line);
    },
  });
  return { shards, closeStore: close };
}

const unfollow = followCoordinator(name, () => void teller.tell({ say: 'coordinating' }));
const beating = setInterval(beat, beatEveryMs);
void teller.tell({ say: 'running' });
const joining = join();
const { shards } = await joining;
await shards.joined.then(
  () => teller.tell({ say: 'joined' }),
  (error: unknown) => {
    if ((error as Error).name === 'ClosedError') return undefined;
    return teller.tell({ say: 'trouble', text: `members stay: ${String(error)}` });
  },
);
