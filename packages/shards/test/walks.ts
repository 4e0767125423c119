/**
 * Two slots, one shard, two coordinators that both act, in a random order of their steps. The steps
 * use the real changes of a slot and the real ledger. Time is one law: a slot is vacated only when
 * its holder believes no more (docs/design/lease-race.md).
 */
import type { Ledger } from '../src/ledger.ts';
import { isSealed, nextTokenIn, standingsIn } from '../src/ledger.ts';
import { plan } from '../src/plan.ts';
import type { Seal, SlotState } from '../src/slot.ts';
import {
  absent,
  askedFor,
  fenced,
  forgotten,
  givenUp,
  granted,
  isLive,
  isOutranked,
  leftBehind,
  newSlot,
  presented,
  ranOut,
  sameSeal,
  sealed,
} from '../src/slot.ts';

const shard = 0;
const list = { count: 1, digest: 0n };
const numbers = [0, 1] as const;

/** A slot in the store. Each writer knows for itself whether its reading is the newest. */
interface Cell {
  stays: number;
  isHeld: boolean;
  slot: SlotState;
}

interface Holder {
  believes: boolean;
  /** Its reading is the newest version. */
  isFresh: boolean;
  slot: SlotState;
  /** The token of the shard, while it believes that it owns it. */
  owns: bigint | undefined;
  /** It has ended its belief in the term with this token. */
  ended: bigint | undefined;
}

interface Write {
  isFresh: boolean;
  readonly slot: SlotState;
  readonly vacates: boolean;
}

interface Sight {
  isFresh: boolean;
  isHeld: boolean;
  seen: SlotState;
  /** The write of which it has no answer. */
  sent: SlotState | undefined;
  /** The same write, while it may still land. */
  flying: Write | undefined;
}

interface Coordinator {
  seal: Seal;
  isGone: boolean;
  sights: (Sight | undefined)[];
}

interface World {
  cells: Cell[];
  holders: Holder[];
  coordinators: Coordinator[];
  /** How many coordinators there were. */
  begins: number;
  /** The highest token with which work has begun. */
  begun: bigint;
  fault: string | undefined;
}

/** Rules that a test takes away, to see two owners. */
export interface Broken {
  readonly grantsUnsealed?: boolean;
  readonly forgetsSent?: boolean;
  readonly overwritesSeals?: boolean;
  readonly leavesFirst?: boolean;
  readonly deletesFirst?: boolean;
  readonly vacatesBelievers?: boolean;
}

export interface Settings {
  /** How many steps a walk has. */
  readonly steps: number;
  /** All coordinators draw the same number for their seals. */
  readonly sameNumbers: boolean;
  readonly broken: Broken;
}

/** The first broken rule of a walk, and the steps to it. */
export interface Fault {
  readonly what: string;
  readonly schedule: readonly string[];
}

type Step = readonly [name: string, take: (world: World) => void];

/** Takes steps at random until a rule is broken, or until there were so many. */
export function walk(random: () => number, settings: Settings): Fault | undefined {
  const world = begin();
  const schedule: string[] = [];
  while (schedule.length < settings.steps) {
    const [name, take] = choose(stepsOf(world, settings), random);
    schedule.push(name);
    take(world);
    check(world);
    if (world.fault !== undefined) return { what: world.fault, schedule };
  }
  return undefined;
}

const rare: readonly (readonly [words: RegExp, weight: number])[] = [
  [/begins/, 0.02],
  [/lapses|leaves/, 0.05],
  [/confirms|meets|is lost|reads|plan/, 0.3],
];

/** Ends are rare, and so is a step that changes little. Otherwise no walk would come far. */
function choose(steps: readonly Step[], random: () => number): Step {
  const weights = steps.map(([name]) => rare.find(([words]) => words.test(name))?.[1] ?? 1);
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  const index = weights.findIndex((weight) => {
    left -= weight;
    return left < 0;
  });
  return steps[index] ?? (steps.at(-1) as Step);
}

/** Both slots are held, and sealed by a coordinator of before. */
function begin(): World {
  const empty = newSlot({ number: 0n, nonce: '' }, 2, list);
  const slot = presented(empty, { ...absent, joined: true }, list);
  return {
    cells: numbers.map(() => ({ stays: 1, isHeld: true, slot })),
    holders: numbers.map(() => ({
      ...{ believes: true, isFresh: true, slot },
      ...{ owns: undefined, ended: undefined },
    })),
    coordinators: numbers.map((i) => ({
      seal: { number: BigInt(i + 1), nonce: `n${i}` },
      isGone: false,
      sights: [undefined, undefined],
    })),
    begins: 2,
    begun: 0n,
    fault: undefined,
  };
}

function check(world: World): void {
  const owners = world.holders.filter(({ believes, owns }) => believes && owns !== undefined);
  if (owners.length > 1) world.fault ??= 'two owners';
}

