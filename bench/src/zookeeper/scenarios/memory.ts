import { monotonicMs, sleep } from '../../clock.ts';
import type { CandidateName } from '../messages.ts';
import { candidateNames } from '../messages.ts';
import type { Column } from '../results.ts';
import type { Client, Scenario, Stage } from '../scenario.ts';
import { candidatesOf, eachInTurn, startClient } from '../scenario.ts';

const sessionTimeoutMs = 30_000;

/** One-shot data watches on so many nodes, beside the same nodes read without. */
export function watchMemory(stage: Stage): Scenario {
  const { results, admin, serverPort: port } = stage;
  const names: readonly CandidateName[] = ['ours', 'NZC'];
  const count = 20_000;
  // With the number, paths of 80 bytes.
  const parent = `/watched-${'m'.repeat(60)}`;

  /** V8 enlarges its young generation when much survives: here it is large in both processes. */
  const settings = ['--expose-gc', '--min-semi-space-size=16'];

  async function rssOf(name: CandidateName, watch: boolean): Promise<number> {
    const client = startClient(stage, name, settings);
    try {
      await client.call('connect', { port, sessionTimeoutMs, auth: false });
      return (await client.call('readAll', { parent, count, watch })).rssBytes;
    } finally {
      await client.kill();
    }
  }

  return {
    name: 'memory',
    about: 'memory of watches',
    prepare: () => admin.createNumbered(parent, count),
    async round(round) {
      const there = candidatesOf(stage, names, round).map((name) => [name, name] as const);
      await eachInTurn(stage, 'memory', there, async (name) => {
        const without = await rssOf(name, false);
        const bytes = (await rssOf(name, true)) - without;
        results.add('watchBytes', name, round, bytes / count);
      });
    },
  };
}

/** The memory of an idle process with a client, and the times of its start and import. */
export function startUp(stage: Stage): Scenario {
  const { results, serverPort: port } = stage;
  const mib = 2 ** 20;
  const idleMs = 1_000;

  async function start(column: Column, round: number, all: Map<Column, Client>): Promise<void> {
    const startMs = monotonicMs();
    const client = startClient(stage, column);
    all.set(column, client);
    const { importMs } = await client.call('hello', {});
    results.add('startTime', column, round, monotonicMs() - startMs);
    if (column === 'empty') return;
    results.add('importTime', column, round, importMs);
    await client.call('connect', { port, sessionTimeoutMs, auth: false });
  }

  return {
    name: 'startup',
    about: 'idle memory and import',
    async round(round) {
      const there = candidatesOf(stage, candidateNames, round).filter(
        (name) => name !== 'raw+decode',
      );
      const columns = (['empty', ...there] as const).map((column) => [column, column] as const);
      const clients = new Map<Column, Client>();
      try {
        await eachInTurn(stage, 'startup', columns, (column) => start(column, round, clients));
        await sleep(idleMs);
        let emptyMib = Number.NaN;
        await eachInTurn(stage, 'startup', clients, async (column, client) => {
          const rssMib = (await client.call('rss', {})).bytes / mib;
          results.add('idleRss', column, round, rssMib);
          if (column === 'empty') emptyMib = rssMib;
          else results.add('idleRssAboveEmpty', column, round, rssMib - emptyMib);
        });
      } finally {
        await Promise.all([...clients.values()].map((client) => client.kill()));
      }
    },
  };
}
