/**
 * `npm run bench -- zookeeper`: the ZooKeeper client beside its peers. Ends with 0 also when a goal is
 * missed; with 1 when something could not be measured.
 */
import { loadavg } from 'node:os';
import { keepResults } from '../kept-results.ts';
import { describeMachine } from '../machine.ts';
import type { Options } from '../options.ts';
import { usageOf } from '../options.ts';
import { commandOf } from '../subject.ts';
import { endWithSignals, optionsOrUsage } from '../suite.ts';
import { Surroundings } from '../surroundings.ts';
import { rawAdapter } from './adapters/raw.ts';
import { Admin } from './admin.ts';
import { findPeers } from './peers.ts';
import type { TroubleLine } from './report.ts';
import { formats, resultOf } from './report.ts';
import { Results } from './results.ts';
import type { MakeScenario, Scenario, Stage } from './scenario.ts';
import { smallNode } from './scenario.ts';
import { canned } from './scenarios/canned.ts';
import { creates } from './scenarios/creates.ts';
import { gets } from './scenarios/gets.ts';
import { connectToReady, watchDelivery } from './scenarios/latencies.ts';
import { startUp, watchMemory } from './scenarios/memory.ts';
import { outage, reconnect, refusal } from './scenarios/recovery.ts';
import { startServer, whyNoServer } from './server.ts';

const makers: Readonly<Record<string, MakeScenario>> = {
  get: gets,
  canned,
  create: creates,
  watch: watchDelivery,
  connect: connectToReady,
  reconnect,
  outage,
  refusal,
  memory: watchMemory,
  startup: startUp,
};
const defaultRounds = 5;
const warmUpCreates = 5_000;

const asked = { subject: 'zookeeper', names: Object.keys(makers), defaultRounds } as const;
const usage = usageOf(asked, 'where the server keeps its data');

export function run(args: readonly string[]): Promise<number> {
  endWithSignals();
  return measureAll(optionsOrUsage({ ...asked, usage }, args));
}

async function measureAll({ only, rounds, directory, format, save }: Options): Promise<number> {
  const startMs = performance.now();
  const seconds = () => Math.round((performance.now() - startMs) / 1e3);
  const progress = (text: string) => process.stderr.write(`${seconds()} s: ${text}\n`);
  const troubles: Omit<TroubleLine, 'kind'>[] = [];
  const noServer = whyNoServer();
  if (noServer !== undefined) {
    process.stderr.write(`nothing can be measured: ${noServer}\n`);
    return 1;
  }
  const machine = describeMachine(directory);
  const peers = findPeers(progress);
  const surroundings = new Surroundings(directory);
  const server = await startServer(surroundings);
  const admin = new Admin(server.port);
  const results = new Results();
  const stage: Stage = {
    surroundings,
    peers,
    results,
    admin,
    serverPort: server.port,
    failed(benchmark, column, error) {
      const message = error instanceof Error ? error.message : String(error);
      progress(`${benchmark}, ${column}: ${message}`);
      if (troubles.some((each) => each.benchmark === benchmark && each.column === column)) return;
      troubles.push({ benchmark, column, message });
    },
  };
  await admin.create(smallNode);
  progress('warming the server up');
  await warmUp(server.port);
  const scenarios = Object.entries(makers)
    .filter(([name]) => only?.includes(name) ?? true)
    .map(([, make]) => make(stage));
  for (const scenario of scenarios) await scenario.prepare?.();
  const failed = new Set<Scenario>();
  for (let round = 0; round < rounds; round += 1) {
    for (const scenario of scenarios) {
      if (failed.has(scenario)) continue;
      progress(`round ${round + 1} of ${rounds}: ${scenario.about}`);
      try {
        await scenario.round(round);
      } catch (error) {
        failed.add(scenario);
        const message = (error as Error).message;
        troubles.push({ benchmark: scenario.name, column: undefined, message });
      }
    }
  }
  admin.close();
  await surroundings.reaper.close();
  const result = resultOf(
    {
      ...machine,
      command: commandOf(asked.subject),
      server: server.version,
      rounds,
      versions: Object.fromEntries(peers.versions),
      absent: Object.fromEntries(peers.absent),
      loadAtEnd: loadavg()[0] ?? 0,
      seconds: seconds(),
    },
    results,
    troubles,
  );
  process.stdout.write(formats[format](result));
  if (save) progress(`kept in ${keepResults(asked.subject, result)}`);
  return troubles.length === 0 ? 0 : 1;
}

/** Else whoever comes first in the first round would pay for the server's compiler. */
async function warmUp(port: number): Promise<void> {
  const connect = { port, sessionTimeoutMs: 30_000, auth: false };
  const connection = await rawAdapter(false).connect(connect);
  for (const window of [1, 100, 1000]) await connection.gets(smallNode, 10_000, window);
  await connection.creates(smallNode, 0, warmUpCreates, 100);
  await connection.close();
}
