/** A node manager that stops where it is told to. Its argument is a `ManagerPlan`. */
import process from 'node:process';
import { NodeManager } from '@incumbent/redis-failover';
import { Teller } from '../tell.ts';
import type { ManagerOrder, ManagerPlan, ManagerTells } from './messages.ts';
import type { ManagerStep } from './plan.ts';

const plan = JSON.parse(process.argv[2] ?? '') as ManagerPlan;
const { timing } = plan;
const stop = new AbortController();
let armed: ManagerStep | undefined;
let goOn = (): void => {};

const teller = new Teller<ManagerTells, ManagerOrder>((order) => {
  switch (order.order) {
    case 'arm':
      armed = order.step;
      return;
    case 'go':
      armed = undefined;
      goOn();
      return;
    case 'stop':
      armed = undefined;
      goOn();
      stop.abort();
      return;
    default:
      return order satisfies never;
  }
});
const tell = (told: ManagerTells): void => void teller.tell(told);

async function waitAt(step: ManagerStep): Promise<void> {
  if (step !== armed) return;
  armed = undefined;
  await new Promise<void>((resolve) => {
    goOn = resolve;
    tell({ say: 'at', step });
  });
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
  if (!stop.signal.aborted) tell({ say: 'trouble', text: 'managers stay: one ended unasked' });
} catch (error) {
  tell({ say: 'trouble', text: `managers stay: ${String(error)}` });
}
teller.closed();
await teller.tell({ say: 'closed' });
