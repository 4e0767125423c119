import type { Benchmark } from '../../benchmark.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { WorkerProcess } from '../worker-process.ts';
import type { FromTermsInTurn, Mode, TermsInTurnArgument } from '../workers/terms-in-turn.ts';

const terms = 1_000;
const goal = 1.05;
const mebi = 1024 * 1024;
const limitMs = 600_000;

/**
 * The same terms with `collectMetrics`, which is scraped, and without. The CPU time is that of one
 * process, in which both take turns. Memory is that of two processes.
 */
export function metricsCost(surroundings: Surroundings): Benchmark {
  const both: FromTermsInTurn[] = [];
  const alone: Readonly<Record<Mode, FromTermsInTurn[]>> = { with: [], without: [] };

  async function measure(modes: readonly Mode[]): Promise<FromTermsInTurn> {
    const argument: TermsInTurnArgument = { directory: surroundings.newDirectory(), terms, modes };
    const worker = new WorkerProcess<FromTermsInTurn>(surroundings, 'terms-in-turn', argument, [
      '--expose-gc',
    ]);
    try {
      const measured = await worker.next('measured', limitMs);
      const expected = modes.includes('with') ? terms : 0;
      if (measured.counted !== expected) {
        throw new Error(`the metrics have counted ${measured.counted} terms, not ${expected}`);
      }
      return measured;
    } finally {
      await worker.kill();
    }
  }

  return {
    name: 'metrics',
    about: '1,000 terms with metrics and without',
    roundsOf: (rounds) => rounds,
    async round() {
      both.push(await measure(['without', 'with']));
      for (const mode of ['without', 'with'] as const) alone[mode].push(await measure([mode]));
    },
    figures(): readonly Figure[] {
      const cpu = (mode: Mode) => both.map(({ cpuMs }) => cpuMs[mode]);
      const rss = (mode: Mode) => alone[mode].map(({ rssBytes }) => rssBytes / mebi);
      const heap = (mode: Mode) => alone[mode].map(({ heapBytes }) => heapBytes / mebi);
      const ratio = (of: typeof cpu) =>
        of('with').map((value, i) => value / (of('without')[i] as number));
      const name = '1,000 terms';
      return [
        figureOf('metrics', `${name} without metrics: CPU time`, 'ms', cpu('without')),
        figureOf('metrics', `${name} with metrics: CPU time`, 'ms', cpu('with')),
        figureOf('metrics', `${name}: CPU time with metrics to without`, '×', ratio(cpu), goal),
        figureOf('metrics', `${name} without metrics: resident memory`, 'MiB', rss('without')),
        figureOf('metrics', `${name} with metrics: resident memory`, 'MiB', rss('with')),
        figureOf('metrics', `${name}: memory with metrics to without`, '×', ratio(rss), goal),
        figureOf('metrics', `${name} without metrics: heap`, 'MiB', heap('without')),
        figureOf('metrics', `${name} with metrics: heap`, 'MiB', heap('with')),
      ];
    },
  };
}
