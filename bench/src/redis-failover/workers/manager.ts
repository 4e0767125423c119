import { NodeManager } from '@incumbent/redis-failover';
import { serve } from '../../calls/serve.ts';
import { monotonicMs } from '../../clock.ts';
import type { ManagerMethods, Told } from '../messages.ts';

let told: Told[] = [];

function tell(what: string, node: string | null): void {
  told.push({ what, node, atMs: monotonicMs() });
}

serve<ManagerMethods>({
  open({ id, zookeeper, root, nodes }) {
    const manager = new NodeManager(
      {
        ...{ id, zookeeper, root, nodes },
        onEvent(event) {
          if (event.type === 'judged') tell(event.state, event.node);
          if (event.type === 'elected') tell('elected', null);
        },
      },
      { onStep: (step) => tell(step, null) },
    );
    // It ends with this process.
    manager.run(new AbortController().signal).catch((error: Error) => {
      process.stderr.write(`${error.stack}\n`);
      process.exit(1);
    });
    return null;
  },
  told() {
    const answer = told;
    told = [];
    return { told: answer };
  },
});
