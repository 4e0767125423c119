// A candidate of ours, as a process that can be killed and frozen:
//
//   node candidate.mjs LAYOUT ADDRESS PATH ID SESSION_MS LOG
//
// Commands come as lines on standard input, and each is answered with one; README.md beside this
// file says which. Ends with its input. It uses the built packages.
import { openSync, writeSync } from 'node:fs';
import { posix } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from '@incumbent/zookeeper';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';

const [layout, address, path, id, sessionMs, logPath] = process.argv.slice(2);
const beatMs = 5;
/** As the servers of these elections have it. */
const tickTime = '200ms';

const say = (...words) => console.log(words.join(' '));
const log = openSync(logPath, 'a');
const client = await connect(`zk://${address}`, { sessionTimeout: Number(sessionMs) });
const election = createElection({
  name: posix.basename(path),
  backend: zookeeper(client, { layout, root: posix.dirname(path), tickTime }),
  candidate: { id },
});

async function work(term) {
  say('leading', term.token);
  let kind = 'start';
  for (;;) {
    // The time first: what is written is that we believed then, even if we are frozen before it is.
    const atNs = process.hrtime.bigint();
    if (term.signal.aborted || !term.isLeading()) break;
    writeSync(log, `${term.token} ${id} ${process.pid} ${process.pid} ${atNs} ${kind}\n`);
    kind = 'beat';
    await pause(beatMs);
  }
  say('ended');
}

/** Goes on by itself when a term is lost, until it is to resign. */
async function candidacy(signal) {
  for (;;) {
    try {
      await election.lead(work, { signal });
    } catch (error) {
      if (signal.aborted) return;
      say('failed', error);
    }
  }
}

let resigning;
let running;

const commands = {
  async join() {
    resigning = new AbortController();
    running = candidacy(resigning.signal);
    while (!(await election.candidates()).some((candidate) => candidate.id === id)) await pause(2);
    say('joined');
  },
  async resign() {
    resigning.abort();
    await running;
    say('resigned');
  },
  async contenders() {
    const ids = (await election.candidates()).map((candidate) => candidate.id);
    const { leader } = await election.leader();
    say('contenders', leader?.id ?? '-', ids.join(','));
  },
};

say('ready');
for await (const line of createInterface({ input: process.stdin })) await commands[line]();
// Without a word to the server: the session runs out, as when it is killed.
process.exit();
