import { describe, it } from 'vitest';
import type { GrpcClient, GrpcError } from '../src/backends/etcd/index.ts';
import { etcdStatus } from '../src/backends/etcd/index.ts';
import { RecordDamagedError, StoreUnsuitableError } from '../src/index.ts';
import { aborted, end, leaseIn, missing, until, useEtcd, waiting } from './support/etcd.ts';

type Answer = (error: GrpcError | null, response?: Uint8Array) => void;
type Send = (answer: Answer) => { cancel(): void };

/** A client of which each transaction that puts the key of a candidate goes through `enter`. */
function withEnter(
  real: GrpcClient,
  enter: (send: Send, answer: Answer) => { cancel(): void },
): GrpcClient {
  const unary = real.makeUnaryRequest.bind(real) as (...from: readonly unknown[]) => {
    cancel(): void;
  };
  return {
    makeBidiStreamRequest: real.makeBidiStreamRequest.bind(
      real,
    ) as GrpcClient['makeBidiStreamRequest'],
    makeUnaryRequest: ((method: string, ...rest: readonly unknown[]) => {
      const message = rest[2] as Uint8Array;
      const answer = rest.at(-1) as Answer;
      const send: Send = (to) => unary(method, ...rest.slice(0, -1), to);
      const isEnter =
        method.endsWith('/Txn') && Buffer.from(message).includes('"incumbent":"candidate"');
      return isEnter ? enter(send, answer) : send(answer);
    }) as GrpcClient['makeUnaryRequest'],
  };
}

const lostReply: GrpcError = Object.assign(new Error('the reply was lost'), { code: 14 });

