/**
 * A small model of an election on a lease store: two candidates, one record, time in whole steps.
 * The term is the library's own machine. Everything around it is modelled, and every order of it is
 * a state of its own.
 *
 * Belief is H after the *sending* of what won or confirmed the seat. Another place shows that the
 * law of the two clocks finds it over in time (base/deadline.ts and its property test). Here a
 * clock that is set forward takes a step of it, and a suspended host neither acts nor counts the
 * time of its waits.
 */
import type * as Machine from '../../../../packages/incumbent/src/core/term-machine.ts';

export type TermMachine = Pick<
  typeof Machine,
  'endOf' | 'firstTermAt' | 'hasSettled' | 'isKept' | 'nextTermAt' | 'shownAt'
>;

export const beliefSteps = 3;
export const leaseSteps = 3;
const marginSteps = 1;

export type Id = 0 | 1;

/** One conditional write, on its way. */
export interface Operation {
  readonly kind: 'win' | 'confirm' | 'release';
  /** Steps since its sending. */
  readonly age: number;
  /** 1: the record has been written since the version it replaces. */
  readonly behind: number;
  readonly at: 'sent' | 'applied' | 'refused';
}

export interface Candidate {
  readonly term: Machine.TermAt | undefined;
  /** Steps of belief that are left. */
  readonly belief: number;
  readonly work: 'none' | 'running' | 'told';
  /** Whose answer it waits for. */
  readonly operation: Operation | undefined;
  /** Whose answer nobody waits for any more, and which may still land. */
  readonly late: Operation | undefined;
  /** The confirmation that was given up is through, and the machine has not heard yet. */
  readonly owesThrough: boolean;
  /** The seat was left, and the machine has not heard yet. */
  readonly owesLeft: boolean;
  /** Neither acts nor hears. A suspended host's waiting does not count either. */
  readonly halted: 'no' | 'stalled' | 'suspended';
  /** It goes on after a halt, and has not looked at its clocks yet. */
  readonly isLate: boolean;
  /** The version that it knows: 0 if that is the newest, else 1; and since when it has seen it. */
  readonly seen: { readonly behind: number; readonly steps: number };
  readonly terms: number;
  /** Of the term that goes on: what was done, in order, as far as order matters. */
  readonly done: string;
}

export interface World {
  readonly candidates: readonly [Candidate, Candidate];
  readonly holder: Id | undefined;
  readonly revoked: boolean;
  readonly request: boolean;
  /** The last writer. */
  readonly by: Id | 'operator' | undefined;
  /** The record was deleted by hand: for as long as its leader may believe nobody takes the seat. */
  readonly wiped: boolean;
  /** How much may still go wrong. */
  readonly faults: number;
  /** The problem of this state. */
  readonly problem: string | undefined;
}

const nothingSeen = { behind: 1, steps: 0 };

const idle: Candidate = {
  ...{ term: undefined, belief: 0, work: 'none', operation: undefined, late: undefined },
  ...{
    owesThrough: false,
    owesLeft: false,
    halted: 'no',
    isLate: false,
    seen: nothingSeen,
    terms: 0,
  },
  done: '',
};

export const firstWorld = (faults: number): World => ({
  ...{ candidates: [idle, idle], holder: undefined, revoked: false, request: false, by: undefined },
  ...{ wiped: false, faults, problem: undefined },
});

export interface Options {
  readonly machine: TermMachine;
  readonly mostTerms: number;
}

const ids: readonly Id[] = [0, 1];
const nameOf = (id: Id) => (id === 0 ? 'A' : 'B');

/** Everything that can happen next, each with its name. */
export function* successors(world: World, options: Options): Generator<readonly [string, World]> {
  for (const [name, next] of everySuccessor(world, options)) {
    yield [
      name,
      { ...next, candidates: next.candidates.map((each) => plain(each, options)) as never },
    ];
  }
}

