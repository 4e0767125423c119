// When a connection is given up: after the data in its socket were read.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Tally } from '../src/counters.ts';
import { Heartbeat } from '../src/session/heartbeat.ts';
import { Pipeline } from '../src/session/pipeline.ts';
import { firstSessionAt } from '../src/session/session-machine.ts';
import { SessionRunner } from '../src/session/session-runner.ts';
import { sessionTiming } from '../src/session/timing.ts';
import { TestClock } from './hostile-reading/clock.ts';

const attemptMs = 1_000;
const limits = {
  ...{ maxQueuedRequests: 10, maxQueuedBytes: 10_000, maxInFlight: 4 },
  ...{ maxRequestBytes: 1_000, requestTimeoutMs: 60_000 },
};

function setup() {
  const clock = new TestClock();
  const machine = new SessionRunner(firstSessionAt('none'), false, {
    carryOut: () => {},
    acted: () => {},
  });
  const pipeline = new Pipeline({ ...limits, clock }, new Tally(), () => {});
  const givenUp: string[] = [];
  const heartbeat = new Heartbeat(clock, pipeline, sessionTiming(9_000), {
    machine,
    hasSession: false,
    hasConnection: true,
    ping: () => {},
    giveUp: (why) => givenUp.push(why),
    expire: () => {},
  });
  const begin = () => {
    machine.happen({ on: 'opening' });
    heartbeat.beginAttempt(clock.monotonicMs() + attemptMs);
  };
  const end = () => {
    heartbeat.endConnection();
    machine.happen({ on: 'disconnected', error: new Error('gone') });
  };
  return { clock, givenUp, begin, end };
}

it('an attempt that takes too long is given up in the next turn of the event loop', async () => {
  const { clock, givenUp, begin } = setup();
  begin();
  clock.stall(attemptMs);
  clock.runDueAtOnce();
  expect(givenUp).toEqual([]);
  await nextTurn();
  expect(givenUp).toEqual(['the server said nothing for the time of one attempt']);
});

it('a check of an attempt that has ended gives up no later attempt', async () => {
  const { clock, givenUp, begin, end } = setup();
  begin();
  clock.stall(attemptMs);
  clock.runDueAtOnce();
  end();
  begin();
  // The process is suspended again. The second attempt is overdue, and its socket was never read.
  clock.stall(attemptMs);
  await nextTurn();
  expect(givenUp).toEqual([]);
  clock.runDueAtOnce();
  await nextTurn();
  expect(givenUp).toHaveLength(1);
});

it('a check of an attempt that has ended finds nothing to give up before the next one', async () => {
  const { clock, givenUp, begin, end } = setup();
  begin();
  clock.stall(attemptMs);
  clock.runDueAtOnce();
  end();
  await nextTurn();
  expect(givenUp).toEqual([]);
});
