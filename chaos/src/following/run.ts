import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FencedLog, waitUntil } from '@incumbent/cli/trial';
import type { Timing } from 'incumbent';
import { createElection, resolveTiming } from 'incumbent';
import { file } from 'incumbent/file';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs, pause, Stalls } from '../harness/time.ts';
import { httpOrigin } from './addresses.ts';
import { followBoundMs, machineMs, takeoverBoundMs } from './bound.ts';
import { Clients } from './clients.ts';
import type { Finding, Played, Window } from './judge.ts';
import {
  failedOutside,
  lateCalls,
  lateTakeovers,
  neverServed,
  seconds,
  servedOutside,
  windowsOf,
} from './judge.ts';
import type { Failure, Ground, Served } from './messages.ts';
import type { Change } from './plan.ts';
import { planChanges } from './plan.ts';
import type { Leading } from './services.ts';
import { Services } from './services.ts';
import type { Settings } from './settings.ts';
import type { ToldTerm } from './terms.ts';
import { readTerms } from './terms.ts';

const serviceIds = ['a', 'b', 'c'] as const;
const clientNames = ['client-1', 'client-2'] as const;
const leaseMs = 2_000;
const stopTimeoutMs = 1_000;
const operatorLeaseMs = 60_000;
/** In which all calls succeed. */
const calmMs = 400;
/** A machine that stood still for so much of a call may not have answered it in time. */
const stalledPart = 0.25;
/** Before that nobody gives up waiting. */
const soonMs = 500;
/** How often gRPC closes connections that nobody uses, with those of calls that run out of time. */
const sweepMs = 10_000 + leaseMs;
/** At once; all are told at the end. */
const mostSaid = 5;
/** An event that is so late will not come. */
const stuckMs = 60_000;

export interface Outcome {
  readonly timing: Timing;
  readonly followMs: number;
  readonly changes: readonly Change[];
  readonly played: readonly Played[];
  readonly terms: readonly ToldTerm[];
  readonly windows: readonly Window[];
  /** Changes that nobody brought about. */
  readonly byChance: number;
  readonly calls: number;
  readonly failures: readonly Failure[];
  readonly served: readonly Served[];
  readonly findings: readonly Finding[];
}

