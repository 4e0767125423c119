import { strikeProxies } from '../harness/strike-network.ts';
import { monotonicMs, pause } from '../harness/time.ts';
import type { Members, Place } from './members.ts';
import type { CommonFault, MemberFault, Round } from './plan.ts';
import type { Stage } from './stage.ts';

export interface Arena {
  readonly stage: Stage;
  readonly members: Members;
  /** Whether what began then has taken longer than it may. */
  readonly isLate: (sinceMs: number) => boolean;
  readonly note: (line: string) => void;
}

/** The processes that a round concerns. */
interface Struck {
  readonly coordinator: Place | undefined;
  readonly another: Place | undefined;
}

/** Does what the round plans. Resolves when all is healed, and all processes run that are to. */
export async function strikeAll(arena: Arena, round: Round): Promise<void> {
  const { members, stage, note } = arena;
  const { coordinator, another } = chooseFrom(members, round);
  note(`round ${round.number}: the coordinator is ${coordinator?.id}, another is ${another?.id}`);
  // Processes that have left may have stayed away.
  const absent = members.places.filter(({ process }) => process === undefined);
  await Promise.all(absent.map((place) => members.start(place)));
  // While others are struck as well, a process may take its time to leave.
  let healedMs = Number.POSITIVE_INFINITY;
  const strike = async (place: Place | undefined, which: 'leader' | 'waiting') => {
    const planned = round[which];
    if (place === undefined || planned === undefined) return;
    await pause(planned.afterMs);
    const forMs = planned.length * stage.leaseMs;
    note(`${place.id}: ${planned.fault} for ${Math.round(forMs)} ms`);
    const staysAway = planned.choice < 0.5;
    const { fault } = planned;
    if (fault === 'drain' || fault === 'close') {
      return {
        place,
        staysAway,
        leaves: members.leave(place, fault, () => arena.isLate(healedMs)),
      };
    }
    await strikeOne(arena, place, fault, forMs, planned.choice);
    return { place, staysAway: false, leaves: undefined };
  };
  const strikes = Promise.all([strike(coordinator, 'leader'), strike(another, 'waiting')]);
  const common = async () => {
    const planned = round.server;
    if (planned === undefined) return;
    await pause(planned.afterMs);
    note(`all: ${planned.fault} for ${Math.round(planned.length * stage.leaseMs)} ms`);
    await strikeEverybody(arena, planned.fault, planned.length * stage.leaseMs);
  };
  const [struck] = await Promise.all([strikes, common()]);
  healedMs = monotonicMs();
  for (const each of struck) {
    if (each === undefined) continue;
    await each.leaves;
    if (each.place.process !== undefined || each.staysAway) continue;
    await pause(round.restartMs);
    await members.start(each.place);
  }
}

/** Where nobody coordinates, the first that is there. */
function chooseFrom(members: Members, { waiting }: Round): Struck {
  const present = members.places.filter(({ process }) => process !== undefined);
  const coordinator = members.coordinator ?? present[0];
  const others = present.filter((place) => place !== coordinator);
  const another = others[Math.floor((waiting?.choice ?? 0) * others.length)];
  return { coordinator, another };
}

async function strikeOne(
  { members }: Arena,
  place: Place,
  fault: Exclude<MemberFault, 'drain' | 'close'>,
  forMs: number,
  choice: number,
): Promise<void> {
  switch (fault) {
    case 'kill':
      return members.kill(place);
    case 'freeze':
      return members.freeze(place, forMs);
    case 'resign':
      return members.resign(place);
    case 'cut':
    case 'silence':
    case 'drop replies':
      if (place.proxy !== undefined) await strikeProxies([place.proxy], fault, { forMs, choice });
      return;
    default:
      return fault satisfies never;
  }
}

async function strikeEverybody(
  { members, stage }: Arena,
  fault: CommonFault,
  forMs: number,
): Promise<void> {
  const { server, proxies } = stage;
  switch (fault) {
    case 'freeze everybody':
      await Promise.all(members.places.map((place) => members.freeze(place, forMs)));
      return;
    case 'cut everybody':
      return strikeProxies(proxies, 'cut', { forMs, choice: 0 });
    case 'kill store':
      await server?.kill();
      await pause(forMs);
      await server?.start();
      return;
    case 'freeze store':
      await server?.freeze();
      await pause(forMs);
      server?.thaw();
      return;
    default:
      return fault satisfies never;
  }
}