/** Without what makes no difference any more. */
function plain(candidate: Candidate, { mostTerms }: Options): Candidate {
  const { term, operation, late, seen, terms } = candidate;
  const isOut = term === undefined && terms >= mostTerms;
  const counts = term === undefined && seen.behind === 0;
  return {
    ...candidate,
    operation:
      operation?.kind === 'release' ? { ...operation, age: Math.min(operation.age, 1) } : operation,
    late: late && { ...late, age: 0, behind: Math.min(late.behind, 1) },
    seen: isOut
      ? nothingSeen
      : { behind: Math.min(seen.behind, 1), steps: counts ? seen.steps : 0 },
  };
}

function* everySuccessor(world: World, options: Options): Generator<readonly [string, World]> {
  yield ['a step of time', step(world, options)];
  for (const id of ids) {
    const candidate = world.candidates[id];
    const name = nameOf(id);
    if (candidate.operation?.at === 'sent') {
      yield [`${name}'s ${candidate.operation.kind} lands`, land(world, id, 'operation')];
    }
    if (candidate.late !== undefined) {
      yield [`${name}'s late ${candidate.late.kind} lands`, land(world, id, 'late')];
      yield [`${name}'s late ${candidate.late.kind} is lost`, set(world, id, { late: undefined })];
    }
    if (world.faults > 0) yield* faultsOf(world, id, options);
    if (candidate.halted !== 'no') {
      // Its timers may speak after an answer that has waited.
      yield [`${name} goes on`, set(world, id, { halted: 'no', isLate: true })];
      continue;
    }
    yield* actsOf(world, id, options);
  }
  if (world.faults > 0 && world.holder !== undefined) {
    const asked = written({ ...world, faults: world.faults - 1, by: 'operator' });
    const gone = { holder: undefined, request: false, revoked: false, wiped: true };
    yield ['somebody deletes the record', { ...asked, ...gone }];
    yield ['an operator asks the leader to go', { ...asked, request: true }];
    yield ['an operator takes the seat by force', { ...asked, request: true, revoked: true }];
  }
}

function* faultsOf(world: World, id: Id, options: Options): Generator<readonly [string, World]> {
  const candidate = world.candidates[id];
  const less = { ...world, faults: world.faults - 1 };
  const name = nameOf(id);
  const { operation, halted } = candidate;
  if (operation !== undefined && operation.age > 0 && halted === 'no') {
    const late = operation.at === 'sent' ? operation : undefined;
    const without = set(less, id, { operation: undefined, ...(late && { late }) });
    yield [
      `${name} hears nothing of its ${operation.kind}`,
      unanswered(without, id, operation, options),
    ];
  }
  if (operation?.at === 'applied') {
    // A client library has sent it twice, and the second one was refused.
    const refused: Operation = { ...operation, at: 'refused' };
    yield [`${name}'s ${operation.kind} is sent twice`, set(less, id, { operation: refused })];
  }
  if (halted === 'no') {
    yield [`${name} stands still`, set(less, id, { halted: 'stalled' })];
    yield [`the host of ${name} is suspended`, set(less, id, { halted: 'suspended' })];
    if (candidate.belief > 0) {
      const belief = candidate.belief - 1;
      yield [`the clock of ${name} is set forward`, look(set(less, id, { belief }), id, options)];
    }
  }
}

