/** Copies of one process that races for a lock: they have one session in common, and one attempt. */
import { expect, test } from 'vitest';
import type { ZooKeeperGuard } from '../../src/backends/zookeeper/index.ts';
import { zookeeper } from '../../src/backends/zookeeper/index.ts';
import type { Term } from '../../src/core/term.ts';
import { inCopies } from '../support/copies.ts';
import { Arena, aborted, background, lockPath, root, tickTimeMs, until } from './support.ts';

test('two copies that each take the lock for their own never both lead', async () => {
  await using arena = await Arena.open();
  const client = await arena.client();
  const layout = { layout: 'hadoop', root, tickTime: tickTimeMs } as const;
  const drawn = { incarnation: 'copied', guid: 'copied' };
  const backend = inCopies(zookeeper(client, layout), drawn);
  const terms: Term<ZooKeeperGuard>[] = [];
  const members = await Promise.all(
    [1, 2].map(() => arena.member('a', { client, backend, candidate: { id: 'a' } })),
  );
  await members[0]?.election.init();
  // Neither has an answer to its attempt: whose the lock is, their session alone could tell.
  arena.fake.faults.next({ opcode: 'create2', path: lockPath }, 'dropAfter');
  for (const { election } of members) {
    const work = async (term: Term) => {
      terms.push(term as Term<ZooKeeperGuard>);
      await aborted(term.signal);
    };
    void background(election.lead(work));
  }
  // The second gives up their common claim, and then each has a claim of its own.
  await until('two terms', () => {
    expect(terms.filter((term) => term.isLeading()).length).toBeLessThan(2);
    return terms.length === 2 && terms[1]?.isLeading() === true;
  });
  expect(terms[1]?.token).toBeGreaterThan(terms[0]?.token ?? 0n);
});
