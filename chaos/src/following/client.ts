/**
 * A client that calls the leader in several ways at once, each call as soon as the one before it was
 * answered. Its argument is a `ClientPlan`.
 */
import process from 'node:process';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { Teller } from '../harness/tell.ts';
import { deafAfterFirst } from './broken.ts';
import { callEndlessly } from './loop.ts';
import type { ClientOrder, ClientPlan, ClientTells } from './messages.ts';
import { resources, resourcesAtStart, settledResources } from './resources.ts';
import type { Caller } from './ways/way.ts';

const plan = JSON.parse(process.argv[2] ?? '') as ClientPlan;
const { broken, callMs, entries, transports } = plan;
const stop = new AbortController();
const teller = new Teller<ClientTells, ClientOrder>((order) => void obey(order));
// The pipe to the parent is open from the start, and at the end.
const before = resourcesAtStart();

const own = createElection({
  name: plan.election,
  backend: file(plan.directory),
  lease: plan.leaseMs,
});
const election = broken === 'deaf-clients' ? deafAfterFirst(own) : own;
const caller: Caller = { election, callMs, entries };
const ways = [
  ...(transports.includes('grpc') ? (await import('./ways/grpc.ts')).openGrpcWays(caller) : []),
  ...(transports.includes('http') ? (await import('./ways/http.ts')).openHttpWays(caller) : []),
];
const loops = ways.map((way) =>
  callEndlessly(way, plan.name, (told) => teller.tell(told), stop.signal),
);
await teller.tell({
  say: 'calling',
  before,
  ways: ways.map(({ name, connectsTo }) => ({ name, connectsTo })),
});

async function obey(order: ClientOrder): Promise<void> {
  switch (order) {
    case 'resources':
      await teller.tell({ say: 'resources', resources: resources() });
      return;
    case 'stop': {
      stop.abort();
      const served = (await Promise.all(loops)).flat();
      await teller.tell({ say: 'served', served });
      return;
    }
    case 'close':
      return close();
    default:
      return order satisfies never;
  }
}

async function close(): Promise<void> {
  if (broken !== 'keeps-open') {
    for (const way of ways) await way.close();
    await own.close();
  }
  const left = await settledResources(before);
  teller.closed();
  await teller.tell({ say: 'closed', resources: left });
}