function* actsOf(world: World, id: Id, options: Options): Generator<readonly [string, World]> {
  const { machine } = options;
  const candidate = world.candidates[id];
  const name = nameOf(id);
  const { operation, term, seen } = candidate;
  if (candidate.isLate) {
    yield [`${name} looks at its clocks`, look(set(world, id, { isLate: false }), id, options)];
  }
  if (operation !== undefined && operation.at !== 'sent') {
    yield [`${name} hears of its ${operation.kind}`, answered(world, id, operation, options)];
  }
  if (candidate.owesThrough) {
    const told = set(world, id, { owesThrough: false });
    yield [`${name}'s last confirmation is through`, feed(told, id, { on: 'through' }, options)];
  }
  if (candidate.owesLeft) {
    const told = set(world, id, { owesLeft: false });
    yield [`${name} has left the seat`, feed(told, id, { on: 'left', released: false }, options)];
  }
  if (term === undefined) {
    if (operation !== undefined || candidate.terms >= options.mostTerms) return;
    if (seen.behind > 0) yield [`${name} looks`, set(world, id, { seen: { behind: 0, steps: 0 } })];
    else if (world.wiped) return;
    else if (world.holder === undefined || seen.steps >= leaseSteps) {
      yield [`${name} tries to win`, send(world, id, 'win')];
    }
    return;
  }
  if (machine.isKept(term) && operation === undefined) {
    yield [`${name} sends a confirmation`, send(world, id, 'confirm')];
  }
  if (candidate.work === 'running' && term.at === 'kept') {
    const asked = { on: 'asked-to-stop', end: { reason: 'work-finished' } } as const;
    const done = settle(world, id, options);
    yield [`${name}'s work is done`, feed(done, id, asked, options)];
    if (world.faults > 0) {
      const lost = { on: 'lost', reason: 'session-expired' } as const;
      const less = { ...world, faults: world.faults - 1, wiped: true };
      yield [`the session of ${name} ends`, feed(less, id, lost, options)];
      const both = feed(settle(less, id, options), id, lost, options);
      yield [`${name}'s work is done, and its session ends`, both];
    }
  }
  if (term.at === 'kept' && term.doubt === 'none' && world.faults > 0) {
    const less = { ...world, faults: world.faults - 1 };
    yield [`${name} is told that no answer may come`, feed(less, id, { on: 'doubted' }, options)];
  }
  if (candidate.work === 'told') yield [`${name}'s work settles`, settle(world, id, options)];
  if (term.at === 'stopping') {
    yield [`${name} has waited for its work`, feed(world, id, { on: 'waited-enough' }, options)];
  }
}

// --- time, and the store ---

function step(world: World, options: Options): World {
  const older = (operation: Operation | undefined) =>
    operation && { ...operation, age: Math.min(operation.age + 1, beliefSteps) };
  let next = world;
  for (const id of ids) {
    const { belief, operation, late, seen, halted } = world.candidates[id];
    const steps = halted === 'suspended' ? seen.steps : Math.min(seen.steps + 1, leaseSteps);
    next = set(next, id, {
      belief: Math.max(0, belief - 1),
      operation: older(operation),
      late: older(late),
      seen: { ...seen, steps },
    });
  }
  // A process that runs has looked at its clocks before a whole step is over.
  return ids.reduce((each, id) => {
    const { halted } = each.candidates[id];
    return halted === 'no' ? look(set(each, id, { isLate: false }), id, options) : each;
  }, next);
}

/** The findings of the timers of a process that runs. */
function look(world: World, id: Id, options: Options): World {
  const { halted, belief, term } = world.candidates[id];
  if (halted !== 'no' || term === undefined) return world;
  const { machine } = options;
  let next = world;
  if (belief <= marginSteps && machine.isKept(term))
    next = feed(next, id, { on: 'margin-over' }, options);
  const now = next.candidates[id];
  if (now.belief > 0 || now.term?.at !== 'lapsing') return next;
  return feed(next, id, { on: 'belief-over' }, options);
}

function send(world: World, id: Id, kind: Operation['kind']): World {
  const { behind } = world.candidates[id].seen;
  return set(world, id, { operation: { kind, age: 0, behind, at: 'sent' } });
}

/** The record has a new version. */
function written(world: World): World {
  const later = (operation: Operation | undefined) => operation && { ...operation, behind: 1 };
  return ids.reduce((each, id) => {
    const { operation, late, seen } = each.candidates[id];
    return set(each, id, {
      operation: later(operation),
      late: later(late),
      seen: { ...seen, behind: 1 },
    });
  }, world);
}

function land(world: World, id: Id, which: 'operation' | 'late'): World {
  const operation = world.candidates[id][which] as Operation;
  const isRefused = operation.behind > 0;
  const stands: Operation = { ...operation, at: isRefused ? 'refused' : 'applied' };
  const kept = set(world, id, { [which]: which === 'late' ? undefined : stands });
  if (isRefused) return kept;
  const next = { ...written(kept), by: id };
  const { kind } = operation;
  if (kind === 'win') return { ...next, holder: id, revoked: false, request: false };
  return kind === 'release' ? { ...next, holder: undefined, revoked: false, request: false } : next;
}

