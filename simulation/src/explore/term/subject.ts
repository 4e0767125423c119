import type { Subject } from '../subject.ts';
import { walk } from '../walk.ts';
import { breaks } from './breaks.ts';
import type { TermMachine, World } from './model.ts';
import { firstWorld, problemOf, successors } from './model.ts';

/** A term: two candidates on one record. */
export const term: Subject = {
  name: 'term',
  package: 'incumbent',
  file: 'core/term-machine.js',
  breaks,
  bounds: { faults: 1, terms: 2 },
  brokenBounds: { faults: 1, terms: 1 },
  async explore(machine, { faults, terms }) {
    const options = { machine: machine as TermMachine, mostTerms: terms };
    return walk<World>({
      firsts: [firstWorld(faults)],
      successors: (world) => successors(world, options),
      problemOf: (world) => problemOf(world, options),
      keyOf,
    });
  },
};

/** Two candidates that have changed places are the same state. */
function keyOf({ candidates, holder, by, ...rest }: World): string {
  const [a, b] = candidates.map((candidate) => JSON.stringify(candidate)) as [string, string];
  const isSwapped = a > b;
  const seen = (id: World['by']) => (typeof id === 'number' && isSwapped ? 1 - id : id);
  return `${isSwapped ? b + a : a + b}${seen(holder)}${seen(by)}${JSON.stringify(rest)}`;
}
