/**
 * Every ambiguous outcome of a store's operations, provoked by a network that fails. It works for
 * any backend whose connections can be led through a proxy. In each scenario, always:
 *
 * - no two believe at the same time, and none for longer than H after it has sent its last
 *   confirmation (`BeliefWatch`)
 * - tokens rise
 * - a candidate leads afterwards, and when that one goes, the remaining one does.
 *
 * A machine that is too busy may end a term for want of time. Then nothing was provoked, and it is
 * tried again. Violations are collected all the same.
 */
import assert from 'node:assert/strict';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import type { Term } from '../../src/core/term.ts';
import type { FaultStand, FaultyCandidate } from './fault-trial.ts';
import { reasonOf, Trial, wasTooSlow } from './fault-trial.ts';

export interface FaultScenario {
  readonly name: string;
  run(trial: Trial): Promise<void>;
}

/**
 * Rejects when something that must come does not.
 * @returns the violations
 */
export async function runFaultScenario(
  scenario: FaultScenario,
  stand: FaultStand,
  election: string,
): Promise<readonly string[]> {
  const trial = new Trial(stand, election);
  try {
    await scenario.run(trial);
    return await trial.judge();
  } finally {
    await trial.close();
  }
}

/** How often, and for how long, a busy machine may spoil an attempt. */
const leastTries = 6;
const provokeForMs = 120_000;
/** The further time that a scenario may take. */
export const scenarioTimeoutMs: number = provokeForMs + 120_000;

/** @param act resolves with false when it did not reach its point */
async function provoke(what: string, act: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + provokeForMs;
  for (let tries = 1; !(await act()); tries += 1) {
    const isHopeless = tries >= leastTries && performance.now() > untilMs;
    if (isHopeless) assert.fail(`${what}: not provoked in ${tries} tries`);
  }
}

interface Struck {
  readonly leader: FaultyCandidate;
  readonly term: Term;
  /** How many bytes of replies had been dropped when it was struck. */
  readonly droppedBefore: number;
}

/**
 * The next write of the leader meets `fault`. Resolves when it has.
 * @returns undefined when the term ended before
 */
async function strikeRenewal(
  trial: Trial,
  fault: (proxy: TestProxy, chunk: Uint8Array) => void,
): Promise<Struck | undefined> {
  const { leader } = await trial.leader();
  const { term } = leader;
  if (term === undefined || !(await trial.goesOn(leader, term, 1))) return undefined;
  const droppedBefore = leader.proxy.counters.bytesDropped;
  let isStruck = false;
  leader.onNextWrite((chunk) => {
    isStruck = true;
    fault(leader.proxy, chunk);
  });
  await trial.until('the next renewal', () => isStruck || term.signal.aborted);
  leader.forgetTraps();
  if (isStruck && term.isLeading()) return { leader, term, droppedBefore };
  await leader.heal();
  return undefined;
}

/** The store has answered since `before` was counted, and the answer did not come through. */
function replyLost(trial: Trial, proxy: TestProxy, before: number): Promise<unknown> {
  return trial.until('a reply that is lost', () => proxy.counters.bytesDropped > before);
}

/** A renewal meets a fault that is healed at once: the same term goes on. */
function renewalSurvives(
  name: string,
  fault: (proxy: TestProxy, chunk: Uint8Array) => void,
  heal: (trial: Trial, struck: Struck) => Promise<void>,
): FaultScenario {
  return {
    name,
    async run(trial) {
      await trial.two();
      await provoke(name, async () => {
        const struck = await strikeRenewal(trial, fault);
        if (struck === undefined) return false;
        const { leader, term } = struck;
        await heal(trial, struck);
        if (await trial.goesOn(leader, term)) return true;
        assert.ok(
          wasTooSlow(term),
          `the term ended, though it was nobody else's: ${reasonOf(term)}`,
        );
        return false;
      });
    },
  };
}

/** As long as the client waits for a reply, and a little. */
async function operationTimeout(trial: Trial, { election }: FaultyCandidate): Promise<void> {
  await pause(1.1 * election.timing.operationTimeoutMs);
  trial.watch.look();
}

/** An operator's request on a machine that takes its time. */
async function persist(trial: Trial, ask: () => Promise<unknown>): Promise<void> {
  let isDone = false;
  const tryOn = async () => {
    while (!isDone) {
      isDone = await ask().then(
        () => true,
        () => false,
      );
    }
  };
  void tryOn();
  await trial.until('an operator is answered', () => isDone);
}

