/** One candidate of the library, in a process of its own, on the file store. */
import { subscribe } from 'node:diagnostics_channel';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { monotonicMs } from '../../clock.ts';
import type { CandidateArgument, FromCandidate, ToCandidate } from './candidate-messages.ts';
import { onOrder, readArgument, tell } from './parent.ts';

const { directory, election: name, lease, noteEveryMs } = readArgument<CandidateArgument>();
const election = createElection({
  name,
  backend: file(directory),
  ...(lease === undefined ? {} : { lease }),
});
const say = (message: FromCandidate) => tell(message);

let resign = () => {};
onOrder<ToCandidate>((order) => {
  if (order.do === 'resign') resign();
  else void campaign();
});
subscribe('incumbent:waiting', () => say({ say: 'waiting' }));

async function campaign(): Promise<void> {
  const term = await election.campaign();
  const atMs = monotonicMs();
  say({ say: 'leading', token: term.token.toString(), atMs });
  let ledAtMs = atMs;
  let resignedAtMs: number | undefined;
  const note = () => {
    const nowMs = monotonicMs();
    if (term.isLeading()) ledAtMs = nowMs;
  };
  const notes = noteEveryMs === undefined ? undefined : setInterval(note, noteEveryMs);
  await new Promise<void>((resolve) => {
    term.signal.addEventListener('abort', () => resolve(), { once: true });
    resign = () => {
      note();
      resignedAtMs = monotonicMs();
      term.resign();
    };
  });
  // There is no work to settle.
  void term[Symbol.asyncDispose]();
  const { reason } = await term.ended;
  const endedAtMs = monotonicMs();
  note();
  clearInterval(notes);
  say({ say: 'ended', reason, resignedAtMs, endedAtMs, ledAtMs });
}
