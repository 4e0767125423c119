import type { TestEnsemble, TestMember } from '@incumbent/zookeeper-testing';
import { StuckError } from '../harness/stuck.ts';
import { pause } from '../harness/time.ts';
import type { ProcessFault } from './plan.ts';

/** The leader of the servers, and a follower, by `choice` (0 up to 1). */
export async function chooseServers(
  ensemble: TestEnsemble,
  choice: number,
): Promise<{ readonly leader: TestMember; readonly follower: TestMember }> {
  const leader = await ensemble.leader();
  const followers = ensemble.members.filter((member) => member !== leader);
  return { leader, follower: followers[choice < 0.5 ? 0 : 1] as TestMember };
}

/** Servers fail as processes do, for a while, and run again. */
export async function strikeServers(
  ensemble: TestEnsemble,
  fault: ProcessFault,
  { forMs, choice }: { readonly forMs: number; readonly choice: number },
  log: (line: string) => void,
): Promise<void> {
  const { leader, follower } = await chooseServers(ensemble, choice);
  log(`servers: ${fault} for ${forMs} ms; ${leader.id} leads, ${follower.id} is chosen`);
  const killed = async (...members: TestMember[]) => {
    await Promise.all(members.map((member) => member.kill()));
    await pause(forMs);
    await Promise.all(members.map((member) => member.restart()));
  };
  const frozen = async (member: TestMember) => {
    await member.freeze();
    await pause(forMs);
    member.thaw();
  };
  switch (fault) {
    case 'kill leader':
      await killed(leader);
      break;
    case 'kill follower':
      await killed(follower);
      break;
    case 'lose quorum':
      await killed(leader, follower);
      break;
    case 'freeze leader':
      await frozen(leader);
      break;
    case 'freeze follower':
      await frozen(follower);
      break;
    case 'stop leader':
      await leader.stop();
      await pause(forMs);
      await leader.restart();
      break;
    case 'rolling restart':
      await ensemble.rollingRestart({ timeoutMs: 90_000 });
      break;
    default:
      fault satisfies never;
  }
  log(`servers: ${fault} is over`);
}

/** @throws StuckError when they do not all serve again */
export async function allServe(ensemble: TestEnsemble): Promise<void> {
  try {
    await ensemble.waitForQuorum({ atLeast: ensemble.members.length, timeoutMs: 90_000 });
  } catch (error) {
    throw new StuckError(`the servers do not come back: ${(error as Error).message}`);
  }
}
