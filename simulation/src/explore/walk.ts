/** Walks every state of a small world, breadth first: the first way to a problem is the shortest one. */

/** A machine of the library, put into a small world. */
export interface Game<World> {
  readonly firsts: readonly World[];
  /** Everything that can happen next, each with its name. */
  successors(world: World): Iterable<readonly [string, World]>;
  /** The problem of a state, if it has one. */
  problemOf(world: World): string | undefined;
  /** Equal for states that nothing tells apart. */
  keyOf(world: World): string;
}

export interface Walk {
  readonly states: number;
  readonly depth: number;
  readonly problem: string | undefined;
  /** The events, in order, until the problem. */
  readonly way: readonly string[];
}

export function walk<World>(game: Game<World>): Walk {
  const known = new Set<string>();
  // One entry a state: who came before, and by what.
  const worlds: (World | undefined)[] = [];
  const cameFrom: number[] = [];
  const cameBy: string[] = [];
  const depths: number[] = [];
  const add = (world: World, from: number, by: string) => {
    const key = game.keyOf(world);
    if (known.has(key)) return;
    known.add(key);
    worlds.push(world);
    cameFrom.push(from);
    cameBy.push(by);
    depths.push(from < 0 ? 0 : (depths[from] as number) + 1);
  };
  const wayTo = (index: number): string[] => {
    const way: string[] = [];
    for (let at = index; at >= 0; at = cameFrom[at] as number) way.push(cameBy[at] as string);
    return way.reverse().filter((name) => name !== '');
  };
  for (const first of game.firsts) add(first, -1, '');
  for (let index = 0; index < worlds.length; index += 1) {
    const world = worlds[index] as World;
    worlds[index] = undefined;
    for (const [name, next] of game.successors(world)) {
      const problem = game.problemOf(next);
      if (problem !== undefined) {
        const depth = (depths[index] as number) + 1;
        return { states: known.size, depth, problem, way: [...wayTo(index), name] };
      }
      add(next, index, name);
    }
  }
  return { states: known.size, depth: depths.at(-1) ?? 0, problem: undefined, way: [] };
}
