import type { Benchmark } from '../../benchmark.ts';
import { monotonicMs, sleep } from '../../clock.ts';
import type { Unit } from '../../figure.ts';
import { figureOf, median, p99Of } from '../../figure.ts';
import { makeSamples } from '../../samples.ts';
import type { ContenderName } from '../messages.ts';
import { contenders } from '../messages.ts';
import type { Change, MemberLog } from '../ownership.ts';
import { changeOf, cleanMovesOf, spansOf } from '../ownership.ts';
import type { Member, Stage } from '../stage.ts';

const balancedWithinMs = 60_000;
/** For what still moves when all are balanced. */
const settleMs = 500;
/** Of the issue: for 256 moves. */
const moveGoalMs = 50;

const measured = {
  moved: { text: 'shards moved', unit: '' },
  interrupted: { text: 'longest stop of a shard that did not move', unit: 'ms' },
  balanced: { text: 'until balanced', unit: 'ms' },
  uneven: { text: 'most owned − fewest owned', unit: '' },
} as const satisfies Readonly<Record<string, { readonly text: string; readonly unit: Unit }>>;

/**
 * Three processes share the shards. A fourth joins; of ours, processes are drained and join again,
 * so that each move is clean; then one is killed. All is read from what each process has written.
 */
export function members(stage: Stage, name: string, shards: number): Benchmark {
  const samples = makeSamples();
  const troubles = new Set<string>();
  let rounds = 0;

  async function measure(contender: ContenderName): Promise<void> {
    const { isOurs } = contenders[contender];
    const setName = `${name}-${rounds}-${Math.floor(monotonicMs())}`;
    const logs: MemberLog[] = [];
    let alive: readonly { readonly member: Member; readonly index: number }[] = [];
    const join = async () => {
      const member = await stage.join(contender, setName, shards);
      alive = [...alive, { member, index: logs.length }];
      logs.push({ events: [] });
    };
    /** Resolves when all shards are owned, by all alive, by each as many. */
    const balanced = async () => {
      const untilMs = monotonicMs() + balancedWithinMs;
      for (;;) {
        const owned = await Promise.all(alive.map(({ member }) => member.call('owned', {})));
        const uneven = Math.max(...owned) - Math.min(...owned);
        const all = owned.reduce((sum, one) => sum + one, 0);
        if (all === shards && uneven <= 1) return uneven;
        if (monotonicMs() > untilMs) {
          throw new Error(`not balanced within ${balancedWithinMs} ms: ${owned.join(', ')}`);
        }
        await sleep(50);
      }
    };
    const readLogs = async (): Promise<void> => {
      for (const { member, index } of alive) {
        logs[index] = { events: await member.call('log', {}) };
      }
    };
    const add = (what: string, { moved, interruptedMs, balancedMs }: Change, uneven: number) => {
      stage.progress(
        `${contender}, ${what}: ${moved} moved, others stopped ${Math.round(interruptedMs)} ms, ` +
          `balanced after ${Math.round(balancedMs)} ms, uneven by ${uneven}`,
      );
      samples.add(`${contender}, ${what}, moved`, moved);
      samples.add(`${contender}, ${what}, interrupted`, interruptedMs);
      samples.add(`${contender}, ${what}, balanced`, balancedMs);
      samples.add(`${contender}, ${what}, uneven`, uneven);
    };
    /** @param change done when it has begun */
    const changed = async (what: string, change: () => Promise<void>): Promise<void> => {
      const sinceMs = monotonicMs();
      await change();
      await balanced();
      await sleep(settleMs);
      const uneven = await balanced();
      await readLogs();
      add(what, changeOf(spansOf(logs, shards), sinceMs), uneven);
    };
    const drainLast = async () => {
      const last = alive.at(-1);
      if (last === undefined) return;
      await last.member.call('drain', {});
      logs[last.index] = { events: await last.member.call('log', {}) };
      alive = alive.slice(0, -1);
      await last.member.kill();
      await balanced();
    };
    try {
      stage.progress(`${contender} starts`);
      await Promise.all([join(), join(), join()]);
      await balanced();
      await sleep(settleMs);
      await balanced();
      await changed('a fourth joins', join);
      for (let turn = 0; isOurs && turn < 2; turn += 1) {
        await drainLast();
        await join();
        await balanced();
        await sleep(settleMs);
      }
      await changed('one is killed', async () => {
        const [victim, ...others] = alive;
        if (victim === undefined) return;
        const events = await victim.member.call('log', {});
        alive = others;
        logs[victim.index] = { events, killedAtMs: monotonicMs() };
        await victim.member.kill();
      });
      if (isOurs) {
        const moves = cleanMovesOf(spansOf(logs, shards));
        samples.add(`${contender}, move`, ...moves);
        stage.progress(
          `${contender}: ${moves.length} moves, median ${Math.round(median(moves))} ms`,
        );
      }
    } finally {
      await Promise.all(alive.map(({ member }) => member.kill()));
    }
  }

  return {
    name,
    about: `${shards} shards: a process joins, is drained, is killed`,
    roundsOf: (all) => all,
    async round() {
      for (const contender of stage.names) {
        try {
          await measure(contender);
        } catch (error) {
          // A fault of another contender keeps nobody from measuring ours.
          const message = `${contender}: ${(error as Error).message.split('\n')[0]}`;
          if ((error as Error).name === 'WrongElectionError' && contenders[contender].isOurs) {
            throw error;
          }
          troubles.add(message);
        }
      }
      rounds += 1;
    },
    figures: () =>
      stage.names.flatMap((contender) => {
        const figures = ['a fourth joins', 'one is killed'].flatMap((what) =>
          Object.entries(measured).flatMap(([key, { text, unit }]) => {
            const all = samples.of(`${contender}, ${what}, ${key}`);
            if (all.length === 0) return [];
            return [figureOf(name, `${what}, ${text}: ${contender}`, unit, all)];
          }),
        );
        const moves = samples.of(`${contender}, move`);
        if (moves.length === 0) return figures;
        const title = `clean move: ${contender}`;
        return [
          ...figures,
          figureOf(name, title, 'ms', moves, moveGoalMs),
          p99Of(name, title, 'ms', moves),
        ];
      }),
    troubles: () => [...troubles],
  };
}