/** How long a fault lasts. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const acquire: readonly FaultScenario[] = [
  {
    name: 'acquire: applied, the reply lost with its connection; the attempt is found by its mark',
    async run(trial) {
      const candidate = await trial.candidate();
      candidate.onNextWrite(() => candidate.proxy.dropReplies());
      candidate.campaign();
      await replyLost(trial, candidate.proxy, 0);
      await candidate.heal();
      await trial.leader();
      (await trial.candidate()).campaign();
    },
  },
  {
    name: 'acquire: applied, nobody answers in time; belief counts from the send that was applied',
    async run(trial) {
      let highest = 0n;
      await provoke('a seat that was won by a write without an answer', async () => {
        const candidate = await trial.candidate();
        let first: Term | undefined;
        candidate.onNextTerm((term) => {
          first = term;
          candidate.silence();
        });
        candidate.onNextWrite(() => candidate.proxy.dropReplies());
        candidate.campaign();
        await replyLost(trial, candidate.proxy, 0);
        await operationTimeout(trial, candidate);
        await candidate.proxy.pass();
        const won = await trial.until('it leads', () => first);
        await trial.until('its belief ends', () => !won.isLeading());
        await candidate.heal();
        await candidate.withdraw();
        const isFirst = won.token === highest + 1n;
        highest = won.token;
        // A second attempt would have counted on from the first, which was applied.
        return isFirst || trial.stand.winsInOneWrite === false;
      });
      await trial.two();
    },
  },
  {
    name: 'acquire: it lands after the candidate has given up and gone; its late write leads nothing',
    async run(trial) {
      const gone = await trial.candidate();
      gone.onNextWrite(() => gone.proxy.holdRequests());
      gone.campaign();
      await trial.until('its write is held', () => gone.proxy.counters.bytesHeld > 0);
      await settled(trial, gone.proxy);
      gone.proxy.silence();
      await gone.withdraw();
      gone.proxy.letGo();
      await trial.two();
      await trial.leader();
    },
  },
  {
    name: 'acquire: it lands after another one has won',
    async run(trial) {
      const late = await trial.candidate();
      late.onNextWrite(() => late.proxy.holdRequests());
      late.campaign();
      await trial.until('its write is held', () => late.proxy.counters.bytesHeld > 0);
      const other = await trial.candidate();
      other.campaign();
      const term = await trial.until('the other one leads', () => other.isLeading && other.term);
      late.proxy.letGo();
      assert.ok(
        (await trial.goesOn(other, term, 4)) || wasTooSlow(term),
        'it lost to a late write',
      );
    },
  },
];

const renew: readonly FaultScenario[] = [
  renewalSurvives(
    'renew: applied, the reply lost with its connection; the term goes on',
    (proxy) => proxy.dropReplies(),
    async (trial, { leader, droppedBefore }) => {
      await replyLost(trial, leader.proxy, droppedBefore);
      await leader.heal();
    },
  ),
  renewalSurvives(
    'renew: applied, the reply lost, and the store refuses connections for a while',
    (proxy) => proxy.dropReplies(),
    async (trial, { leader, droppedBefore }) => {
      await replyLost(trial, leader.proxy, droppedBefore);
      leader.proxy.refuse();
      await pause(leader.election.timing.renewEveryMs / 2);
      await leader.heal();
    },
  ),
  renewalSurvives(
    'renew: cut in the middle of the request',
    (proxy, chunk) => proxy.cutAfterBytes(chunk.length >> 1, 'server'),
    async () => {},
  ),
  renewalSurvives(
    'renew: applied, and cut in the middle of the reply',
    (proxy) => proxy.cutAfterBytes(3),
    async () => {},
  ),
  renewalSurvives(
    'renew: all connections reset, again and again',
    (proxy) => proxy.cut(),
    async (_trial, { leader }) => {
      for (let times = 0; times < 4; times += 1) {
        await leader.heal();
        await pause(leader.election.timing.renewEveryMs / 4);
        leader.proxy.cut();
      }
      await leader.heal();
    },
  ),
  {
    name: 'renew: the reply comes late, and is the last; belief counts from the send',
    async run(trial) {
      await trial.two();
      await provoke('a late reply', async () => {
        const struck = await strikeRenewal(trial, (proxy) => proxy.holdReplies());
        if (struck === undefined) return false;
        const { leader, term } = struck;
        await pause(0.8 * leader.election.timing.operationTimeoutMs);
        const before = term.remaining();
        leader.proxy.letGo();
        let next: boolean | undefined;
        leader.onNextWrite(() => {
          leader.silence();
          next = true;
        });
        await trial.until('the next renewal', () => next === true || term.signal.aborted);
        leader.forgetTraps();
        leader.silence();
        const wasConfirmed = term.remaining() > before;
        const other = await trial.nextTerm(term);
        assert.ok(!term.isLeading());
        await leader.heal();
        return wasConfirmed && other.candidate !== leader.id;
      });
    },
  },
  {
    name: 'renew: applied, found only when it was read back; belief counts from the send',
    async run(trial) {
      await trial.two();
      await provoke('a renewal that is read back', async () => {
        const struck = await strikeRenewal(trial, (proxy) => proxy.dropReplies());
        if (struck === undefined) return false;
        const { leader, term } = struck;
        await operationTimeout(trial, leader);
        const before = term.remaining();
        await leader.proxy.pass();
        await trial.until(
          'it is confirmed',
          () => term.remaining() > before || term.signal.aborted,
        );
        const wasConfirmed = term.remaining() > before;
        leader.silence();
        await trial.nextTerm(term);
        assert.ok(!term.isLeading());
        await leader.heal();
        return wasConfirmed;
      });
    },
  },
  {
    name: 'renew: it lands when its term is over, before anybody else leads',
    async run(trial) {
      await trial.two();
      await provoke('a late renewal', async () => {
        const struck = await strikeRenewal(trial, (proxy) => proxy.holdRequests());
        if (struck === undefined) return false;
        const { leader, term } = struck;
        await trial.until('its term ends', () => !term.isLeading());
        leader.proxy.letGo();
        await trial.nextTerm(term);
        await leader.heal();
        return true;
      });
    },
  },
  {
    name: 'renew: it lands when another one leads, who goes on',
    async run(trial) {
      await trial.two();
      await provoke('a renewal of an older term', async () => {
        const struck = await strikeRenewal(trial, (proxy) => proxy.holdRequests());
        if (struck === undefined) return false;
        const { leader, term } = struck;
        const next = await trial.nextTerm(term);
        const other = trial.candidates.find(({ id }) => id === next.candidate) as FaultyCandidate;
        leader.proxy.letGo();
        const goesOn = await trial.goesOn(other, next, 4);
        assert.ok(goesOn || wasTooSlow(next), `it lost to a late write: ${reasonOf(next)}`);
        await leader.heal();
        return goesOn;
      });
    },
  },
];

const release: readonly FaultScenario[] = [
  {
    name: 'release: applied, the reply lost with its connection; the successor is left alone',
    run: (trial) =>
      releaseLost(trial, async (leader) => {
        await leader.heal();
      }),
  },
  {
    name: 'release: applied, the reply lost until another one leads; the successor is left alone',
    run: (trial) =>
      releaseLost(trial, async (leader, term) => {
        await trial.nextTerm(term);
        await leader.heal();
      }),
  },
  {
    name: 'release: our own late renewal lands first',
    async run(trial) {
      await trial.two();
      await provoke('a release behind a renewal', async () => {
        const struck = await strikeRenewal(trial, (proxy) => proxy.holdRequests());
        if (struck === undefined) return false;
        const { leader, term } = struck;
        leader.finish();
        await operationTimeout(trial, leader);
        leader.proxy.letGo();
        await term.ended;
        await trial.nextTerm(term);
        return true;
      });
    },
  },
];

async function releaseLost(
  trial: Trial,
  heal: (leader: FaultyCandidate, term: Term) => Promise<void>,
): Promise<void> {
  await trial.two();
  await provoke('a release without an answer', async () => {
    const { leader } = await trial.leader();
    const { term } = leader;
    if (term === undefined || !(await trial.goesOn(leader, term, 1))) return false;
    const droppedBefore = leader.proxy.counters.bytesDropped;
    let isStruck = false;
    let hasEnded = false;
    leader.onNextWrite(() => {
      isStruck = true;
      leader.proxy.dropReplies();
    });
    void term.ended.then(() => {
      hasEnded = true;
    });
    leader.finish();
    // A term that was lost is not given back.
    await trial.until('the release', () => isStruck || hasEnded);
    leader.forgetTraps();
    if (isStruck) await replyLost(trial, leader.proxy, droppedBefore);
    await heal(leader, term);
    await term.ended;
    const next = await trial.nextTerm(term);
    const other = trial.candidates.find(({ id }) => id === next.candidate) as FaultyCandidate;
    const goesOn = await trial.goesOn(other, next, 4);
    assert.ok(goesOn || wasTooSlow(next), `the successor lost its term: ${reasonOf(next)}`);
    return goesOn && isStruck;
  });
}

const operator: readonly FaultScenario[] = [
  {
    name: 'an operator’s request: applied, the reply lost; one term ends for it, and one only',
    async run(trial) {
      await trial.two();
      const { election, proxy } = await trial.operator();
      await provoke('a request without an answer', async () => {
        const { leader } = await trial.leader();
        const term = leader.term as Term;
        // Connected before its request is sent.
        await persist(trial, () => election.leader());
        const droppedBefore = proxy.counters.bytesDropped;
        let isStruck = false;
        const forget = proxy.onRequest((chunk) => {
          if (isStruck || !trial.stand.isWrite(chunk)) return;
          isStruck = true;
          proxy.dropReplies();
        });
        let isOver = false;
        const asked = election
          .vacate()
          .catch((error: unknown) => error)
          .finally(() => {
            isOver = true;
          });
        await trial.until('the request', () => isStruck || isOver);
        forget();
        if (isStruck) await replyLost(trial, proxy, droppedBefore);
        await pause(leader.election.timing.renewEveryMs);
        await proxy.pass();
        await asked;
        // The request was not recorded. Otherwise the leader would see it when it confirms.
        if (await trial.goesOn(leader, term, 4)) return false;
        const next = await trial.nextTerm(term);
        assert.ok(reasonOf(term) === 'vacated' || wasTooSlow(term), reasonOf(term));
        const other = trial.candidates.find(({ id }) => id === next.candidate) as FaultyCandidate;
        const goesOn = await trial.goesOn(other, next, 4);
        assert.ok(reasonOf(next) !== 'vacated', 'the request ended a second term');
        return goesOn && isStruck && reasonOf(term) === 'vacated';
      });
    },
  },
  {
    name: 'an operator’s request lands before a renewal that is on its way',
    async run(trial) {
      await trial.two();
      const { election } = await trial.operator();
      await persist(trial, () => election.leader());
      await provoke('a request in between', async () => {
        const struck = await strikeRenewal(trial, (proxy) => proxy.holdRequests());
        if (struck === undefined) return false;
        const { leader, term } = struck;
        await persist(trial, () => election.vacate());
        leader.proxy.letGo();
        await trial.nextTerm(term);
        const reason = reasonOf(term);
        assert.ok(reason === 'vacated' || wasTooSlow(term), `it ended otherwise: ${reason}`);
        return reason === 'vacated';
      });
    },
  },
];

const halfOpen: readonly FaultScenario[] = [
  {
    name: 'half-open: the leader hears nothing, and stops believing by itself',
    async run(trial) {
      await trial.two();
      const { leader } = await trial.leader();
      const term = leader.term as Term;
      leader.silence();
      await trial.nextTerm(term);
      assert.ok(term.signal.aborted);
    },
  },
  {
    name: 'half-open: the leader is heard, and hears nothing',
    async run(trial) {
      await trial.two();
      const { leader } = await trial.leader();
      const term = leader.term as Term;
      leader.proxy.dropReplies();
      await trial.until('its belief ends', () => !term.isLeading());
      await leader.heal();
      await trial.nextTerm(term);
    },
  },
  {
    name: 'half-open: who waits hears nothing while the seat falls vacant, and leads when healed',
    async run(trial) {
      await trial.two();
      const { leader, other } = await trial.leader();
      other.silence();
      await pause(leader.election.timing.pollEveryMs);
      await leader.withdraw();
      await pause(leader.election.timing.leaseMs);
      await other.heal();
      await trial.until('it leads', () => other.isLeading);
    },
  },
];

export const faultScenarios: readonly FaultScenario[] = [
  ...acquire,
  ...renew,
  ...release,
  ...operator,
  ...halfOpen,
];

/** All parts of a request have come, as far as can be told. */
async function settled(trial: Trial, proxy: TestProxy): Promise<void> {
  let before = -1;
  while (before !== proxy.counters.bytesHeld) {
    before = proxy.counters.bytesHeld;
    await pause(20);
  }
  trial.watch.look();
}
