// A service that leads with `releaseOnCrash`:
//
//     node crash-service.mjs '{ id, at, elections, timing, log }'
//
// It says on stdout what happens, as one JSON object a line. While it leads, it writes its token to the log.
import { appendFileSync } from 'node:fs';
import { createElection } from '../../dist/index.js';
import open from './crash-store.mjs';

const { id, at, elections, timing, log } = JSON.parse(process.argv[2]);
const say = (event, more) => process.stdout.write(`${JSON.stringify({ event, ...more })}\n`);
const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());

const backend = await open(at);
const handles = elections.map((name) =>
  createElection({
    ...{ name, backend, ...timing, candidate: { id }, init: 'auto' },
    releaseOnCrash: backend.kind === 'file' || new URL('crash-store.mjs', import.meta.url),
    onTrouble: ({ what, error }) => say('trouble', { what, message: error.message }),
  }),
);
await Promise.all(handles.map(campaign));
// A client would keep the process alive. A companion must not.
if (backend.kind !== 'file') process.exit();

async function campaign(election) {
  const { name } = election;
  const work = async (term) => {
    const token = String(term.token);
    const note = () =>
      term.isLeading() && appendFileSync(log, `${name} ${token} ${process.hrtime.bigint()}\n`);
    note();
    say('leads', { name, token });
    const noting = setInterval(note, 5);
    await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
    clearInterval(noting);
    say('stops', { name, token });
  };
  try {
    await election.lead(work, {
      signal: stop.signal,
      onUnclean: (leader) => say('fences', { name, token: String(leader.token) }),
      onStatus: ({ role }) => role === 'follower' && say('waits', { name }),
    });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  }
  await election.close();
}
