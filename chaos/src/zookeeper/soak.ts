import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { seeded } from '@incumbent/servers';
import type { ClientOptions, ZooKeeper } from '@incumbent/zookeeper';
import { createClient } from '@incumbent/zookeeper';
import { startEnsemble } from '@incumbent/zookeeper-testing';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs, pause, Stalls, until } from '../harness/time.ts';
import { lossless } from '../harness/zookeeper-properties.ts';
import { Auditor } from './auditor.ts';
import { clientClass } from './broken.ts';
import type { Findings } from './findings.ts';
import { Gate } from './gate.ts';
import { judgeCounters, judgeMemory, leftBehind } from './judges.ts';
import { Nodes } from './load/nodes.ts';
import { startReads } from './load/reads.ts';
import { Registers } from './load/registers.ts';
import { WatchedTree } from './load/watched-tree.ts';
import { Watching } from './load/watching.ts';
import { describe } from './outcome.ts';
import type { Round } from './plan.ts';
import { planRounds } from './plan.ts';
import type { Arena } from './player.ts';
import { Player } from './player.ts';
import type { Settings } from './settings.ts';
import { strikeAll } from './strike.ts';

const timeoutMs = 3_000;
/** After the last fault: a quorum is there, so a client needs one round of attempts or two. */
const backMs = 2 * timeoutMs;
/**
 * From half to half of the warm part of a run: from middle to middle they are a third of the run
 * apart. Some 500 calls a second are made, so in half an hour seven bytes kept of each are found.
 */
const memoryBoundBytes = 2 * 1024 * 1024;
/** Fewer say nothing about memory, however slow the machine is. */
const fewestRounds = 6;
/** The time that the end of a run takes. */
const endMs = 12_000;

interface Cast {
  readonly player: Player;
  readonly registers: Registers;
  readonly nodes: Nodes;
  readonly watching: Watching;
}

/** Finds out what it can until the time is over. Rejects only when the soak itself is wrong. */
export async function soak(
  settings: Settings,
  findings: Findings,
  log: (line: string) => void,
  say: (line: string) => void,
): Promise<void> {
  const { minutes, clients, seed, broken } = settings;
  const deadlineMs = monotonicMs() + minutes * 60_000 - endMs;
  say(
    `${minutes} min, ${clients} clients, 3 servers, session timeout ${timeoutMs} ms; seed ${seed}\n`,
  );
  const stopListening = listenForTrouble(findings);
  const collect = garbageCollector();
  const random = seeded(seed);
  const ensemble = await startEnsemble(3, {
    minSessionTimeoutMs: timeoutMs,
    systemProperties: lossless,
  });
  const ClientClass = clientClass(broken);
  const stalls = new Stalls();
  const arena: Arena = {
    ensemble,
    findings,
    gate: new Gate(),
    stalls,
    timeoutMs,
    log,
    makeClient: (url: string, options: ClientOptions): ZooKeeper => new ClientClass(url, options),
  };
  const players: Player[] = [];
  try {
    for (let i = 0; i < clients; i += 1) players.push(await Player.start(i, arena, seed));
    const auditor = new Auditor(
      createClient(ensemble.connectionString, { sessionTimeoutMs: timeoutMs }),
    );
    await auditor.sync();
    const resources = await lastingResources();

    await auditor.create('/soak');
    const watched = new WatchedTree('/soak/watched', 40, auditor);
    const mirrored = new WatchedTree('/soak/mirrored', 20, auditor);
    for (const tree of [watched, mirrored]) await tree.prepare();
    const cast: Cast[] = [];
    for (const player of players) {
      await auditor.create(player.base);
      player.connect();
      cast.push({
        player,
        registers: new Registers(player),
        nodes: new Nodes(player),
        // Of the first client, the one-shots ride on the recursive watch.
        watching: new Watching(player, watched, player.index === 0 ? watched : mirrored),
      });
    }
    for (const { registers, nodes } of cast) {
      await registers.prepare(auditor);
      await nodes.prepare(auditor);
    }
    for (const { player, registers, nodes, watching } of cast) {
      startReads(player);
      registers.start();
      nodes.start();
      watching.start();
    }
    const onProblem = (what: string) => findings.judge('errors', what);
    for (const tree of [watched, mirrored]) tree.start(arena.gate, random, onProblem);

    const samples: number[] = [];
    try {
      for (const round of planRounds(seed, clients, timeoutMs)) {
        const startMs = monotonicMs();
        await play(round, cast, arena, auditor, { watched, mirrored });
        collect();
        samples.push(process.memoryUsage().heapUsed);
        say(report(round, players, monotonicMs() - startMs, samples.at(-1) as number));
        if (monotonicMs() > deadlineMs && samples.length >= fewestRounds) break;
      }
    } catch (error) {
      if (!(error instanceof StuckError)) throw error;
      findings.judge('back', error.message);
    }
    findings.judge('memory', judgeMemory(samples, memoryBoundBytes));
    await end(cast, arena, auditor);
    await judgeResources(resources, auditor, findings);
    await auditor.client.close();
    const made = players.reduce((sum, { calls }) => sum + calls.made, 0);
    say(`\n${samples.length} rounds, ${made} calls, ${count(players)} sessions expired`);
  } finally {
    arena.gate.end();
    stalls.stop();
    await Promise.all(players.flatMap(({ proxies }) => proxies.map((proxy) => proxy.close())));
    await ensemble.close();
    findings.judge('quiet', undefined);
    stopListening();
  }
}