/** Plays all changes, and judges what was logged and told. */
export async function runChaos(
  settings: Settings,
  directory: string,
  say: (line: string) => void,
): Promise<Outcome> {
  const { broken, transports } = settings;
  const timing = resolveTiming({ lease: leaseMs, stopTimeout: stopTimeoutMs });
  const changes = planChanges(settings.changes, settings.seed, timing);
  const ground: Ground = {
    election: 'billing',
    directory: join(directory, 'store'),
    ...{ leaseMs, stopTimeoutMs, transports },
    ...(broken && { broken }),
  };
  const log = new FencedLog(join(directory, 'fenced.log'));
  const termsFile = join(directory, 'terms.jsonl');
  writeFileSync(termsFile, '');
  const stalls = new Stalls(Number.POSITIVE_INFINITY);
  const findings: Finding[] = [];
  const find = (what: string): void => {
    findings.push({ atMs: monotonicMs(), what });
    if (findings.length <= mostSaid) say(`  FAILED ${what}`);
  };
  const services = new Services(ground, { log: log.path, terms: termsFile }, find);
  const clients = new Clients(find);
  const operator = createElection({
    name: ground.election,
    backend: file(ground.directory),
    // It holds no seat. So its requests may take as long as a machine that stands still needs.
    lease: operatorLeaseMs,
  });
  const played: Played[] = [];
  let served: readonly Served[] = [];
  let endMs = 0;
  const follow = (fromMs: number): number => {
    const boundMs = followBoundMs(timing);
    return boundMs + stalls.ms(fromMs, fromMs + boundMs);
  };
  try {
    await services.start(serviceIds);
    await newLeader(services, 0n);
    await clients.start(clientNames, ground, {
      entries: services.httpPorts.map(httpOrigin),
      callMs: leaseMs,
    });
    for (const change of changes) {
      played.push(await play(change));
      if (change.calm) for (const what of await clients.tooManySockets(mostSockets())) find(what);
    }
    const last = services.leading?.atMs ?? 0;
    await pause(Math.max(0, last + follow(last) + calmMs - monotonicMs()));
    endMs = monotonicMs();
    served = await clients.stop();
    for (const what of await clients.end()) find(what);
    for (const what of await services.end()) find(what);
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
    find(error.message);
  }
  await operator.close();
  log.close();
  stalls.stop();

  function mostSockets(): { readonly services: number; readonly terms: number } {
    // The one before those may still have been in use then.
    const sinceMs = monotonicMs() - sweepMs;
    return { services: serviceIds.length, terms: 1 + services.termsSince(sinceMs) };
  }

  /** Strikes the leader; resolves when another one leads, the struck one is back, and all is calm. */
  async function play(change: Change): Promise<Played> {
    const { fault, calm } = change;
    const struck = services.leading;
    if (struck === undefined) throw new StuckError('nobody leads');
    const wasServed = () => (log.judge.newest?.token ?? 0n) >= struck.token;
    await waitUntil(wasServed, followBoundMs(timing));
    await pause(change.afterMs);
    const failedBefore = clients.failures.length;
    const atMs = monotonicMs();
    const back = services.strike(change, struck.id);
    // Whatever becomes of it is waited for below.
    back.catch(() => {});
    if (fault === 'vacate') await operator.vacate();
    const next = await newLeader(services, struck.token);
    await back;
    if (calm) await pause(Math.max(0, next.atMs + follow(next.atMs) + calmMs - monotonicMs()));
    const failed = clients.failures.slice(failedBefore);
    say(progress(change, changes.length, struck, next, atMs, failed));
    return { fault, calm, atMs, struck: struck.token, next: next.token, beginsMs: next.atMs };
  }

  const terms = readTerms(readFileSync(termsFile, 'utf8'));
  const windows = windowsOf(terms, played, follow);
  const { failures } = clients;
  /** Not: it ran out of time while the machine stood still. */
  const hadTime = ({ startMs, endMs }: Failure): boolean =>
    endMs - startMs < soonMs || stalls.ms(startMs, endMs) < stalledPart * (endMs - startMs);
  const callers = clients.ways.map(({ callsFromMs, ...who }) => ({
    ...who,
    dueMs: callsFromMs + follow(callsFromMs),
  }));
  const judged: Finding[] = [
    ...log.judge.violations().map(({ guarantee, message }) => ({
      atMs: Number.POSITIVE_INFINITY,
      what: `${guarantee}: ${message}`,
    })),
    ...servedOutside(log.judge.terms, terms),
    ...failedOutside(failures.filter(hadTime), windows),
    ...lateTakeovers(played, (fault, atMs) => {
      const boundMs = takeoverBoundMs(fault, timing);
      return boundMs + stalls.ms(atMs, atMs + boundMs);
    }),
    ...lateCalls(failures, (startMs) => {
      const mostMs = leaseMs + machineMs;
      return mostMs + stalls.ms(startMs, startMs + mostMs);
    }),
    ...(endMs === 0 ? [] : neverServed(served, callers, windows, endMs)),
  ];
  return {
    timing,
    followMs: followBoundMs(timing),
    ...{ changes, played, terms, windows, failures, served },
    byChance: windows.filter(({ isStruck }) => !isStruck).length - 1,
    calls: log.judge.effects,
    findings: [...findings, ...judged],
  };
}

async function newLeader(services: Services, above: bigint): Promise<Leading> {
  const leader = await waitUntil(() => {
    const { leading } = services;
    return leading !== undefined && leading.token > above && leading;
  }, stuckMs);
  if (leader === undefined) throw new StuckError(`take-over: nobody leads after term ${above}`);
  return leader;
}

function progress(
  { number, fault, freezeMs }: Change,
  count: number,
  struck: Leading,
  next: Leading,
  atMs: number,
  failed: readonly Failure[],
): string {
  const what = fault === 'freeze' ? `freeze ${(freezeMs / 1000).toFixed(1)} s` : fault;
  const lastMs = Math.max(...failed.map(({ endMs }) => endMs - next.atMs));
  const how = failed.length === 0 ? 'no call failed' : `${failed.length} calls failed`;
  const until =
    failed.length === 0
      ? ''
      : `, the last ${seconds(Math.abs(lastMs))} ${lastMs < 0 ? 'before' : 'after'} that`;
  return (
    `${String(number).padStart(String(count).length)}/${count}  ${what.padEnd(13)} ` +
    `${struck.id} (term ${struck.token}) -> ${next.id} (term ${next.token}) after ` +
    `${seconds(next.atMs - atMs)}; ${how}${until}`
  );
}