// --- what a candidate makes of it ---

function answered(world: World, id: Id, operation: Operation, options: Options): World {
  const isNewest = world.by === id && world.holder === id;
  // Refused, and the record says that it is our own write: the first of two has landed.
  const isOurs = operation.at === 'applied' || (isNewest && operation.kind !== 'release');
  const seen = { behind: 0, steps: 0 };
  const heard = set(world, id, { operation: undefined });
  if (operation.kind === 'release')
    return feed(heard, id, { on: 'left', released: isOurs }, options);
  if (operation.kind === 'win') {
    const known = set(heard, id, { seen });
    if (!isOurs || world.holder !== id || world.revoked) return known;
    return won(known, id, operation, options);
  }
  if (world.holder !== id) {
    const reason = world.holder === undefined ? 'record-gone' : 'superseded';
    return feed(heard, id, { on: 'lost', reason }, options);
  }
  const known = set(heard, id, { seen });
  if (world.revoked) return feed(known, id, { on: 'lost', reason: 'vacated' }, options);
  const told = isOurs
    ? confirmed(known, id, operation, options)
    : feed(known, id, { on: 'unconfirmed' }, options);
  if (!world.request) return told;
  return feed(told, id, { on: 'asked-to-stop', end: { reason: 'vacated' } }, options);
}

function unanswered(world: World, id: Id, { kind }: Operation, options: Options): World {
  // It looks at the record before it tries again.
  const again = set(world, id, { seen: nothingSeen });
  if (kind === 'win') return again;
  if (kind === 'release') return feed(world, id, { on: 'left', released: false }, options);
  // It knows the version from the answer to its next look.
  const known = world.holder === id ? set(world, id, { seen: { behind: 0, steps: 0 } }) : world;
  return look(feed(known, id, { on: 'unconfirmed' }, options), id, options);
}

function won(world: World, id: Id, { age }: Operation, options: Options): World {
  const belief = beliefSteps - age;
  const { terms } = world.candidates[id];
  const term = options.machine.firstTermAt;
  const next = set(world, id, { term, belief, terms: terms + 1, work: 'none', done: '' });
  if (belief <= marginSteps) {
    const lost = feed(next, id, { on: 'lost', reason: 'stalled' }, options);
    return settle(set(lost, id, { work: 'told' }), id, options);
  }
  return set(feed(next, id, { on: 'announced' }, options), id, { work: 'running' });
}

function confirmed(world: World, id: Id, { age }: Operation, options: Options): World {
  const { belief, term } = world.candidates[id];
  if (term === undefined || !options.machine.isKept(term)) return world;
  // A late reply never revives a term.
  if (belief <= 0) return feed(world, id, { on: 'lost', reason: 'stalled' }, options);
  const next = set(world, id, { belief: Math.max(belief, beliefSteps - age) });
  return feed(next, id, { on: 'confirmed' }, options);
}

function settle(world: World, id: Id, options: Options): World {
  return feed(set(world, id, { work: 'none' }), id, { on: 'settled' }, options);
}

// --- the machine, and what it wants to be done ---

function feed(world: World, id: Id, event: Machine.TermEvent, options: Options): World {
  const { term } = world.candidates[id];
  if (term === undefined) return world;
  const { machine } = options;
  const { next, effects } = machine.nextTermAt(term, event);
  let after = set(world, id, { term: next });
  const [before, now] = [machine.endOf(term), machine.endOf(next)];
  if (before !== undefined && before.reason !== now?.reason) {
    after = wrong(after, `${nameOf(id)} ends by ${before.reason}, and then by ${now?.reason}`);
  }
  for (const effect of effects) after = act(after, id, effect, options);
  return after;
}

