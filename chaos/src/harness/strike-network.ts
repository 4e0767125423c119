import type { TestProxy } from '@incumbent/zookeeper-testing';
import type { NetworkFault } from '../zookeeper/plan.ts';
import { StuckError } from './stuck.ts';
import { monotonicMs, pause } from './time.ts';

/** The connections between one client and the servers fail for a while, and are healed. */
export async function strikeProxies(
  proxies: readonly TestProxy[],
  fault: NetworkFault,
  { forMs, choice }: { readonly forMs: number; readonly choice: number },
): Promise<void> {
  for (const proxy of proxies) breakProxy(proxy, fault, choice);
  await pause(forMs);
  await Promise.all(proxies.map((proxy) => heal(proxy)));
}

function breakProxy(proxy: TestProxy, fault: NetworkFault, choice: number): void {
  if (fault === 'cut') proxy.cut();
  else if (fault === 'drop replies') proxy.dropReplies();
  else if (fault === 'half a frame') proxy.cutAfterBytes(1 + Math.floor(choice * 300));
  else if (fault === 'refuse') proxy.refuse();
  else proxy.silence();
}

/** Another process may have the port of a proxy that refused, for a moment. */
async function heal(proxy: TestProxy): Promise<void> {
  const endMs = monotonicMs() + 30_000;
  for (;;) {
    try {
      return await proxy.pass();
    } catch (error) {
      if (monotonicMs() > endMs) throw new StuckError(`a proxy's port is taken: ${error}`);
      await pause(100);
    }
  }
}
