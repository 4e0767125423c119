// One client leads a thousand elections on a real ZooKeeper server that answers two hundred requests a
// second. Somebody deletes one of the thousand places by hand. That may end one term, and may not cost
// a request for each of the others.

import { connect } from '@incumbent/zookeeper';
import { startServer } from '@incumbent/zookeeper-testing';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';

const terms = 1_000;
const sessionTimeout = 4_000;
const watchedMs = 6_000;
/** Of a slow server: one request after the other takes so long. */
const msPerRequest = 5;

const cleanUps = [];
let verdict;
try {
  verdict = await reproduce();
} finally {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}
console.log(verdict);
process.exit(verdict.startsWith('ok') ? 0 : 1);

async function reproduce() {
  const server = await startServer();
  cleanUps.push(() => server.close());
  const operator = await connect(server.connectionString);
  cleanUps.push(() => operator.close());
  const real = await connect(server.connectionString, { sessionTimeout });
  cleanUps.push(() => real.close());
  const slow = slowClient(real);
  const backend = zookeeper(slow.client);
  const ends = new Map();
  const leading = [];
  let hasEnded = false;
  for (let at = 0; at < terms; at += 50) {
    const some = Array.from({ length: 50 }, async (_, index) => {
      const name = `jobs-${String(at + index).padStart(4, '0')}`;
      const election = createElection({ name, backend, candidate: { id: 'a' } });
      const term = await election.campaign();
      term.signal.addEventListener('abort', () => {
        const { reason } = term.signal.reason;
        if (!hasEnded) ends.set(reason, (ends.get(reason) ?? 0) + 1);
        void term[Symbol.asyncDispose]();
      });
      leading.push(term);
    });
    await Promise.all(some);
  }
  console.log(`${leading.filter((term) => term.isLeading()).length} terms lead`);
  slow.limit(msPerRequest);
  await pause(2_000);
  slow.count();
  await pause(watchedMs);
  const usual = slow.count();
  console.log(`in ${watchedMs / 1000} s without trouble: ${usual} requests`);
  const [place] = (await operator.getChildren('/incumbent/jobs-0417')).children;
  await operator.delete(`/incumbent/jobs-0417/${place}`);
  await pause(watchedMs);
  const sent = slow.count();
  hasEnded = true;
  console.log(`in ${watchedMs / 1000} s after one deletion: ${sent} requests`);
  const ended = [...ends].map(([reason, count]) => `${count} ${reason}`).join(', ');
  console.log(`terms that ended: ${ended || 'none'}`);
  slow.limit(0);
  const lost = [...ends.values()].reduce((sum, count) => sum + count, 0);
  if (lost !== 1) return `FAILED: ${lost} terms ended, one was deleted`;
  if (sent > usual + 20) return `FAILED: ${sent - usual} requests more than usual`;
  return `ok: one term ended, at ${Math.max(0, sent - usual)} requests more than usual`;
}

/** Requests of this client are answered one after the other, each after `limit` ms. */
function slowClient(real) {
  let msEach = 0;
  let requests = 0;
  let freeAtMs = 0;
  const turn = async () => {
    requests += 1;
    if (msEach === 0) return;
    freeAtMs = Math.max(freeAtMs, performance.now()) + msEach;
    await pause(freeAtMs - performance.now());
  };
  const slowed = new Set('create delete get set stat sync getChildren watch commit'.split(' '));
  const wrap = (target) =>
    new Proxy(target, {
      get(_, property) {
        const value = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        if (property === 'transaction') return () => wrap(target.transaction());
        if (!slowed.has(property) || (property !== 'commit' && target !== real)) {
          return (...given) => {
            const result = value.apply(target, given);
            return result === target ? wrapped(target) : result;
          };
        }
        return async (...given) => {
          await turn();
          return value.apply(target, given);
        };
      },
    });
  const proxies = new WeakMap();
  const wrapped = (target) => {
    if (!proxies.has(target)) proxies.set(target, wrap(target));
    return proxies.get(target);
  };
  return {
    client: wrapped(real),
    limit: (ms) => {
      msEach = ms;
    },
    count: () => {
      const counted = requests;
      requests = 0;
      return counted;
    },
  };
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
