import type { Benchmark } from '../../benchmark.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { WorkerProcess } from '../worker-process.ts';
import type { FromTermsInTurn, TermsInTurnArgument } from '../workers/terms-in-turn.ts';

const terms = 1_000;
const goal = 1.05;
const mebi = 1024 * 1024;

/** The same terms with `collectMetrics`, scraped every hundred terms, and without, side by side. */
export function metricsCost(surroundings: Surroundings): Benchmark {
  const without: FromTermsInTurn[] = [];
  const withMetrics: FromTermsInTurn[] = [];

  async function measure(isWith: boolean): Promise<FromTermsInTurn> {
    const argument: TermsInTurnArgument = {
      directory: surroundings.newDirectory(),
      terms,
      withMetrics: isWith,
    };
    const worker = new WorkerProcess<FromTermsInTurn>(surroundings, 'terms-in-turn', argument, [
      '--expose-gc',
    ]);
    try {
      return await worker.next('measured');
    } finally {
      await worker.kill();
    }
  }

  return {
    name: 'metrics',
    about: '1,000 terms with metrics and without',
    roundsOf: (rounds) => rounds,
    async round() {
      // The second one of a pair may find the machine warmer, so they take turns.
      const order = without.length % 2 === 0 ? [false, true] : [true, false];
      for (const isWith of order) {
        const measured = await measure(isWith);
        if (isWith && measured.counted !== terms) {
          throw new Error(`the metrics have counted ${measured.counted} of ${terms} terms`);
        }
        (isWith ? withMetrics : without).push(measured);
      }
    },
    figures(): readonly Figure[] {
      const cpu = (all: readonly FromTermsInTurn[]) => all.map(({ cpuMs }) => cpuMs);
      const rss = (all: readonly FromTermsInTurn[]) => all.map(({ rssBytes }) => rssBytes / mebi);
      const heap = (all: readonly FromTermsInTurn[]) =>
        all.map(({ heapBytes }) => heapBytes / mebi);
      const ratio = (of: typeof cpu) =>
        of(withMetrics).map((value, i) => value / (of(without)[i] as number));
      const name = '1,000 terms';
      return [
        figureOf('metrics', `${name} without metrics: CPU time`, 'ms', cpu(without)),
        figureOf('metrics', `${name} with metrics: CPU time`, 'ms', cpu(withMetrics)),
        figureOf('metrics', `${name}: CPU time with metrics to without`, '×', ratio(cpu), goal),
        figureOf('metrics', `${name} without metrics: resident memory`, 'MiB', rss(without)),
        figureOf('metrics', `${name} with metrics: resident memory`, 'MiB', rss(withMetrics)),
        figureOf('metrics', `${name}: memory with metrics to without`, '×', ratio(rss), goal),
        figureOf('metrics', `${name} without metrics: heap`, 'MiB', heap(without)),
        figureOf('metrics', `${name} with metrics: heap`, 'MiB', heap(withMetrics)),
      ];
    },
  };
}
