/** A node manager that stops where it is told to. Its argument is a `ManagerPlan`. */
import process from 'node:process';
import { NodeManager } from '@incumbent/redis-failover';
import { Teller } from '../harness/tell.ts';
import type { ManagerOrder, ManagerPlan, ManagerTells } from './messages.ts';
import type { ManagerStep } from './plan.ts';

const plan = JSON.parse(process.argv[2] ?? '') as ManagerPlan;
const { timing } = plan;
const stop = new AbortController();
/** By their keys. */
const armed = new Map<string, { readonly step: ManagerStep; goOn: () => void }>();

const teller = new Teller<ManagerTells, ManagerOrder>((order) => {
  switch (order.order) {
    case 'arm':
      armed.set(order.key, { step: order.step, goOn: () => {} });
      return;
    case 'go':
      release(order.key);
      return;
    case 'stop':
      for (const key of armed.keys()) release(key);
      stop.abort();
      return;
    default:
      return order satisfies never;
  }
});
const tell = (told: ManagerTells): void => void teller.tell(told);

function release(key: string): void {
  const stopped = armed.get(key);
  armed.delete(key);
  stopped?.goOn();
}

async function waitAt(step: ManagerStep): Promise<void> {
  const stops = [...armed].filter(([, each]) => each.step === step);
  await Promise.all(
    stops.map(
      ([key, stopped]) =>
        new Promise<void>((resolve) => {
          stopped.goOn = resolve;
          tell({ say: 'at', key });
        }),
    ),
  );
}

const manager = new NodeManager(
  {
    id: plan.id,
    nodes: plan.nodes,
    zookeeper: plan.zookeeper,
    root: plan.root,
    nodeStrategy: plan.strategy,
    maxFailures: timing.maxFailures,
    checkEvery: timing.checkEveryMs,
    nodeTimeout: timing.nodeTimeoutMs,
    sessionTimeout: timing.sessionMs,
    clientView: timing.viewMs,
    onEvent(event) {
      const note = JSON.stringify(event, (_key, value: unknown) => {
        if (typeof value === 'bigint') return String(value);
        return value instanceof Error ? `${value.name}: ${value.message}` : value;
      });
      tell({ say: 'note', text: note });
      if (event.type === 'started') tell({ say: 'started' });
      if (event.type === 'elected') tell({ say: 'elected', token: String(event.token) });
      if (event.type === 'ousted') tell({ say: 'ousted', token: String(event.token) });
      if (event.type === 'judged') {
        tell({ say: 'judged', node: event.node, isUp: event.state === 'available' });
      }
      if (event.type === 'moved') tell({ say: 'moved', to: event.to, term: event.term });
    },
  },
  {
    onStep: waitAt,
    reach: (address) => plan.reach[address] ?? address,
    broken: plan.broken,
  },
);

try {
  await manager.run(stop.signal);
} catch (error) {
  await teller.tell({ say: 'trouble', text: `managers stay: ${String(error)}` });
  // Another one is started in its place.
  process.exit(1);
}
teller.closed();
await teller.tell({ say: 'closed' });