/** A reading or a write that was made before this one is based on an older version. */
function write(world: World, number: number, slot: SlotState): void {
  const cell = world.cells[number] as Cell;
  cell.slot = slot;
  const holder = world.holders[number] as Holder;
  holder.isFresh = false;
  for (const { sights } of world.coordinators) {
    const sight = sights[number];
    if (sight === undefined) continue;
    sight.isFresh = false;
    if (sight.flying !== undefined) sight.flying.isFresh = false;
  }
}

function stepsOf(world: World, settings: Settings): Step[] {
  const { broken, sameNumbers } = settings;
  const steps: Step[] = numbers.map((which) => [
    `coordinator ${which} begins`,
    (after) => {
      const me = after.coordinators[which] as Coordinator;
      after.begins += 1;
      const number = sameNumbers ? 1n : BigInt(after.begins);
      me.seal = { number, nonce: `n${after.begins}` };
      me.isGone = false;
      me.sights = [undefined, undefined];
    },
  ]);
  for (const number of numbers) {
    steps.push(...holderSteps(world, number, broken));
    for (const which of numbers) {
      steps.push(...coordinatorSteps(world, which, number, broken));
    }
  }
  return steps;
}

function holderSteps(world: World, number: number, broken: Broken): Step[] {
  const steps: Step[] = [];
  const holder = world.holders[number] as Holder;
  const cell = world.cells[number] as Cell;
  const step = (name: string, take: (world: World, holder: Holder, cell: Cell) => void) =>
    steps.push([
      `holder ${number}: ${name}`,
      (after) => take(after, after.holders[number] as Holder, after.cells[number] as Cell),
    ]);
  if (!holder.believes) {
    if (!cell.isHeld) {
      step('takes the slot', (after, me, mine) => {
        mine.stays += 1;
        mine.isHeld = true;
        write(after, number, presented(mine.slot, { ...absent, joined: true }, list));
        me.believes = true;
        me.owns = undefined;
        me.ended = undefined;
        me.slot = mine.slot;
        me.isFresh = true;
      });
    }
    return steps;
  }
  step('lapses', (_after, me) => {
    me.believes = false;
    me.owns = undefined;
  });
  const entry = holder.slot.entries.find(isLive);
  /** The work begins when a confirmation has shown a new entry. */
  const begins = (after: World, me: Holder) => {
    const shown = me.slot.entries.find(isLive);
    if (shown === undefined || shown.token === me.ended || me.owns === shown.token) return;
    if (shown.token <= after.begun) after.fault ??= 'a token fell';
    after.begun = shown.token;
    me.owns = shown.token;
  };
  const confirmed = (after: World, me: Holder, slot: SlotState) => {
    write(after, number, slot);
    me.isFresh = true;
    me.slot = slot;
    begins(after, me);
  };
  if (!holder.isFresh) {
    step('meets a conflict, and reads', (_after, me, mine) => {
      if (!mine.isHeld) {
        me.believes = false;
        me.owns = undefined;
        return;
      }
      me.isFresh = true;
      me.slot = mine.slot;
    });
    return steps;
  }
  step('confirms', (after, me) => confirmed(after, me, me.slot));
  step('confirms, without an answer', (after, me) => write(after, number, me.slot));
  if (entry !== undefined && entry.token !== holder.ended) {
    step('ends its belief in the shard', (_after, me) => {
      me.ended = entry.token;
      if (broken.leavesFirst !== true) me.owns = undefined;
    });
  }
  if (entry !== undefined && entry.token === holder.ended) {
    const left = givenUp(holder.slot, new Map([[shard, entry.token]]));
    step('gives the shard up', (after, me) => {
      write(after, number, left);
      me.slot = left;
      me.isFresh = true;
    });
    step('gives the shard up, without an answer', (after) => write(after, number, left));
    if (broken.leavesFirst === true) {
      step('ends its belief late', (_after, me) => {
        me.owns = undefined;
      });
    }
  }
  if (entry !== undefined && entry.unfenced.length > 0) {
    const shown = fenced(holder.slot, new Map([[shard, entry.token]]));
    step('has fenced', (after, me) => confirmed(after, me, shown));
  }
  step('leaves', (after, me, mine) => {
    me.believes = false;
    me.owns = undefined;
    mine.isHeld = false;
    write(after, number, leftBehind(mine.slot));
  });
  return steps;
}

