/**
 * A service that serves while it leads, over gRPC and HTTP. Its argument is a `ServicePlan`. Each call
 * that it serves is a line of the fenced log, with the token under which it was served.
 */
import { once } from 'node:events';
import { closeSync, openSync, writeSync } from 'node:fs';
import process from 'node:process';
import { formatEffect } from '@incumbent/cli/trial';
import type { Instant, Term } from 'incumbent';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { Teller } from '../harness/tell.ts';
import { monotonicMs } from '../harness/time.ts';
import { addressesOf } from './addresses.ts';
import { trustingSignal } from './broken.ts';
import type { Answer } from './calls.ts';
import type { ServiceOrder, ServicePlan, ServiceTells, TermLine } from './messages.ts';
import { resources, resourcesAtStart, settledResources } from './resources.ts';
import type { Server, Service } from './servers/server.ts';

const gatherMs = 20;
/** Nobody calls: then it is frozen all the same. */
const longestIdleMs = 100;

const plan = JSON.parse(process.argv[2] ?? '') as ServicePlan;
const { id, broken, transports } = plan;
const { pid } = process;
const log = openSync(plan.log, 'a');
const terms = openSync(plan.terms, 'a');
const withdraw = new AbortController();
/** The last one that we led, also when it is over: whether it is must be asked before `serve`. */
let term: Term | undefined;
let servedToken: bigint | undefined;
let afterServing = (): void => {};
/** Of the seat, which is believed in from when it was won, a little before there is a term. */
let untilMs = 0;
let led: { readonly token: string; readonly candidate: string } | undefined;

const teller = new Teller<ServiceTells, ServiceOrder>((order) => void obey(order));
// The pipe to the parent is open from the start, and at the end.
const before = resourcesAtStart();

async function obey(order: ServiceOrder): Promise<void> {
  switch (order) {
    case 'resign':
      term?.resign();
      return;
    case 'freeze':
      await teller.tell({ say: 'freezing' });
      setImmediate(freeze);
      return;
    case 'resources':
      await teller.tell({ say: 'resources', resources: resources() });
      return;
    case 'close':
      return close();
    default:
      return order satisfies never;
  }
}

/**
 * Right behind the effect of a call, with others in hand that were read and not yet looked at. A
 * leader that is frozen between its check and its effect was told the truth. No check helps against
 * that; tokens do.
 */
function freeze(): void {
  const stop = () => {
    clearTimeout(idle);
    afterServing = () => {};
    process.kill(pid, 'SIGSTOP');
  };
  const idle = setTimeout(stop, longestIdleMs);
  // Meanwhile calls arrive: they are all read at once.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, gatherMs);
  afterServing = stop;
}

function serve(): Omit<Answer, 'number'> {
  const atNs = process.hrtime.bigint();
  const token = term?.token ?? 0n;
  const kind = servedToken === token ? 'beat' : 'start';
  writeSync(log, formatEffect({ token, candidate: id, group: pid, pid, atNs, kind }));
  servedToken = token;
  afterServing();
  return { token: String(token), by: id };
}

function note(line: TermLine): void {
  writeSync(terms, `${JSON.stringify(line)}\n`);
}

function believe(deadline: Instant | undefined): void {
  if (deadline !== undefined) {
    untilMs = deadline.monotonicMs;
    if (led !== undefined) note({ ...led, untilMs });
  } else if (led !== undefined) {
    note({ ...led, overMs: monotonicMs() });
    led = undefined;
  }
}

async function lead(won: Term): Promise<void> {
  const atMs = monotonicMs();
  led = { token: String(won.token), candidate: id };
  note({ ...led, beginsMs: atMs });
  note({ ...led, untilMs });
  term = broken === 'trusts-signal' ? trustingSignal(won) : won;
  void teller.tell({ say: 'leading', token: led.token, atMs });
  if (!won.signal.aborted) await once(won.signal, 'abort');
}

const election = createElection({
  name: plan.election,
  backend: file(plan.directory),
  lease: plan.leaseMs,
  stopTimeout: plan.stopTimeoutMs,
});
const service: Service = {
  election,
  term: () => term,
  serve,
  checks: broken !== 'no-check',
};
const servers: Server[] = [];
for (const transport of transports) {
  const server =
    transport === 'grpc'
      ? await (await import('./servers/grpc.ts')).serveGrpc(service, plan.grpcPort)
      : await (await import('./servers/http.ts')).serveHttp(service, plan.httpPort);
  servers.push(server);
}
const candidacy = election
  .lead(lead, {
    candidate: { id, addresses: addressesOf(plan.grpcPort, plan.httpPort) },
    signal: withdraw.signal,
    onBelief: believe,
  })
  .catch((error: unknown) => {
    if (withdraw.signal.aborted) return;
    void teller.tell({
      say: 'trouble',
      text: `candidates stay: a campaign ended: ${String(error)}`,
    });
  });
await teller.tell({
  say: 'ready',
  before,
  resources: resources(),
});

async function close(): Promise<void> {
  withdraw.abort();
  await candidacy;
  await Promise.all(servers.map((server) => server.close()));
  await election.close();
  closeSync(log);
  closeSync(terms);
  const left = await settledResources(before);
  teller.closed();
  await teller.tell({ say: 'closed', resources: left });
}
