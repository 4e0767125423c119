import type { Benchmark } from '../../benchmark.ts';
import { WrongElectionError } from '../../benchmark.ts';
import type { Figure, Unit } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import { ratesOf, readCounters, untilNoSession } from '../server-counters.ts';
import type { Stage } from '../stage.ts';
import { sessionTimeoutMs, startMany } from '../stage.ts';

const counts = [1, 10, 100, 1_000] as const;
const most = 1_000;
/** Ten confirmations, or one more or less at its edges. */
const windowMs = 10_200;
/** Entering takes a second or two. */
const leadsWithinMs = 60_000;
/** The transactions with the most elections beside those with one: the same, but for the edges. */
const goal = 1.15;

type Kind = 'ours' | 'bare socket';

/**
 * One process leads many elections on one connection. The floor is a bare socket that sends one multi
 * with as many checks as often.
 */
export function led(stage: Stage): Benchmark {
  const samples = new Map<string, number[]>();
  let rounds = 0;

  const add = (key: string, value: number) => {
    samples.set(key, [...(samples.get(key) ?? []), value]);
  };

  /** @returns transactions a second */
  async function measure(kind: Kind, count: number): Promise<number> {
    const [server] = await stage.servers('standalone');
    if (server === undefined) throw new Error('there is no server');
    await untilNoSession(server);
    const many = startMany(stage, kind);
    try {
      await many.call('open', { port: server.port, sessionTimeoutMs });
      const before = await many.call('memory', {});
      await many.call('lead', { prefix: `led-${rounds}-${count}`, count }, leadsWithinMs);
      const after = await many.call('memory', {});
      const start = await readCounters(server);
      const { share } = await many.call('cpuShare', { windowMs });
      const rates = ratesOf(start, await readCounters(server));
      const leading = (await many.call('leading', {})).count;
      if (leading < count) {
        throw new WrongElectionError(`${count - leading} of ${count} terms were lost`);
      }
      add(`${kind} ${count} transactions`, rates.transactions);
      add(`${kind} ${count} packets`, rates.packetsReceived);
      add(`${kind} ${count} cpu`, 100 * share);
      add(`${kind} ${count} heap`, (after.heapBytes - before.heapBytes) / count / 1024);
      add(`${kind} ${count} rss`, (after.rssBytes - before.rssBytes) / count / 1024);
      return rates.transactions;
    } finally {
      await many.kill();
    }
  }

  const figure = (kind: Kind, count: number, key: string, what: string, unit: Unit): Figure[] => {
    const all = samples.get(`${kind} ${count} ${key}`);
    if (all === undefined) return [];
    const floor = kind === 'ours' ? '' : `floor, ${kind}: `;
    return [figureOf('led', `${floor}${count} led: ${what}`, unit, all)];
  };

  return {
    name: 'led',
    about: 'many elections led',
    roundsOf: (all) => all,
    async round() {
      const ours = new Map<number, number>();
      for (const count of counts) ours.set(count, await measure('ours', count));
      add('ratio', (ours.get(most) ?? Number.NaN) / (ours.get(1) ?? Number.NaN));
      await measure('bare socket', most);
      rounds += 1;
    },
    figures: () => [
      ...counts.flatMap((count) =>
        figure('ours', count, 'transactions', 'transactions of the server', 'per s'),
      ),
      figureOf(
        'led',
        `transactions of the server, ${most} led beside 1`,
        '×',
        samples.get('ratio') ?? [],
        goal,
      ),
      ...counts.flatMap((count) => figure('ours', count, 'packets', 'packets received', 'per s')),
      ...counts.flatMap((count) => figure('ours', count, 'cpu', 'CPU', '% of a core')),
      ...figure('ours', most, 'heap', 'heap per election', 'KiB'),
      ...figure('ours', most, 'rss', 'resident memory per election', 'KiB'),
      ...figure('bare socket', most, 'transactions', 'transactions of the server', 'per s'),
      ...figure('bare socket', most, 'cpu', 'CPU', '% of a core'),
    ],
  };
}