function coordinatorSteps(world: World, which: number, number: number, broken: Broken): Step[] {
  const coordinator = world.coordinators[which] as Coordinator;
  const { seal, sights, isGone } = coordinator;
  if (isGone) return [];
  const steps: Step[] = [];
  const step = (name: string, take: (world: World, sight: Sight, me: Coordinator) => void) =>
    steps.push([
      `coordinator ${which}, slot ${number}: ${name}`,
      (after) => {
        const me = after.coordinators[which] as Coordinator;
        take(after, me.sights[number] as Sight, me);
      },
    ]);
  const sight = sights[number];
  const cell = world.cells[number] as Cell;
  if (sight?.isFresh !== true || sight.sent !== undefined) {
    step('reads', (after, before, me) => {
      const { slot, isHeld } = after.cells[number] as Cell;
      const outranked = isOutranked(seal, slot.seal) && broken.overwritesSeals !== true;
      if (outranked) me.isGone = true;
      // A write that can still land counts on.
      const flying = before?.flying?.isFresh === true ? before.flying : undefined;
      me.sights[number] = { isFresh: true, isHeld, seen: slot, sent: flying?.slot, flying };
    });
  }
  if (sight === undefined) return steps;
  const { flying, seen } = sight;
  if (flying !== undefined) {
    const { isFresh } = flying;
    // The law of the lease: on a version that stood for D, its holder believes no more.
    const isLawful =
      !flying.vacates ||
      !flying.isFresh ||
      broken.vacatesBelievers === true ||
      world.holders[number]?.believes === false;
    const land = (after: World, me: Sight) => {
      const { slot, vacates } = flying;
      if (isFresh) {
        write(after, number, slot);
        if (vacates) (after.cells[number] as Cell).isHeld = false;
      }
      me.flying = undefined;
    };
    if (isLawful) {
      step(isFresh ? 'its write lands' : 'its write conflicts', (after, me) => {
        land(after, me);
        me.sent = undefined;
        if (!isFresh) return;
        me.isFresh = true;
        me.seen = flying.slot;
        me.isHeld = !flying.vacates && me.isHeld;
      });
      if (isFresh) step('its write lands, without an answer', (after, me) => land(after, me));
    }
    step('its write is lost', (_after, me) => {
      me.flying = undefined;
    });
    return steps;
  }
  // One write at a time.
  if (sight.sent !== undefined) return steps;
  const send = (name: string, slot: SlotState, vacates = false) =>
    step(name, (_after, me) => {
      me.flying = { isFresh: me.isFresh, slot, vacates };
      if (broken.forgetsSent !== true) me.sent = slot;
    });
  for (const drained of [[], [1], [2]]) {
    step(`follows its plan, with ${drained.length} drained`, (_after, me, planner) => {
      const slot = plannedFor(planner, number, drained);
      if (slot === undefined) return;
      me.flying = { isFresh: me.isFresh, slot, vacates: false };
      if (broken.forgetsSent !== true) me.sent = slot;
    });
  }
  if (!sameSeal(seen.seal, seal)) {
    send('seals', { ...sealed({ ...seen, seal }, seal, 2), seal });
    if (broken.grantsUnsealed !== true) return steps;
  }
  const ledger = ledgerOf(coordinator);
  const only = new Set([shard]);
  const isWhole = broken.grantsUnsealed === true ? ledger.size === 2 : isSealed(ledger, seal, 2);
  const entry = seen.entries[0];
  if (isWhole && sight.isHeld && seen.presence.joined) {
    const standing = standingsIn(ledger, 1)[shard];
    const token = nextTokenIn(ledger, 0n);
    const isNew = standing?.kind === 'unknown' && token === 1n;
    if (standing?.kind === 'unknown' && token > 1n) {
      step('finds that the shard stands nowhere', (after) => {
        after.fault ??= 'the shard stands nowhere';
      });
    }
    if (standing?.kind === 'free' || isNew) {
      const unfenced = standing?.kind === 'free' ? standing.unfenced : [];
      send('grants', granted(seen, [{ shard, token, unfenced }]));
    }
  }
  if (entry?.state === 'owned') send('asks', askedFor(seen, only));
  if (entry !== undefined && !isLive(entry)) {
    const isElsewhere = numbers.some((each) =>
      each === number ? false : sights[each]?.seen.entries.some(({ token }) => token > entry.token),
    );
    if (isElsewhere || broken.deletesFirst === true) send('forgets', forgotten(seen, only));
  }
  if (sight.isHeld && cell.isHeld) send('vacates', ranOut(seen, `holder ${number}`), true);
  return steps;
}

function ledgerOf({ sights }: Coordinator): Ledger {
  return new Map(
    numbers.flatMap((each) => {
      const known = sights[each];
      if (known === undefined) return [];
      return [[each + 1, { seen: known.seen, sent: known.sent ? [known.sent] : [] }]];
    }),
  );
}

/** The write of the real plan for one slot, if there is one. */
function plannedFor(
  coordinator: Coordinator,
  number: number,
  drained: readonly number[],
): SlotState | undefined {
  const { seal, sights } = coordinator;
  const alive = new Set(numbers.filter((each) => sights[each]?.isHeld).map((each) => each + 1));
  const writes = plan({
    ...{ seal, slots: 2, shards: 1, ledger: ledgerOf(coordinator), alive },
    ...{ drained: new Set(drained), maxMoving: 1, overdue: new Set<number>(), mayMove: true },
    ...{ doubts: false, tokenFloor: 0n },
  });
  return writes === 'outranked' ? undefined : writes.get(number + 1);
}
