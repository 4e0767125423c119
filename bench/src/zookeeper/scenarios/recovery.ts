import { jitter, monotonicMs, sleep } from '../../clock.ts';
import { FaultProxy } from '../fault-proxy.ts';
import type { CandidateName } from '../messages.ts';
import type { Client, Scenario, Stage } from '../scenario.ts';
import { candidatesOf, smallNode, startClient } from '../scenario.ts';

/** It has to last through ten seconds of resets. */
const longTimeoutMs = 30_000;
/** The native client waits for a share of it before it tries again. */
const shortTimeoutMs = 4_000;
const watchedParent = '/watched-small';
const maxWatches = 1_000;
/** A connection that lived for a moment only may count as a failed attempt. */
const settleMs = 1_200;

/** The connection is cut and nothing more: how long until everything is as it was. */
export function reconnect(stage: Stage): Scenario {
  const { results } = stage;
  const names: readonly CandidateName[] = ['ours', 'NZC', 'kazoo', 'raw'];
  const cuts = 2;
  const setUp = { watches: 100, auth: true, sessionTimeoutMs: longTimeoutMs };
  return {
    name: 'reconnect',
    about: 'reconnects',
    prepare: () => prepareWatched(stage),
    async round(round) {
      // One after the other: these times are short.
      for (const name of candidatesOf(stage, names, round)) {
        await behindProxy(stage, 'reconnect', name, setUp, async (client, proxy) => {
          await client.call('probe', { path: smallNode });
          for (let cut = 0; cut < cuts; cut += 1) {
            await sleep(settleMs + jitter(20));
            const cutAtMs = monotonicMs();
            proxy.cut({ refuse: 'nothing' });
            while (proxy.acceptedAtMs < cutAtMs) await sleep(2);
            const { acceptedAtMs } = proxy;
            const { atMs } = await client.call('successAfter', { ms: acceptedAtMs });
            const moment = round * cuts + cut;
            results.add('handshakeP50', name, moment, (atMs - proxy.acceptedAtMs) * 1e3);
            results.add('reconnectP50', name, moment, atMs - cutAtMs);
          }
        });
      }
    },
  };
}

/** The port is closed for a second: how long after its return does a get succeed. */
export function outage(stage: Stage): Scenario {
  const { results } = stage;
  const names: readonly CandidateName[] = ['ours', 'NZC', 'native', 'kazoo'];
  const cuts = 2;
  const setUp = { watches: 0, auth: false, sessionTimeoutMs: shortTimeoutMs };
  const outageMs = 1_000;
  return {
    name: 'outage',
    about: 'outages of a second',
    async round(round) {
      // Nearly all of it is waiting.
      await Promise.all(
        candidatesOf(stage, names, round).map((name) =>
          behindProxy(stage, 'outage', name, setUp, async (client, proxy) => {
            await client.call('probe', { path: smallNode });
            for (let cut = 0; cut < cuts; cut += 1) {
              await sleep(settleMs + jitter(500));
              proxy.cut({ refuse: 'by closing the port' });
              await sleep(outageMs);
              await proxy.serve();
              const servedAtMs = monotonicMs();
              const { atMs } = await client.call('successAfter', { ms: servedAtMs });
              results.add('outageP50', name, round * cuts + cut, atMs - servedAtMs);
            }
          }),
        ),
      );
    },
  };
}

/** Each connection is taken and reset at once, for ten seconds. */
export function refusal(stage: Stage): Scenario {
  const { results } = stage;
  const names: readonly CandidateName[] = ['ours', 'NZC', 'native', 'kazoo'];
  const refusedMs = 10_000;
  const setUp = { watches: maxWatches, auth: false, sessionTimeoutMs: longTimeoutMs };
  return {
    name: 'refusal',
    about: 'ten seconds of resets',
    prepare: () => prepareWatched(stage),
    async round(round) {
      await Promise.all(
        candidatesOf(stage, names, round).map((name) =>
          behindProxy(stage, 'refusal', name, setUp, async (client, proxy) => {
            await sleep(settleMs + jitter(500));
            const before = await client.call('cpu', {});
            const acceptedBefore = proxy.accepted;
            proxy.cut({ refuse: 'by a reset' });
            await sleep(refusedMs);
            results.add('refusedAttempts', name, round, proxy.accepted - acceptedBefore);
            const { us } = await client.call('cpu', {});
            results.add('refusedCpu', name, round, (us - before.us) / 1e3);
          }),
        ),
      );
    },
  };
}

/** Both benchmarks that watch these nodes may be chosen, or one. */
const prepared = new WeakSet<Stage>();
async function prepareWatched(stage: Stage): Promise<void> {
  if (prepared.has(stage)) return;
  prepared.add(stage);
  await stage.admin.createNumbered(watchedParent, maxWatches);
}

async function behindProxy(
  stage: Stage,
  benchmark: string,
  name: CandidateName,
  setUp: { readonly watches: number; readonly auth: boolean; readonly sessionTimeoutMs: number },
  measure: (client: Client, proxy: FaultProxy) => Promise<void>,
): Promise<void> {
  const { watches, auth, sessionTimeoutMs } = setUp;
  const proxy = new FaultProxy(stage.serverPort);
  const client = startClient(stage, name);
  try {
    await proxy.serve();
    await client.call('connect', { port: proxy.port, sessionTimeoutMs, auth });
    if (watches > 0) {
      await client.call('watchAll', { parent: watchedParent, count: watches });
    }
    await measure(client, proxy);
  } catch (error) {
    stage.failed(benchmark, name, error);
  } finally {
    await client.kill();
    proxy.close();
  }
}
