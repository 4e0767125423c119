import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@incumbent/zookeeper';
import type { TestEnsemble, TestMember } from '@incumbent/zookeeper-testing';
import { monotonicMs } from '../harness/time.ts';
import type { Outcome } from './election.ts';
import { ElectionUnderFault } from './election.ts';
import type { CandidatePlan } from './messages.ts';
import type { Network } from './network.ts';
import type { RoundPlan } from './plan.ts';

export interface Arena {
  readonly ensemble: TestEnsemble;
  readonly network: Network;
  readonly tickMs: number;
  readonly broken: CandidatePlan['broken'];
  readonly progress: (text: string) => void;
}

export interface PlayedRound {
  readonly outcomes: readonly Outcome[];
  /** Before the fault was made. */
  readonly faultMs: number;
  /** With all their messages. */
  readonly elections: readonly ElectionUnderFault[];
}

/** A term is confirmed several times before its server is struck, and not always at the same point. */
const leadsForMs = { least: 1_000, more: 1_000 };
/** Time for a candidate to believe wrongly after its server is back. */
const afterHealingMs = 1_500;

/** Plays one fault; all is whole again when it resolves. */
export async function playRound(plan: RoundPlan, name: string, arena: Arena): Promise<PlayedRound> {
  const { ensemble, network, progress } = arena;
  await ensemble.waitForQuorum({ atLeast: 3 });
  const followers = await ensemble.followers();
  const struck = followers[Math.floor(followers.length * Math.random())] as TestMember;
  const others = ensemble.members.filter((member) => member !== struck);
  const majority = others.map(addressOf).join(',');
  network.letReach(struck.id);
  await using operator = await connect(`zk://${majority}`);
  const around = { ...arena, struck: addressOf(struck), majority, operator };
  const elections = plan.elections.map(
    (election, index) => new ElectionUnderFault(election, `${name}-${index}`, around),
  );
  try {
    progress(`${elections.length} election${elections.length === 1 ? '' : 's'} assemble`);
    await Promise.all(elections.map((election) => election.assemble()));
    progress('leaders lead, and who is to be quiet is quiet');
    await Promise.all([
      sleep(leadsForMs.least + leadsForMs.more * Math.random()),
      ...elections.map((election) => election.quietSpell()),
    ]);
    const trigger = elections.find(({ isQuiet }) => isQuiet);
    await Promise.all([
      trigger?.predecessorGoes(),
      ...elections.map((election) => election.operate('deleted before')),
    ]);
    const faultMs = monotonicMs();
    if (plan.fault === 'cut') network.cut(struck.id);
    else void struck.freeze(); // its signal is sent at once
    progress(`server ${struck.id} is ${plan.fault === 'cut' ? 'cut off' : 'frozen'}`);
    await Promise.all(elections.map((election) => election.operate('deleted after')));
    await Promise.all(elections.map((election) => election.settled()));
    progress('the other side leads; the server comes back');
    network.heal(struck.id);
    struck.thaw();
    await sleep(afterHealingMs);
    const outcomes = await Promise.all(elections.map((election) => election.outcome(faultMs)));
    return { outcomes, faultMs, elections };
  } finally {
    await Promise.all(elections.map((election) => election.end()));
    network.heal(struck.id);
    // By itself it may take long to find the others again.
    await struck.kill();
    await struck.restart();
  }
}

function addressOf({ host, port }: TestMember): string {
  return `${host}:${port}`;
}