function act(world: World, id: Id, effect: Machine.TermEffect, options: Options): World {
  const candidate = world.candidates[id];
  const name = nameOf(id);
  const note = (what: string) => set(world, id, { done: `${candidate.done}${what}` });
  const did = (what: string) => candidate.done.includes(what);
  switch (effect.do) {
    case 'stop-work':
      if (did('t')) return wrong(world, `${name}'s work is told twice`);
      return set(note('t'), id, { work: candidate.work === 'running' ? 'told' : candidate.work });
    case 'show':
    case 'wait-for-work':
    case 'tell-overrun':
      return world;
    case 'stop-keeping': {
      const { operation } = candidate;
      const isConfirming = operation?.kind === 'confirm';
      const late = isConfirming && operation.at === 'sent' ? { late: operation } : {};
      const gone = isConfirming ? { operation: undefined, ...late } : {};
      const next = set(note('k'), id, { ...gone, owesThrough: true });
      return look(next, id, options);
    }
    case 'end-belief':
      return set(world, id, { belief: 0 });
    case 'release':
      if (!did('t')) return wrong(world, `${name} gives its seat back before the work was told`);
      if (candidate.work !== 'none')
        return wrong(world, `${name} gives its seat back while the work goes on`);
      if (candidate.belief > 0)
        return wrong(world, `${name} gives its seat back and believes in it`);
      if (!did('k')) return wrong(world, `${name} gives its seat back while it is confirmed`);
      if (candidate.owesThrough)
        return wrong(world, `${name} gives its seat back before the last confirmation is through`);
      if (isTakenAway(effect.reason)) {
        return set(note('r'), id, { owesLeft: true });
      }
      return send(note('r'), id, 'release');
    case 'abandon':
      if (candidate.belief > 0) return wrong(world, `${name} leaves a seat in which it believes`);
      return set(note('a'), id, { owesLeft: true });
    case 'finish': {
      if (candidate.work !== 'none') return wrong(world, `${name} ends while its work goes on`);
      if (effect.overran !== did('a')) return wrong(world, `${name} is wrong about having run on`);
      const over = { term: undefined, belief: 0, operation: undefined, done: '' };
      return set(world, id, { ...over, seen: nothingSeen });
    }
  }
}

/** The promises, which must hold in every state. */
export function problemOf(world: World, { machine }: Options): string | undefined {
  if (world.problem !== undefined) return world.problem;
  const leads = ({ term, belief }: Candidate) => term?.announced === true && belief > 0;
  if (world.candidates.every(leads)) return 'both lead at the same instant (S1)';
  const seats = ({ term, belief }: Candidate) => term !== undefined && belief > 0;
  if (world.candidates.every(seats)) return 'both believe in their seats (S1)';
  for (const id of ids) {
    const { term, work, belief, halted, operation, owesThrough, owesLeft } = world.candidates[id];
    if (term === undefined || halted !== 'no') continue;
    const name = nameOf(id);
    if (isTakenAway(machine.endOf(term)?.reason) && belief > 0) {
      return `${name} believes in a seat that was taken away`;
    }
    const { isLate } = world.candidates[id];
    if (belief <= marginSteps && work === 'running' && !isLate)
      return `${name}'s work was not told at its margin`;
    if (machine.endOf(term) !== undefined && work === 'running')
      return `${name}'s work was not told of the end`;
    const waits =
      operation !== undefined || owesThrough || owesLeft || work !== 'none' || belief > 0;
    if (!machine.isKept(term) && !waits) return `${name} is ${term.at}, and nothing will end that`;
    if (term.at === 'kept' && machine.hasSettled(term))
      return `${name} is renewed, and nobody works`;
  }
  return undefined;
}

function wrong(world: World, problem: string): World {
  return { ...world, problem: world.problem ?? problem };
}

function set(world: World, id: Id, change: Partial<Candidate>): World {
  const candidates = [...world.candidates] as [Candidate, Candidate];
  candidates[id] = { ...candidates[id], ...change };
  return { ...world, candidates };
}

function isTakenAway(reason: string | undefined): boolean {
  return reason === 'superseded' || reason === 'record-gone' || reason === 'session-expired';
}
