import { readFileSync } from 'node:fs';
import { childrenOf } from '@incumbent/cli/trial';
import type { Benchmark } from '../../benchmark.ts';
import { sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { EmptyProcess } from '../empty-process.ts';
import { RunCandidate, untilGone } from '../run-candidate.ts';

const settleMs = 3_000;
const goalMiB = 4;

interface Memory {
  /** Shared pages count in full. */
  readonly residentMiB: number;
  /** Shared pages count by the share of this process in them. */
  readonly proportionalMiB: number;
}

/** The memory of the guard beside a program, and of an idle Node process at the same time. */
export function guardMemory(surroundings: Surroundings): Benchmark {
  const directory = surroundings.newDirectory();
  const guards: Memory[] = [];
  const empties: Memory[] = [];
  const supervisors: Memory[] = [];

  async function round(): Promise<void> {
    const run = new RunCandidate(surroundings, { directory, election: 'guard' });
    const empty = new EmptyProcess(surroundings);
    try {
      const program = await run.program();
      await sleep(settleMs);
      const [guard] = childrenOf(run.pid);
      if (guard === undefined) throw new Error('`incumbent run` has no guard');
      guards.push(memoryOf(guard));
      empties.push(memoryOf(empty.pid));
      supervisors.push(memoryOf(run.pid));
      await run.finish();
      await untilGone(program);
    } finally {
      await Promise.all([run.kill(), empty.kill()]);
    }
  }

  const difference = (key: keyof Memory) =>
    guards.map((guard, index) => guard[key] - (empties[index]?.[key] ?? Number.NaN));

  return {
    name: 'guard',
    about: 'memory of the guard',
    cannotRun: process.platform === 'linux' ? undefined : 'it needs /proc',
    roundsOf: (rounds) => Math.min(5, rounds),
    round,
    figures: (): readonly Figure[] => [
      figureOf(
        'guard',
        'guard above an empty Node process, PSS',
        'MiB',
        difference('proportionalMiB'),
        goalMiB,
      ),
      figureOf(
        'guard',
        'guard above an empty Node process, RSS',
        'MiB',
        difference('residentMiB'),
        goalMiB,
      ),
      ...(['proportionalMiB', 'residentMiB'] as const).flatMap((key) => {
        const kind = key === 'residentMiB' ? 'RSS' : 'PSS';
        const all = (memories: readonly Memory[]) => memories.map((memory) => memory[key]);
        return [
          figureOf('guard', `floor: an empty Node process, ${kind}`, 'MiB', all(empties)),
          figureOf('guard', `guard, ${kind}`, 'MiB', all(guards)),
          figureOf('guard', `supervisor, ${kind}`, 'MiB', all(supervisors)),
        ];
      }),
    ],
  };
}

function memoryOf(pid: number): Memory {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
  const mib = (name: string) => {
    const kib = new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(rollup)?.[1];
    if (kib === undefined) throw new Error(`/proc/${pid}/smaps_rollup has no ${name}`);
    return Number(kib) / 1024;
  };
  return { residentMiB: mib('Rss'), proportionalMiB: mib('Pss') };
}
