/**
 * A candidate of ours, as a process that can be killed and frozen:
 *
 *     node our-member.js LAYOUT ADDRESS PATH ID SESSION_MS LOG
 *
 * Commands come as lines on standard input, and each is answered with one; README.md in
 * packages/incumbent/test-integration/zookeeper-interop says which. Ends with its input.
 */
import { openSync, writeSync } from 'node:fs';
import { posix } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, credentials } from '@grpc/grpc-js';
import { connect } from '@incumbent/zookeeper';
import type { Backend, Term } from 'incumbent';
import { createElection } from 'incumbent';
import { etcd } from 'incumbent/etcd';
import type { ZooKeeperLayout } from 'incumbent/zookeeper';
import { zookeeper } from 'incumbent/zookeeper';

const [layout, address = '', path = '', id = '', sessionMs, logPath = ''] = process.argv.slice(2);
const beatMs = 5;
/** In an election for one node: every second start of a member polls, as theirs do. Others watch. */
const polls = Number(id.split('.')[1]) % 2 === 1;
const lookEveryMs = 2;

const log = openSync(logPath, 'a');
const election = createElection({
  name: posix.basename(path),
  backend: layout === 'etcdctl' ? onEtcd() : await onZooKeeper(),
  candidate: { id },
});
let candidacy: { readonly withdraw: AbortController; readonly ended: Promise<void> } | undefined;

async function onZooKeeper(): Promise<Backend> {
  const client = await connect(`zk://${address}`, {
    sessionTimeoutMs: Number(sessionMs),
    connectTimeoutMs: 20_000,
  });
  return zookeeper(client, {
    layout: layout as ZooKeeperLayout,
    root: posix.dirname(path),
    tickTime: '200ms', // as the servers of these elections have it
    ...(layout === 'node' && polls ? { poll: '1s' } : {}),
  });
}

function onEtcd(): Backend {
  const client = new Client(address, credentials.createInsecure(), {
    'grpc.max_reconnect_backoff_ms': 500,
  });
  return etcd(client, {
    root: `${posix.dirname(path)}/`,
    ttl: Number(sessionMs),
    electionTimeout: '100ms', // as the servers of these elections have it
  });
}

function say(...words: readonly unknown[]): void {
  console.log(words.join(' '));
}

async function work(term: Term): Promise<void> {
  const { pid } = process;
  say('leading', term.token);
  let kind = 'start';
  for (;;) {
    // The time first: what is written is that we believed then, even if we are frozen before it is.
    const atNs = process.hrtime.bigint();
    if (term.signal.aborted || !term.isLeading()) break;
    writeSync(log, `${term.token} ${id} ${pid} ${pid} ${atNs} ${kind}\n`);
    kind = 'beat';
    await pause(beatMs);
  }
  say('ended');
}

/** Comes back by itself when a term is lost, until it is to resign. */
async function campaign(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await election.lead(work, { signal });
    } catch (error) {
      if (!signal.aborted) say('failed', error);
    }
  }
}

/** Of all candidates, in order; asks until there is an answer. */
async function contenders(): Promise<readonly [leader: string, ...ids: string[]]> {
  for (;;) {
    try {
      const { leader } = await election.leader();
      const ids = (await election.candidates()).map((candidate) => candidate.id);
      return [leader?.id ?? '-', ...ids];
    } catch {
      await pause(lookEveryMs); // on the way to another connection or session
    }
  }
}

const commands: Readonly<Record<string, () => Promise<void>>> = {
  async join() {
    const withdraw = new AbortController();
    candidacy = { withdraw, ended: campaign(withdraw.signal) };
    // The members that wait for one node are not known.
    while (layout !== 'node') {
      const [, ...ids] = await contenders();
      if (ids.includes(id)) break;
      await pause(lookEveryMs);
    }
    say('joined');
  },
  async resign() {
    candidacy?.withdraw.abort();
    await candidacy?.ended;
    say('resigned');
  },
  async contenders() {
    const [leader, ...ids] = await contenders();
    say('contenders', leader, ids.join(','));
  },
};

say('ready');
for await (const line of createInterface({ input: process.stdin })) await commands[line]?.();
// Without a word to the server: the session runs out, as when it is killed.
process.exit();