/** One round: load and faults; then everybody is back, stands still, and what is there is judged. */
async function play(
  round: Round,
  cast: readonly Cast[],
  arena: Arena,
  auditor: Auditor,
  trees: { readonly watched: WatchedTree; readonly mirrored: WatchedTree },
): Promise<void> {
  const { gate, findings, log } = arena;
  const players = cast.map(({ player }) => player);
  log(`round ${round.number}`);
  gate.open();
  // Faults begin when calls have been answered: what was acknowledged last is then known.
  const openedMs = monotonicMs();
  await until(backMs, () => players.every((p) => p.calls.lastAcknowledgedMs > openedMs));
  await strikeAll(round, players, arena);
  for (const player of players) {
    const healedMs = monotonicMs();
    const ready = () => player.client.state === 'connected';
    const isBack = await until(backMs, ready);
    const problem = `${player.name} is ${player.client.state} after ${Math.round(monotonicMs() - healedMs)} ms`;
    // The bound is for a process that runs.
    const excused = !isBack && (await until(arena.stalls.ms(healedMs, monotonicMs()), ready));
    findings.judge('back', isBack || excused ? undefined : problem);
  }
  gate.shut();
  const still = await until(4 * arena.timeoutMs, () => gate.still);
  findings.judge('settles', still ? undefined : 'somebody is still at work after four timeouts');

  await auditor.sync();
  const truth = { watched: await trees.watched.truth(), mirrored: await trees.mirrored.truth() };
  const { children, stat } = await auditor.insist(() =>
    auditor.client.getChildren(trees.watched.root),
  );
  await Promise.all(
    cast.map(async ({ player, registers, nodes, watching }) => {
      const known = player.index === 0 ? truth.watched : truth.mirrored;
      const names = { names: children.length, pzxid: stat.pzxid };
      await watching.inspect({ watched: truth.watched, mirrored: known }, names);
      await registers.inspect(auditor);
      await nodes.inspect(auditor);
    }),
  );
  for (const { client, calls, name } of players) {
    await until(arena.timeoutMs, () => client.counters.outstanding === calls.outstanding);
    const idle = await until(2 * arena.timeoutMs, () => client.counters.outstanding === 0);
    log(`${name} stands still: ${idle}`);
    const problems = judgeCounters(client.counters);
    findings.judge(
      'counters',
      problems.map((problem) => `${name}: ${problem}`),
    );
  }
}

/** A last call works, nothing of an ended session is there, and closing leaves nothing. */
async function end(cast: readonly Cast[], arena: Arena, auditor: Auditor): Promise<void> {
  const { findings, gate } = arena;
  for (const { player, nodes } of cast) {
    const last = await player.calls.call({
      what: 'last get',
      boundMs: arena.timeoutMs,
      ordered: true,
      start: () => player.client.get(player.base),
    });
    const failure = last.ok ? undefined : `${player.name}: ${describe(last.error)}`;
    findings.judge('back', failure);
    let orphans: string[] = [];
    await until(5 * arena.timeoutMs, async () => {
      orphans = await nodes.orphans(auditor);
      return orphans.length === 0;
    });
    findings.judge(
      'owner',
      orphans.map((orphan) => `${player.name}: ${orphan}, which is over, is still there`),
    );
  }
  gate.end();
  for (const { player, watching } of cast) {
    const stopped = await watching.stop();
    const what = `${player.name}: a watch or an iteration goes on after its end`;
    findings.judge('settles', stopped ? undefined : what);
    const { counters } = player.client;
    const watches = `${player.name}: ${counters.watches} watches are left when all are cancelled`;
    findings.judge('counters', counters.watches === 0 ? undefined : watches);
    await player.close();
    const problems = judgeCounters(player.client.counters);
    findings.judge(
      'counters',
      problems.map((problem) => `${player.name} (closed): ${problem}`),
    );
  }
}

/**
 * The resources that are always there. Timers of pauses come and go, and one more would hide one
 * left behind.
 */
async function lastingResources(): Promise<readonly string[]> {
  let least = process.getActiveResourcesInfo();
  for (let looks = 0; looks < 50; looks += 1) {
    await pause(10);
    const now = process.getActiveResourcesInfo();
    if (now.length < least.length) least = now;
  }
  return least;
}

async function judgeResources(
  before: readonly string[],
  auditor: Auditor,
  findings: Findings,
): Promise<void> {
  await auditor.sync();
  const left = () => leftBehind(before, process.getActiveResourcesInfo());
  await until(10_000, () => left().length === 0);
  findings.judge('handles', left());
}

function listenForTrouble(findings: Findings): () => void {
  const listeners = {
    unhandledRejection: (reason: unknown) => findings.judge('quiet', `rejected: ${stack(reason)}`),
    uncaughtException: (error: unknown) => findings.judge('quiet', `thrown: ${stack(error)}`),
    warning: (warning: unknown) => findings.judge('quiet', `warning: ${stack(warning)}`),
  };
  for (const [name, listener] of Object.entries(listeners)) process.on(name, listener);
  return () => {
    for (const [name, listener] of Object.entries(listeners)) process.off(name, listener);
  };
}

function stack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Also without the flag on the command line. */
function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return () => {
    collect();
    collect();
  };
}

function report(round: Round, players: readonly Player[], tookMs: number, heap: number): string {
  const faults = [
    ...(round.server === undefined ? [] : [`${round.server.fault} ${show(round.server.forMs)}`]),
    ...round.clients.map(({ client, fault, forMs }) => `c${client} ${fault} ${show(forMs)}`),
  ];
  const figures = `${show(tookMs)}, ${count(players)} expired, heap ${(heap / 2 ** 20).toFixed(2)} MiB`;
  return `${String(round.number).padStart(4)}  ${faults.join(' + ').padEnd(66)} ${figures}`;
}

function count(players: readonly Player[]): number {
  return players.reduce((sum, { expiries }) => sum + expiries, 0);
}

function show(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
