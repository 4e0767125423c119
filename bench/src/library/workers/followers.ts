/** Followers that wait on the file store, and what they ask of the machine. */
import { subscribe } from 'node:diagnostics_channel';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { sleep } from '../../clock.ts';
import { cpuShareDuring } from '../../cpu.ts';
import { readArgument, tell } from './parent.ts';

export interface FollowersArgument {
  readonly directory: string;
  readonly election: string;
  readonly followers: number;
  readonly windowMs: number;
}

export interface FromFollowers {
  readonly say: 'measured';
  readonly cpuShare: number;
  /** Of all followers, in the window. */
  readonly reads: number;
  readonly proofs: number;
}

const { directory, election: name, followers, windowMs } = readArgument<FollowersArgument>();
const count = { reads: 0, proofs: 0 };

// The store cannot be wrapped from outside, so the system is. Each read of the store ends with one
// look for the record after the newest, which is not there.
const { access } = promises;
promises.access = async (path, mode) => {
  try {
    await access(path, mode);
  } catch (error) {
    if (/[/\\]\d+$/.test(String(path))) count.reads += 1;
    throw error;
  }
};
syncBuiltinESMExports();
// And each proof asks for the leader's process.
const { kill } = process;
process.kill = (pid, signal) => {
  if (signal === 0) count.proofs += 1;
  return kill.call(process, pid, signal);
};

const { createElection } = await import('incumbent');
const { file } = await import('incumbent/file');
const backend = file(directory);
let waiting = 0;
subscribe('incumbent:waiting', () => {
  waiting += 1;
});
for (let index = 0; index < followers; index += 1) {
  const election = createElection({ name, backend, candidate: { id: `follower-${index}` } });
  election.campaign().then(
    () => process.exit(1),
    () => process.exit(1),
  );
}
while (waiting < followers) await sleep(10);
await sleep(3_000);
count.reads = 0;
count.proofs = 0;
const cpuShare = await cpuShareDuring(windowMs);
const message: FromFollowers = { say: 'measured', cpuShare, ...count };
tell(message);