describe.skipIf(missing !== undefined)('on etcd', () => {
  // They mostly wait: all at once.
  describe.concurrent('an election', () => {
    const servers = useEtcd();

    // --- defects of other libraries (systems.md, section 7) ---

    it('22387: a candidate that loses its lease while waiting enters again, and leads in its turn', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      const first = await stand.election(stand.backend(), 'a').campaign();
      const b = waiting(stand.election(stand.backend(), 'b'));
      await until('b follows', () => b.following.length > 0);
      const [, before] = await stand.places();
      await stand.server.etcdctl('lease', 'revoke', leaseIn(before as string));
      await until('b follows again, from another place', () => b.places.length > 1);
      const [, again] = await stand.places();
      expect(again).not.toBe(before);
      await end(first);
      const second = await b.won;
      expect(second.candidate).toBe('b');
      expect(await stand.places()).toEqual([second.guard.key]);
      await end(second);
    });

    it('an operator deletes the candidates: the leader believes no longer, all enter again', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      const first = await stand.election(stand.backend(), 'a').campaign();
      const b = waiting(stand.election(stand.backend(), 'b'));
      await until('b follows', () => b.following.length > 0);
      const operator = stand.election(stand.backend(), 'operator');
      expect((await operator.deleteCandidates()).changed).toBe(true);
      await aborted(first.signal);
      expect(first.isLeading()).toBe(false);
      expect((await end(first)).reason).toBe('record-gone');
      const second = await b.won;
      expect(second.candidate).toBe('b');
      expect(second.token).toBeGreaterThan(first.token);
      await end(second);
      // No mark keeps candidates out there, so a removed election would only begin anew.
      await expect(operator.end({ remove: true })).rejects.toThrow(
        /keeps an ended election, .* Only the layout "golea" of ZooKeeper/,
      );
    });

    it('22387: nobody leads whose own key is gone when the one before it goes', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      const first = await stand.election(stand.backend(), 'a').campaign();
      const proxy = await stand.proxy();
      const b = waiting(stand.election(stand.backend(stand.connect(proxy)), 'b'));
      await until('b follows', () => b.following.length > 0);
      const [, place] = await stand.places();
      // It hears nothing while its lease ends and the leader goes.
      proxy.silence();
      await stand.server.etcdctl('lease', 'revoke', leaseIn(place as string));
      await end(first);
      const c = await stand.election(stand.backend(), 'c').campaign();
      await proxy.pass();
      await until('b follows c', () => b.following.at(-1)?.startsWith(c.guard.key) === true);
      expect(c.isLeading()).toBe(true);
      await end(c);
      await end(await b.won);
    });

    it('EB1: a leader that nobody hears any more believes no longer when another one leads', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      const proxy = await stand.proxy();
      const first = await stand.election(stand.backend(stand.connect(proxy)), 'a').campaign();
      const b = stand.election(stand.backend(), 'b').campaign();
      proxy.silence();
      await aborted(first.signal);
      const second = await b;
      expect(first.isLeading()).toBe(false);
      expect(second.token).toBeGreaterThan(first.token);
      expect(second.predecessor).toMatchObject({ id: 'a', clean: false });
      expect((await end(first)).released).toBe(false);
      await end(second);
    });

    it('EB3: a place whose reply was lost is found again, and does not wait for itself', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      let asked = 0;
      const client = withEnter(stand.connect(), (send, answer) => {
        asked += 1;
        return send((error, response) => answer(asked === 1 ? lostReply : error, response));
      });
      const term = await stand.election(stand.backend(client), 'a').campaign();
      // On a busy machine another answer may come too late, too.
      expect(asked).toBeGreaterThanOrEqual(2);
      expect(await stand.places()).toEqual([term.guard.key]);
      await end(term);
      expect(await stand.places()).toEqual([]);
    });

    // --- leases and places ---

    it('leaves no place behind that is put after everybody has given it up', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      const client = stand.connect();
      let sendLate = async (): Promise<GrpcError | null> => null;
      let holds = false;
      const late = withEnter(client, (send, answer) => {
        if (!holds) return send(answer);
        holds = false;
        sendLate = () => new Promise((resolve) => void send((error) => resolve(error)));
        return { cancel: () => {} };
      });
      const backend = stand.backend(late);
      // Its lease lives on: another election is on it.
      const other = await stand.election(backend, 'x', { name: `${stand.name}-other` }).campaign();
      holds = true;
      const a = waiting(stand.election(backend, 'a'));
      await until('the put is under way', () => !holds);
      a.stop.abort(new Error('not any more'));
      await expect(a.won).rejects.toThrow('not any more');
      expect(await sendLate()).toBe(null);
      const b = await stand.election(stand.backend(), 'b').campaign();
      expect(b.candidate).toBe('b');
      expect(other.isLeading()).toBe(true);
      await end(b);
      await end(other);
    });

    it('keeps all elections of a process on one lease, and two candidates for one on two', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      const backend = stand.backend();
      const names = Array.from({ length: 20 }, (_, index) => `${stand.name}-${index}`);
      const terms = await Promise.all(
        names.map((name) => stand.election(backend, 'a', { name }).campaign()),
      );
      expect(new Set(terms.map(({ guard }) => leaseIn(guard.key))).size).toBe(1);
      const second = waiting(stand.election(backend, 'b', { name: names[0] as string }));
      await until('it follows', () => second.following.length > 0);
      const places = await stand.places(names[0]);
      expect(new Set(places.map(leaseIn)).size).toBe(2);
      await Promise.all(terms.map(end));
      await end(await second.won);
    });

    it('ends a term when its lease is revoked, and the successor has waited', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      const a = stand.election(stand.backend(), 'a');
      const first = await a.campaign();
      const following = stand.election(stand.backend(), 'b').campaign();
      await stand.server.etcdctl('lease', 'revoke', leaseIn(first.guard.key));
      await aborted(first.signal);
      const second = await following;
      expect(first.isLeading()).toBe(false);
      expect((await end(first)).reason).toMatch(/session-expired|record-gone/);
      expect(second.predecessor).toMatchObject({ id: 'a', clean: false });
      await end(second);
    });

    it('ends a term when its key is deleted by hand', async ({ expect, onTestFinished }) => {
      const stand = servers.scene(onTestFinished);
      const first = await stand.election(stand.backend(), 'a').campaign();
      await stand.server.etcdctl('del', first.guard.key);
      await aborted(first.signal);
      expect((await end(first)).reason).toBe('record-gone');
    });

    // --- what else is there ---

    it('waits for a key that was put by hand, and shows it as a candidate', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      await stand.server.etcdctl('put', `${stand.name}/mine`, 'theirs');
      // Another election, though its name begins with ours.
      await stand.server.etcdctl('put', `${stand.name}/below/1`, 'x');
      const election = stand.election(stand.backend(), 'a');
      const a = waiting(election);
      await until('it follows', () => a.following.length > 0);
      expect(a.following[0]).toMatch(new RegExp(`^${stand.name}/mine@\\d+$`));
      const ids = (await election.candidates()).map(({ id }) => id);
      expect(ids).toEqual(['theirs', 'a']);
      const led = await election.leader();
      expect(led).toMatchObject({ state: 'led', leader: { id: 'theirs' } });
      await stand.server.etcdctl('del', `${stand.name}/mine`);
      await end(await a.won);
    });

    it.for([
      ['hello', 'is not an election record'],
      ['{"incumbent":"queue","format":1', 'is not an election record'],
    ] as const)(
      'leaves a record alone that is not ours: %s',
      async ([value, why], { expect, onTestFinished }) => {
        const stand = servers.scene(onTestFinished);
        const key = `incumbent/record/${stand.name}`;
        await stand.server.etcdctl('put', key, value);
        const campaign = stand.election(stand.backend(), 'a').campaign();
        await expect(campaign).rejects.toThrow(RecordDamagedError);
        await expect(campaign).rejects.toThrow(why);
        expect(await stand.server.etcdctl('get', key, '--print-value-only')).toBe(`${value}\n`);
        expect(await stand.places()).toEqual([]);
      },
    );

    it('has a guard by which etcd refuses a transaction of a leader that was overtaken', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      const work = async (compare: object, value: string): Promise<boolean> => {
        const base64 = (text: string) => Buffer.from(text).toString('base64');
        const put = { requestPut: { key: base64(`work-${stand.name}`), value: base64(value) } };
        const response = await fetch(`${stand.server.url}/v3/kv/txn`, {
          method: 'POST',
          body: JSON.stringify({ compare: [compare], success: [put] }),
        });
        return ((await response.json()) as { succeeded?: boolean }).succeeded === true;
      };
      const proxy = await stand.proxy();
      const first = await stand.election(stand.backend(stand.connect(proxy)), 'a').campaign();
      expect(first.guard).toMatchObject({
        token: first.token,
        createRevision: String(first.token),
      });
      expect(await work(first.guard.compare, 'first')).toBe(true);
      proxy.silence();
      const second = await stand.election(stand.backend(), 'b').campaign();
      // It has not noticed, and writes by another way.
      expect(await work(first.guard.compare, 'too late')).toBe(false);
      expect(await work(second.guard.compare, 'second')).toBe(true);
      const written = await stand.server.etcdctl('get', `work-${stand.name}`, '--print-value-only');
      expect(written).toBe('second\n');
      await end(second);
    });

    it('ends a term whose gRPC client is closed by its owner', async ({
      expect,
      onTestFinished,
    }) => {
      const stand = servers.scene(onTestFinished);
      const client = stand.connect();
      const election = stand.election(stand.backend(client), 'a');
      const term = await election.campaign();
      client.close();
      await aborted(term.signal);
      const outcome = await end(term);
      expect(outcome.released).toBe(false);
      expect(term.isLeading()).toBe(false);
      await expect(election.campaign()).rejects.toThrow(StoreUnsuitableError);
      await expect(election.campaign()).rejects.toThrow('closed');
    });

    it('shows the state of a server by its own account', async ({ expect, onTestFinished }) => {
      const stand = servers.scene(onTestFinished);
      const status = await etcdStatus(stand.connect());
      expect(status.version).toMatch(/^\d+\.\d+\.\d+/);
      expect(status.leader).toBe(status.memberId);
      expect(status.dbSize).toBeGreaterThan(0n);
      expect(status).toMatchObject({ isLearner: false, errors: [] });
    });
  });
});
