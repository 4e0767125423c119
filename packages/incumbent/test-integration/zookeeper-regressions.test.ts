import { describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import type { CandidateStatus } from '../src/core/status.ts';
import type { Term } from '../src/index.ts';
import { ElectionEndedError } from '../src/index.ts';
import { missing, placesOf, until, useZooKeeper } from './support/zookeeper.ts';

/** A client with some other methods. Its calls of its own methods stay as they are. */
function withMethods(client: ZooKeeper, methods: Partial<ZooKeeper>): ZooKeeper {
  return new Proxy(client, {
    get(target, property) {
      const replaced: unknown = Reflect.get(methods, property);
      if (replaced !== undefined) return replaced;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Every order of the items. */
function ordersOf<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, index) =>
    ordersOf(items.filter((_, other) => other !== index)).map((rest) => [item, ...rest]),
  );
}

/** As the server prints a sequence number: `%010d` of an int32. */
function printed(sequence: number): string {
  const digits = String(Math.abs(sequence));
  return sequence < 0 ? `-${digits.padStart(9, '0')}` : digits.padStart(10, '0');
}

/**
 * Defects of other libraries between two requests. More of them are in zookeeper-election.test.ts.
 */
describe.skipIf(missing !== undefined)('an election on ZooKeeper, between two requests', () => {
  const zk = useZooKeeper();

  async function end(term: Term<unknown>) {
    await term[Symbol.asyncDispose]();
    return term.ended;
  }

  it('C13, CB4, FB1: a predecessor that is gone before it is watched is not waited for', async () => {
    const first = await zk.election(await zk.client(), 'a').campaign();
    const { path: ahead } = first.guard as { path: string };
    const real = await zk.client();
    let watchesOfIt = 0;
    const client = withMethods(real, {
      async watch(path, options) {
        if (path === ahead) {
          watchesOfIt += 1;
          await end(first);
        }
        return real.watch(path, options);
      },
    });
    const statuses: CandidateStatus[] = [];
    const second = await zk
      .election(client, 'b')
      .campaign({ onStatus: (status) => statuses.push(status) });
    expect(watchesOfIt).toBe(1);
    expect(second.predecessor).toMatchObject({ id: 'a', clean: true });
    expect(statuses.map(({ role, following }) => [role, following])).toContainEqual([
      'follower',
      ahead,
    ]);
    expect(statuses.at(-1)?.role).toBe('leader');
    await end(second);
  });

  it('C9: a place that is gone before it is watched is entered anew, behind the others', async () => {
    const direct = await zk.client();
    const first = await zk.election(await zk.client(), 'a').campaign();
    const ahead = (first.guard as { path: string }).path;
    const real = await zk.client();
    let gone: string | undefined;
    const client = withMethods(real, {
      async watch(path, options) {
        if (gone === undefined && path !== ahead) {
          gone = path;
          await direct.delete(path);
        }
        return real.watch(path, options);
      },
    });
    const statuses: CandidateStatus[] = [];
    const term = zk.election(client, 'b').campaign({ onStatus: (status) => statuses.push(status) });
    term.catch(() => {});
    await until('it has another place', () => {
      const last = statuses.at(-1);
      return last?.role === 'follower' && gone !== undefined && last.candidateId !== gone;
    });
    expect(statuses.at(-1)?.following).toBe(ahead);
    expect(await placesOf(direct, zk.node)).toHaveLength(2);
    await end(first);
    await end(await term);
  });

  it.each(['incumbent', 'kazoo'] as const)(
    'Z6, CB5: %s: the order of arrival outlives the run-over of the sequence number',
    async (layout) => {
      const real = await zk.client();
      await real.ensurePath(zk.node);
      let sequence = 2 ** 31 - 2;
      // The server's own counter is 32 bits as well, and 2³¹ creates away from its end.
      const client = withMethods(real, {
        create(path, data, options) {
          if (options?.sequential !== true) return real.create(path, data, options);
          const name = `${path}${printed(sequence)}`;
          sequence = (sequence + 1) | 0;
          return real.create(name, data, { ...options, sequential: false });
        },
      });
      const options = { layout, root: '/incumbent', tickTime: 200 };
      const elections = ['a', 'b', 'c', 'd'].map((id) => zk.election(client, id, options));
      const terms: Promise<Term<unknown>>[] = [];
      for (const election of elections) {
        const before = sequence;
        const term = election.campaign();
        term.catch(() => {});
        terms.push(term);
        await until('it is in line', () => sequence !== before);
      }
      expect(sequence).toBe(-(2 ** 31) + 2);
      const first = await (terms[0] as Promise<Term<unknown>>);
      const listed = await (elections[0] as (typeof elections)[0]).candidates();
      expect(listed.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd']);
      expect(first.candidate).toBe('a');
      for (const [index, term] of terms.entries()) {
        const leading = await term;
        expect(leading.candidate).toBe('abcd'[index]);
        if (index > 0) expect(leading.predecessor?.clean).toBe(true);
        await end(leading);
      }
    },
  );

  it('CB7: end() is not stopped by a candidate that has left meanwhile', async () => {
    const direct = await zk.client();
    const first = await zk.election(await zk.client(), 'a').campaign();
    const waiting: Promise<Term<unknown>>[] = [];
    for (const id of ['b', 'c']) {
      const before = (await placesOf(direct, zk.node)).length;
      const term = zk.election(await zk.client(), id).campaign();
      term.catch(() => {});
      waiting.push(term);
      await until(
        'it is in line',
        async () => (await placesOf(direct, zk.node)).length === before + 1,
      );
    }
    const [, between] = await placesOf(direct, zk.node);
    const real = await zk.client();
    let commits = 0;
    const client = withMethods(real, {
      transaction() {
        const transaction = real.transaction();
        const commit = transaction.commit.bind(transaction);
        return Object.assign(transaction, {
          commit: async (...from: Parameters<typeof commit>) => {
            commits += 1;
            if (commits === 1) await direct.delete(`${zk.node}/${between}`);
            return commit(...from);
          },
        });
      },
    });
    expect(await zk.election(client, 'operator').end()).toMatchObject({ changed: true });
    expect(commits).toBe(2);
    for (const term of waiting) await expect(term).rejects.toBeInstanceOf(ElectionEndedError);
    await until('the leader is told', () => first.signal.aborted);
    expect((await end(first)).reason).toBe('election-ended');
    expect(await placesOf(direct, zk.node)).toEqual([]);
  });

  it('CB9, CB10: resign, dispose, abort and close, twice and in any order, with a listener that throws', async () => {
    const client = await zk.client();
    const direct = await zk.client();
    const name = (order: number) => `${zk.name}/${order}`;
    const kinds = ['resign', 'dispose', 'abort', 'close'] as const;
    for (const [index, order] of ordersOf(kinds).entries()) {
      const stop = new AbortController();
      const onStatus = () => {
        throw new Error('a listener');
      };
      const election = zk.election(client, 'a', {}, { name: name(index) });
      const listening = index % 2 === 0 ? { onStatus } : {};
      const term = await election.campaign({ signal: stop.signal, ...listening });
      // The candidate that waits behind it leaves without having led.
      const behind = zk.election(client, 'b', {}, { name: name(index) });
      const never = behind.campaign({ signal: stop.signal, ...listening });
      never.catch(() => {});
      const calls = {
        resign: () => term.resign(),
        dispose: () => term[Symbol.asyncDispose](),
        abort: () => stop.abort(new Error('enough')),
        close: () => Promise.all([election.close(), behind.close()]),
      };
      await Promise.all(order.flatMap((kind) => [kind, kind]).map(async (kind) => calls[kind]()));
      expect((await term.ended).released, order.join()).toBe(true);
      await expect(never, order.join()).rejects.toThrow();
      expect(await placesOf(direct, `/incumbent/${name(index)}`), order.join()).toEqual([]);
    }
  });
});
