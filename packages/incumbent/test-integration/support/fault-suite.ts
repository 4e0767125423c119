import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createElection } from '../../src/core/election.ts';
import { faultScenarios, runFaultScenario, scenarioTimeoutMs } from './fault-scenarios.ts';
import type { FaultStand } from './fault-trial.ts';

/** A server of one's own, and how its clients are made. */
export interface FaultSuite {
  /** For people: `elections on <title>`. */
  readonly title: string;
  /** Why there is no such server. In CI that is a failure. */
  readonly missing: string | undefined;
  start(): Promise<FaultStand & { close(): Promise<unknown> }>;
}

/** All scenarios at once, on one server: elections mostly wait. */
export function describeFaults({ title, missing, start }: FaultSuite): void {
  if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);
  describe.skipIf(missing !== undefined)(`elections on ${title}, when the network fails`, () => {
    let stand: Awaited<ReturnType<FaultSuite['start']>>;

    beforeAll(async () => {
      stand = await start();
      // Things that a store does once, such as loading a script, must not be struck.
      const { backend, proxy, close } = await stand.connect();
      const election = createElection({ name: `first-${randomUUID()}`, backend, ...stand.timing });
      while (!(await succeeds(() => election.init())));
      await election.lead(() => {});
      await election.close();
      await close();
      await proxy.close();
    });
    afterAll(async () => stand?.close());

    for (const scenario of faultScenarios) {
      test.concurrent(
        scenario.name,
        async ({ expect }) => {
          expect(await runFaultScenario(scenario, stand, `faults-${randomUUID()}`)).toEqual([]);
        },
        scenarioTimeoutMs,
      );
    }
  });
}

/** On a machine that is busy it may take another attempt. */
function succeeds(ask: () => Promise<unknown>): Promise<boolean> {
  return ask().then(
    () => true,
    () => false,
  );
}
