// Moves of the primary among nodes and a ZooKeeper that are played. They repeat what a review of
// the managers has found (M…: managers, K…: clients), and the chaos tests (E…).
import { describe, expect, it, test } from 'vitest';
import { askAll, describe as describeNodes } from '../src/manager/choose.ts';
import { patienceMs } from '../src/manager/decide.ts';
import { isStillThere } from '../src/manager/move.ts';
import type { MoveWorld } from '../src/manager/move-world.ts';
import { NoCandidateError, refusalOf } from '../src/manager/move-world.ts';
import type { Replication } from '../src/redis/node-connection.ts';
import { FakeNode, FakeWorld, lapseMs, primary, replicaOf, viewMs } from './support/move-world.ts';
import { replication } from './support/replication.ts';

const all = ['k1', 'k2', 'k3'];

describe('what a node says counts only while it is the one that was looked at', () => {
  const world = () =>
    new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 100), all),
      new FakeNode('B', replicaOf('F', 90), ['k1']),
    );
  const startAnew = (played: FakeWorld, node: string, says: Partial<Replication>) => {
    const anew = replication({ runId: 'anew', isEmpty: true, hasWritten: false, ...says });
    played.node(node).says = anew;
  };

  it('a promoted node that is started anew before it is published is not', async () => {
    const played = world();
    played.at.set('after redirect', () => startAnew(played, 'A', { replicationId: 'q' }));
    await expect(played.move({ reason: 'request', target: 'A' })).rejects.toThrow(
      'A was started anew while the others were told to follow it',
    );
    expect(played.record.primary).toBeNull();
  });

  it('a node that was promoted by hand, and has nothing after the fence, is not followed', async () => {
    const played = world();
    // Somebody has made it a replica of a node that is not there.
    played.node('F').says = { ...played.node('F').says, ...replicaOf('X', 100), linkUp: false };
    played.node('A').says = replication({
      ...{ runId: 'run-A', replicationId: 'u', formerReplicationId: 'a' },
      ...{ formerOffset: 101, offset: 100, hasWritten: false },
    });
    played.at.set('after fence', () => startAnew(played, 'A', { replicationId: 'q' }));
    await expect(
      played.move({ reason: 'found', target: 'A', available: ['A', 'B'] }),
    ).rejects.toThrow('A, which somebody has promoted, has not all that the others have any more');
    expect(played.node('B').keys).toEqual(['k1']);
  });
});

describe('a request for any node', () => {
  it('waits for a replica that has not connected yet after a move, and gives no advice to an operator', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', { ...replicaOf('F', 100), linkUp: false, replicationId: 'z' }, all),
    );
    await expect(world.move({ reason: 'request' })).rejects.toMatchObject({
      name: 'MoveTooEarlyError',
      message: 'A has no connection with its primary yet',
    });
    world.node('A').says = { ...world.node('A').says, isAside: true, primary: '127.0.0.1:1' };
    await expect(world.move({ reason: 'request' })).rejects.toThrow(/^(?!.*operator).*take over/);
    expect(world.record.primary).toBe('F');
  });

  it('waits for a replica that copies, and the primary goes on meanwhile', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      // It has its old position until it loads its copy.
      new FakeNode('A', { ...replicaOf('F', 50), linkUp: false, syncing: true }, ['k1']),
    );
    await expect(world.move({ reason: 'request' })).rejects.toMatchObject({
      ...{ name: 'MoveTooEarlyError', isCopying: true },
      message: 'A is still copying the data',
    });
    expect(world.revokedAtMs).toEqual([]);
  });

  it('waits for a replica without a connection, and says what it lacks', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', { ...replicaOf('F', 50), linkUp: false }, ['k1']),
      new FakeNode('B', { ...replicaOf('F', 50), linkUp: false, priority: 0 }, ['k1']),
    );
    await expect(world.move({ reason: 'request' })).rejects.toMatchObject({
      ...{ name: 'MoveTooEarlyError', isCopying: false },
      message: expect.stringMatching(/^A .* lacks what F has \(50 bytes of writes after 50\)$/),
    });
    // A copy may take longer than a connection.
    world.node('B').says = { ...world.node('B').says, priority: 100, syncing: true };
    await expect(world.move({ reason: 'request' })).rejects.toMatchObject({ isCopying: true });
    expect(world.revokedAtMs).toEqual([]);
  });

  it('waits for no node where one is not connected, and has all that the primary has', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', { ...replicaOf('F', 100), linkUp: false }, all),
    );
    await expect(world.move({ reason: 'request' })).resolves.toMatchObject({ primary: 'A' });
  });

  it('takes a connected replica, and not one that was cut off with more', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', { ...replicaOf('F', 95), linkUp: false }, ['k1']),
      new FakeNode('B', replicaOf('F', 90), ['k1']),
    );
    world.whileSleeping = () => {
      // Data that were on their way when the primary was paused.
      world.node('B').says = { ...world.node('B').says, offset: 100 };
    };
    await expect(world.move({ reason: 'request' })).resolves.toMatchObject({ primary: 'B' });
  });

  it('takes no node that the managers say is down: it would be replaced at once', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 100), all),
      new FakeNode('B', replicaOf('F', 100), all),
    );
    await expect(world.move({ reason: 'request', available: ['F', 'B'] })).resolves.toMatchObject({
      primary: 'B',
    });
    await expect(world.move({ reason: 'request', available: ['B'] })).rejects.toThrow(
      'nobody can take over from B',
    );
  });

  it('is refused at once where the only other node was promoted by hand', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', { ...primary(50), hasWritten: true }, ['k1']),
    );
    await expect(world.move({ reason: 'request' })).rejects.toThrow('nobody can take over from F');
    expect(world.revokedAtMs).toEqual([]);
  });
});

describe('a request for one node', () => {
  it('waits for it while it loads its copy, although the managers say that it is down', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', { ...replicaOf('F', 50), linkUp: false, loading: true }),
    );
    for (const target of ['A', undefined]) {
      const moved = world.move({ reason: 'request', available: ['F'], target });
      await expect(moved).rejects.toMatchObject({ name: 'MoveTooEarlyError', isCopying: true });
    }
    world.node('A').says = { ...world.node('A').says, loading: false };
    await expect(
      world.move({ reason: 'request', available: ['F'], target: 'A' }),
    ).rejects.toMatchObject({
      name: 'MoveRefusedError',
      message: 'A cannot be promoted: the managers say that it is down',
    });
    expect(world.revokedAtMs).toEqual([]);
  });

  it('is refused when it has not got all in 5 s, and the primary goes on with the next term', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 50), ['k1']),
    );
    await expect(world.move({ reason: 'request', target: 'A' })).rejects.toMatchObject({
      name: 'MoveRefusedError',
      message: expect.stringMatching(/50 bytes of writes after 50.* in 5s: F goes on$/),
    });
    expect(world.record).toMatchObject({ primary: 'F', term: 2 });
    expect(world.node('F').isPaused).toBe(false);
  });
});

describe('the promoted node', () => {
  it('is never one without data of the set while the one that has them does not answer (M2)', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 100), all),
      // It came back empty when there was no primary to copy.
      new FakeNode('C', { replicationId: 'x' }),
    );
    world.node('F').isSilent = true;
    world.node('A').isSilent = true;
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      await expect(world.move({ reason: 'down', available: ['A', 'C'] })).rejects.toThrow(
        NoCandidateError,
      );
      expect(world.record.term).toBe(1);
    }
    world.node('A').isSilent = false;
    await expect(world.move({ reason: 'down', available: ['A', 'C'] })).resolves.toMatchObject({
      primary: 'A',
    });
    expect(world.node('A').keys).toEqual(all);
  });

  describe('when the data of the record are nowhere any more', () => {
    const copied = (offset: number) => ({ ...replicaOf('F', offset), replicationId: 'x' });
    const world = (...others: readonly FakeNode[]) => {
      const played = new FakeWorld(
        new FakeNode('F', { replicationId: 'x', offset: 60, hasBacklog: true }, ['k']),
        ...others,
      );
      // A manager died in the middle of a move. F came back empty meanwhile, and was copied.
      played.record = { ...played.record, primary: null, former: 'F', runId: 'before' };
      return played;
    };
    const move = (played: FakeWorld) => played.move({ reason: 'unfinished' });

    it('is the one that is furthest, if all are in one other stream', async () => {
      const played = world(new FakeNode('A', copied(40)), new FakeNode('B', copied(60), ['k']));
      await expect(move(played)).resolves.toMatchObject({
        primary: expect.stringMatching(/^[FB]$/),
      });
    });

    it('is none while one does not answer, or is in a third stream', async () => {
      const silent = world(new FakeNode('A', copied(40)), new FakeNode('B', copied(60)));
      silent.node('B').isSilent = true;
      await expect(move(silent)).rejects.toThrow(NoCandidateError);
      const forked = world(
        new FakeNode('A', copied(40)),
        new FakeNode('B', { ...copied(60), replicationId: 'y' }),
      );
      await expect(move(forked)).rejects.toThrow(NoCandidateError);
    });
  });

  describe('when no node that answers has all that the primary was known to have', () => {
    const behind = (position: number | undefined) => {
      const world = new FakeWorld(
        new FakeNode('F', primary(100), all),
        new FakeNode('A', replicaOf('F', 90), ['k1']),
      );
      world.position = position === undefined ? undefined : { stream: 'a', offset: position };
      world.node('F').isSilent = true;
      return { world, move: () => world.move({ reason: 'down', available: ['A'] }) };
    };

    it('is the one that has all of that, at once', async () => {
      for (const position of [undefined, 90]) {
        const { world, move } = behind(position);
        const before = world.nowMs;
        await expect(move()).resolves.toMatchObject({ primary: 'A' });
        expect(world.nowMs - before).toBeLessThan(2_000);
      }
    });

    it('is none until those that are missing were waited for', async () => {
      const { world, move } = behind(91);
      const before = world.nowMs;
      for (;;) {
        const moved = await move().catch((error: Error) => error.message);
        if (typeof moved !== 'string') break;
        expect(moved).toContain('A cannot have all that the primary had, and F may have it');
        expect(world.nowMs - before).toBeLessThan(patienceMs + 3_000);
        world.nowMs += 500;
      }
      expect(world.nowMs - before).toBeGreaterThanOrEqual(patienceMs);
      expect(world.primaries).toContain('A');
    });

    it('is none for as long in the next term, whatever was waited for before', async () => {
      const { world, move } = behind(91);
      await expect(move()).rejects.toThrow('F may have it');
      world.nowMs += patienceMs;
      // Another manager has ended that.
      world.record = { ...world.record, term: 7, primary: 'F' };
      await expect(move()).rejects.toThrow('F may have it');
    });

    it('is the one that is left, at once, where an operator has said that the rest may be lost', async () => {
      const { world, move } = behind(91);
      world.rejoin = 'always';
      await expect(move()).resolves.toMatchObject({ primary: 'A' });
    });

    it('is said to be the one with most of it, if an operator wants no wait', async () => {
      const world = new FakeWorld(
        new FakeNode('F', primary(100), all),
        new FakeNode('A', replicaOf('F', 50)),
        new FakeNode('B', replicaOf('F', 90)),
      );
      world.position = { stream: 'a', offset: 100 };
      world.node('F').isSilent = true;
      const moved = world.move({ reason: 'down', available: ['A', 'B'] });
      await expect(moved).rejects.toThrow('incumbent-redis keep B ends that');
    });

    it('is the primary itself when it is there again, and it waits anew the next time', async () => {
      const { world, move } = behind(91);
      await expect(move()).rejects.toThrow('F may have it');
      world.nowMs += patienceMs;
      world.node('F').isSilent = false;
      await expect(world.move({ reason: 'unfinished' })).resolves.toMatchObject({ primary: 'F' });
      world.node('F').isSilent = true;
      world.position = { stream: 'a', offset: 150 };
      await expect(move()).rejects.toThrow('F may have it');
    });
  });

  describe('when a node that is up does not answer this manager (M4)', () => {
    const behind = () => {
      const world = new FakeWorld(
        new FakeNode('F', primary(100), all),
        new FakeNode('A', replicaOf('F', 100), all),
        new FakeNode('B', replicaOf('F', 10)),
      );
      world.managers = 3;
      world.node('F').isSilent = true;
      world.node('A').isSilent = true;
      const move = () => world.move({ reason: 'down', available: ['A', 'B'] });
      return { world, move };
    };

    it('is none that may have less, and the other one when it answers', async () => {
      const { world, move } = behind();
      for (let attempt = 1; attempt <= 3; attempt += 1) {
        await expect(move()).rejects.toThrow('A may have more of the data');
        expect(world.node('B').says.role).toBe('replica');
      }
      world.node('A').isSilent = false;
      await expect(move()).resolves.toMatchObject({ primary: 'A' });
      expect(world.node('B').keys).toEqual(all);
    });

    it('is the one that is left after other managers have had their turn, and none has reached it', async () => {
      const { world, move } = behind();
      const moved = async () => move().catch(() => undefined);
      let found = await moved();
      // After any number of attempts: at some time clients can write again.
      for (let attempt = 1; found === undefined && attempt < 20; attempt += 1) {
        found = await moved();
      }
      expect(found?.primary).toBe('B');
      // It was not asked, so it got no order either.
      expect(world.node('A').keys).toEqual(all);
      expect(world.published?.unavailable).toContain('A');
    });
  });

  it('is the former one when it is a replica that has all, and the promoted one has died (M9)', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 100), all),
    );
    world.at.set('after redirect', () => {
      world.node('A').isSilent = true;
    });
    await expect(world.move({ reason: 'request' })).rejects.toThrow('A does not answer');
    expect(world.record.primary).toBeNull();
    expect(world.node('F').says.role).toBe('replica');
    const moved = await world.move({ reason: 'unfinished', available: ['F'] });
    expect(moved).toEqual({ primary: 'F', term: 2 });
    expect(world.node('F').keys).toEqual(all);
  });

  it('is the former one in its own process, even where its offset says nothing and no other node is left', async () => {
    const world = new FakeWorld(
      // It had no replica for an hour.
      new FakeNode('F', { ...primary(100), hasBacklog: false }, all),
      new FakeNode('A', replicaOf('F', 100), all),
    );
    world.node('A').isSilent = true;
    world.record = { ...world.record, primary: null, former: 'F' };
    const move = (reason: 'unfinished' | 'keep', target?: string) =>
      world.move({ reason, target, available: ['F'] });
    await expect(move('keep', 'A')).rejects.toThrow(NoCandidateError);
    expect(world.record.primary).toBeNull();
    await expect(move('unfinished')).resolves.toMatchObject({ primary: 'F' });
  });

  describe('when one that is never promoted has more than all others', () => {
    const set = (more: Partial<Replication> = {}) => {
      const world = new FakeWorld(
        new FakeNode('F', primary(100), all),
        new FakeNode('A', replicaOf('F', 90), ['k1']),
        new FakeNode('Z', { ...replicaOf('F', 100), priority: 0, ...more }, all),
      );
      world.node('F').isSilent = true;
      return world;
    };
    const available = ['A', 'Z'];
    const down = { reason: 'down', available } as const;

    it('is none, until an operator raises its priority or keeps it', async () => {
      const world = set();
      await expect(world.move(down)).rejects.toThrow(
        /A lacks what Z has \(10 bytes .*replica-priority of Z is 0.*incumbent-redis keep Z/,
      );
      expect(world.record.primary).toBeNull();
      expect(world.node('Z').says.isAside).toBe(false);
      const kept = world.move({ reason: 'keep', target: 'Z', available });
      await expect(kept).resolves.toMatchObject({ primary: 'Z' });
    });

    it('is another one that gets it in time, or has it already', async () => {
      for (const offset of [90, 100]) {
        const world = set();
        const A = world.node('A');
        A.says = { ...A.says, offset, linkUp: true };
        world.at.set('after fence', () => {
          // Data that it had received already.
          A.says = { ...A.says, offset: 100 };
        });
        await expect(world.move(down)).resolves.toMatchObject({ primary: 'A' });
        expect(world.published?.slaves).toEqual(['Z']);
      }
    });

    it('is the primary itself when it comes back', async () => {
      const world = set();
      await expect(world.move(down)).rejects.toThrow('A lacks what Z has');
      world.node('F').isSilent = false;
      await expect(world.move({ reason: 'unfinished' })).resolves.toMatchObject({ primary: 'F' });
    });

    it('is none that has only data of before its term', async () => {
      const world = set({ replicationId: 'z' });
      world.record = { ...world.record, lineage: { a: 100, z: 200 }, replicationId: 'z' };
      world.node('F').says = { ...world.node('F').says, replicationId: 'z', offset: 200 };
      world.node('Z').says = { ...world.node('Z').says, offset: 150 };
      await expect(world.move(down)).rejects.toThrow('incumbent-redis keep Z ends that');
      world.nowMs += patienceMs;
      await expect(world.move(down)).rejects.toThrow(/replica-priority of Z is 0/);
    });

    it('is the best of the others, where an operator has said that the rest may be lost', async () => {
      const world = set();
      world.rejoin = 'always';
      await expect(world.move(down)).resolves.toMatchObject({ primary: 'A' });
    });
  });

  it('is another one that has as much after one has refused it (M10)', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', { ...replicaOf('F', 100), priority: 50 }, all),
      new FakeNode('B', replicaOf('F', 100), all),
    );
    world.node('F').isSilent = true;
    world.node('A').refusesPromotion = true;
    const available = ['A', 'B'];
    await expect(world.move({ reason: 'down', available })).rejects.toThrow('unknown command');
    await expect(world.move({ reason: 'unfinished', available })).resolves.toMatchObject({
      primary: 'B',
    });
  });

  it('is not one with less than the one that refuses, however often it does (M10)', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 100), all),
      new FakeNode('B', replicaOf('F', 99)),
    );
    world.node('F').isSilent = true;
    world.node('A').refusesPromotion = true;
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      await expect(world.move({ reason: 'down', available: ['A', 'B'] })).rejects.toThrow(
        'unknown command',
      );
    }
    expect(world.node('B').says.role).toBe('replica');
  });

  it.each([
    { seen: 'up', available: ['F', 'A', 'B'] },
    { seen: 'still down', available: ['A', 'B'] },
  ])(
    'is none that came back in mid-move with data of unknown position; that is set aside, $seen as the managers say (E3)',
    async ({ available }) => {
      const world = new FakeWorld(
        new FakeNode('F', primary(100), all),
        new FakeNode('A', replicaOf('F', 10)),
      );
      world.node('F').isSilent = true;
      world.at.set('before choose', () => {
        // It starts from a file of its writes, which does not name their stream.
        const F = world.node('F');
        F.says = replication({ replicationId: 'n', offset: 5, runId: 'anew' });
        F.isSilent = false;
      });
      await world.move({ reason: 'down', available: ['A'] }).catch(() => {});
      const moved = await world.move({ reason: 'unfinished', available }).catch(() => undefined);
      expect(moved?.primary ?? world.record.primary).toBe('A');
      expect(world.node('F').says.isAside).toBe(true);
      expect(world.node('F').keys).toEqual(all);
    },
  );

  it('is the one with most of the data also while it copies, and does not load yet (F5)', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', { ...replicaOf('F', 100), syncing: true, linkUp: false }, all),
      new FakeNode('B', replicaOf('F', 10)),
    );
    world.node('F').isSilent = true;
    const moved = await world.move({ reason: 'down', available: ['A', 'B'] });
    expect(moved.primary).toBe('A');
    expect(world.node('B').keys).toEqual(all);
  });

  it('is the one that goes furthest in the streams on record, and not one that wrote on after a start with less', async () => {
    // It starts from a file that tells how far it was in its stream.
    const restarted = { runId: 'another', replicationId: 'n', formerReplicationId: 'z' };
    const world = new FakeWorld(
      new FakeNode('F', { ...restarted, formerOffset: 1, offset: 9_000 }, ['new']),
      new FakeNode('A', { ...replicaOf('F', 150), replicationId: 'z', linkUp: false }, all),
    );
    world.record = { ...world.record, runId: 'run-F', lineage: { z: 150, a: 150 } };
    const moved = await world.move({ reason: 'lost-data' });
    expect(moved.primary).toBe('A');
    expect(world.node('F').says.isAside).toBe(true);
    expect(world.node('F').keys).toEqual(['new']);
  });

  it('is the one that has more of the earlier stream, and not one that wrote for itself since (M13)', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(150), all),
      new FakeNode('A', replicaOf('F', 100)),
      new FakeNode('B', replicaOf('F', 150), all),
    );
    world.node('F').isSilent = true;
    // A manager that did not see B, and died there.
    world.at.set('after promote', () => {
      const { says } = world.node('A');
      // Keys that expire are deletions in its own stream.
      world.node('A').says = { ...says, offset: 9_000 };
      throw new Error('died');
    });
    world.node('B').isSilent = true;
    await expect(world.move({ reason: 'down', available: ['A'] })).rejects.toThrow('died');
    expect(world.primaries).toContain('A');
    world.node('B').isSilent = false;
    const moved = await world.move({ reason: 'unfinished', available: ['A', 'B'] });
    expect(moved.primary).toBe('B');
    expect(world.node('B').keys).toEqual(all);
    // No other node has what it has written for itself.
    expect(world.node('A').says.isAside).toBe(true);
  });
});

describe('no node is promoted', () => {
  const set = () =>
    new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 100), all),
      new FakeNode('B', replicaOf('F', 100), all),
    );

  it('before the views have lapsed since this revocation, whatever came of one before (M6)', async () => {
    const world = set();
    const target = 'A';
    world.at.set('before publish', () => {
      world.losesNextReply = true;
    });
    await expect(world.move({ reason: 'request', target })).rejects.toThrow('lost');
    expect(world.record).toMatchObject({ term: 2, primary: 'A' });
    world.nowMs += 60_000;
    world.at.set('before revoke', () => {
      world.losesNextReply = true;
    });
    world.node('A').isSilent = true;
    const available = ['F', 'B'];
    await expect(world.move({ reason: 'down', available })).rejects.toThrow('lost');
    expect(world.record.primary).toBeNull();
    const { primary: next } = await world.move({ reason: 'unfinished', available });
    const [, revokedAtMs] = world.revokedAtMs;
    expect(world.node(next).promotedAtMs).toBeGreaterThanOrEqual(Number(revokedAtMs) + lapseMs);
  });

  it('that was the primary while a client may still hold that view (K1)', async () => {
    const world = set();
    await world.move({ reason: 'request', target: 'A' });
    const back = await world.move({ reason: 'request', target: 'F' });
    expect(back).toEqual({ primary: 'F', term: 3 });
    const [revokedAtMs] = world.revokedAtMs;
    // A client still has a connection from that time, and F takes its writes once it is promoted.
    expect(world.node('F').promotedAtMs).toBeGreaterThanOrEqual(Number(revokedAtMs) + lapseMs);
  });

  it('and the primary stays when it is up and cannot be told to stop, for a request (M20)', async () => {
    const world = set();
    world.at.set('before fence', () => {
      world.node('F').isSilent = true;
    });
    await expect(world.move({ reason: 'request' })).rejects.toThrow('nothing is moved');
    expect(world.primaries).toEqual(['F']);
    world.node('F').isSilent = false;
    await expect(world.move({ reason: 'unfinished' })).resolves.toMatchObject({ primary: 'F' });
  });
});

describe('the former primary, while another one is chosen', () => {
  it('is set aside when it comes back in another process: its replicas would copy it', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(150), ['all']),
      new FakeNode('A', replicaOf('F', 100)),
    );
    world.at.set('after fence', () => {
      world.node('F').says = replication({ runId: 'another', replicationId: 'n', isEmpty: true });
    });
    await expect(world.move({ reason: 'request' })).rejects.toThrow();
    expect(world.node('F').says.isAside).toBe(true);
  });

  it('has its PINGs counted as part of what the new one has: it is not taken for one with more', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(150), ['all']),
      new FakeNode('A', replicaOf('F', 150), ['all']),
    );
    world.at.set('after choose', () => {
      world.node('F').says = { ...world.node('F').says, offset: 164 };
    });
    const { primary: chosen } = await world.move({ reason: 'request' });
    expect(chosen).toBe('A');
    expect(world.record.lineage).toMatchObject({ a: 164 });
  });
});

describe('a promotion that was not finished', () => {
  const lineage = { s1: 100, s2: 200, s3: 300 };
  /** R and N are in the last term, X and Y were in an earlier one. */
  const set = () => {
    const played = new FakeWorld(
      new FakeNode('R', { replicationId: 's3', offset: 300 }, all),
      new FakeNode('N', { ...replicaOf('R', 300), replicationId: 's3' }, all),
      new FakeNode('X', { ...replicaOf('R', 90), replicationId: 's1', linkUp: false }, ['k1']),
      new FakeNode('Y', { ...replicaOf('R', 80), replicationId: 's1', linkUp: false }, ['k1']),
    );
    played.record = { ...played.record, replicationId: 's3', lineage };
    return played;
  };
  const die = () => {
    throw new Error('died');
  };
  /** Moves until X is promoted, after all waits are over. */
  const promoteX = async (played: FakeWorld, diesAt: 'after promote' | 'after redirect') => {
    for (const node of ['R', 'N']) played.node(node).isSilent = true;
    played.at.set(diesAt, die);
    const down = () => played.move({ reason: 'down', available: ['X', 'Y'] });
    await expect(down()).rejects.toThrow('it is waited for');
    played.nowMs += patienceMs;
    await expect(down()).rejects.toThrow('died');
    expect(played.primaries).toContain('X');
  };

  it('of a node with less does not make others forget the last term: its primary is given back', async () => {
    const played = set();
    await promoteX(played, 'after promote');
    for (const node of ['R', 'N']) played.node(node).isSilent = false;
    const { primary: chosen } = await played.move({ reason: 'unfinished' });
    expect(chosen).toBe('R');
    expect(played.published?.slaves).toContain('N');
    expect(played.record).toMatchObject({ lineage, promoting: undefined });
  });

  it('of a node with less does not make others forget a node that has more of an earlier term', async () => {
    const played = set();
    await promoteX(played, 'after redirect');
    const [R, N] = [played.node('R'), played.node('N')];
    N.says = { ...N.says, replicationId: 's2', offset: 200 };
    N.isSilent = false;
    await expect(
      played.move({ reason: 'unfinished', available: ['N', 'X', 'Y'] }),
    ).resolves.toMatchObject({ primary: 'N' });
    expect(R.says.isAside).toBe(false);
  });

  it('leaves replicas that others can place: one that has copied it takes over', async () => {
    const played = set();
    const D = played.node('N');
    await promoteX(played, 'after redirect');
    const [X, Y] = [played.node('X'), played.node('Y')];
    // By a full copy, so it knows no earlier stream.
    Y.says = { ...Y.says, replicationId: X.says.replicationId, formerReplicationId: undefined };
    expect(Y.says).toMatchObject({ replicationId: 's1X', primary: 'X' });
    X.isSilent = true;
    D.says = { ...D.says, replicationId: 's1', offset: 85 };
    D.isSilent = false;
    await expect(
      played.move({ reason: 'unfinished', available: ['N', 'Y'] }),
    ).resolves.toMatchObject({ primary: 'Y' });
    expect(played.record.lineage).toMatchObject({ s1: 90 });
  });

  it('that is tried again and again does not push the streams of the last term out of the record', async () => {
    const played = set();
    played.node('R').isSilent = true;
    for (let attempt = 1; attempt <= 20; attempt += 1) {
      played.at.set('after redirect', () => {
        const N = played.node('N');
        N.says = { ...N.says, runId: `run-${attempt}` };
      });
      await expect(
        played.move({ reason: attempt === 1 ? 'down' : 'unfinished', available: ['N', 'X', 'Y'] }),
      ).rejects.toThrow('N was started anew');
    }
    expect(played.record.lineage).toEqual(lineage);
    played.node('R').isSilent = false;
    await expect(played.move({ reason: 'unfinished' })).resolves.toMatchObject({ primary: 'N' });
    expect(played.published?.slaves).toContain('R');
  });

  it('has set aside one with more of the last term: that one takes over', async () => {
    const played = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 80), ['k1']),
      new FakeNode('B', replicaOf('F', 100), all),
    );
    played.node('F').isSilent = true;
    const { says } = played.node('B');
    const aside = { isAside: true, primary: '127.0.0.1:1', linkUp: false } as const;
    played.node('B').says = { ...says, ...aside };
    played.record = { ...played.record, primary: null, former: 'F' };
    const available = ['A', 'B'];
    await expect(played.move({ reason: 'unfinished', available })).resolves.toMatchObject({
      primary: 'B',
    });
  });

  describe('of a node that an operator keeps', () => {
    const aside = { isAside: true, primary: '127.0.0.1:1', linkUp: false } as const;
    const kept = () => {
      const played = new FakeWorld(
        new FakeNode('R', primary(100), all),
        new FakeNode('N', replicaOf('R', 100), all),
        new FakeNode('K', { ...replicaOf('R', 500), ...aside, replicationId: 'k' }, ['own']),
      );
      played.record = { ...played.record, lineage: { a: 100 } };
      return played;
    };

    it('leaves the primary, if it is refused', async () => {
      const played = kept();
      played.node('K').refusesPromotion = true;
      await expect(played.move({ reason: 'keep', target: 'K' })).rejects.toThrow('unknown command');
      await expect(played.move({ reason: 'unfinished' })).resolves.toMatchObject({ primary: 'R' });
      expect(played.published?.slaves).toEqual(['N']);
    });

    it('leaves the data of the last term, if it is not published', async () => {
      const played = kept();
      played.at.set('after redirect', die);
      await expect(played.move({ reason: 'keep', target: 'K' })).rejects.toThrow('died');
      const { primary: chosen } = await played.move({ reason: 'unfinished' });
      expect(played.node(chosen).keys).toEqual(all);
      expect(played.node('K').keys).toEqual(['own']);
    });

    it('is carried out by whichever name of the node the operator says', async () => {
      const played = kept();
      const [K, R] = [played.node('K'), played.node('R')];
      R.isSilent = true;
      // The former primary, as another manager spells it.
      const alias = new FakeNode('K.alias', K.says, ['own']);
      (played.nodes as Map<string, FakeNode>).set('K.alias', alias);
      alias.says = { ...alias.says, runId: K.says.runId };
      played.record = { ...played.record, primary: null, former: 'K.alias' };
      const keep = { reason: 'keep', target: 'K', available: ['N', 'K', 'K.alias'] } as const;
      await expect(played.move(keep)).resolves.toMatchObject({ primary: 'K' });
    });

    it('is carried out where a replica comes at once, so that Redis begins a new stream', async () => {
      const played = kept();
      const K = played.node('K');
      K.says = { ...K.says, hasBacklog: false };
      // A client has written meanwhile.
      K.promotes = (says) => ({
        ...{ ...says, replicationId: 'new', formerReplicationId: undefined },
        offset: says.offset + 400,
      });
      await expect(played.move({ reason: 'keep', target: 'K' })).resolves.toMatchObject({
        primary: 'K',
      });
      expect(played.record.lineage).toMatchObject({ k: 500, new: 900 });
    });

    it('is not carried out where the node has been emptied', async () => {
      const played = kept();
      const K = played.node('K');
      K.says = { ...K.says, hasBacklog: false };
      K.promotes = (says) => ({
        ...{ ...says, replicationId: 'new', formerReplicationId: undefined },
        isEmpty: true,
      });
      await expect(played.move({ reason: 'keep', target: 'K' })).rejects.toThrow(
        'K has not the data any more',
      );
    });

    it('is not carried out where the node had a backlog, and names no earlier stream', async () => {
      const played = kept();
      played.node('K').promotes = (says) => ({ ...says, formerReplicationId: undefined });
      await expect(played.move({ reason: 'keep', target: 'K' })).rejects.toThrow(
        'K has not the data any more',
      );
    });

    it('is what the operator is told of, if it may still be carried out', () => {
      const { record } = kept();
      const moving = { ...record, primary: null };
      const failed = new Error('K does not answer');
      const told = /^K does not answer \(it was begun, and may still be carried out\)$/;
      expect(refusalOf(failed, record, moving)).toMatch(told);
      expect(refusalOf(failed, moving, moving)).toMatch(told);
      expect(refusalOf(failed, record, record)).toBe('K does not answer');
      expect(refusalOf(new NoCandidateError('nobody'), moving, moving)).toBe('nobody');
    });
  });
});

describe('data of the former primary arrive late', () => {
  const set = () =>
    new FakeWorld(
      new FakeNode('r1', primary(10)),
      new FakeNode('r2', { ...replicaOf('r1', 10), linkUp: true }),
      new FakeNode('r3', { ...replicaOf('r1', 10), linkUp: true }),
    );
  const down = { reason: 'down', available: ['r2', 'r3'] } as const;

  it.for(['proven', 'always'] as const)(
    'the node that gets them replaces the promoted one, before any client hears of that (rejoin: %s)',
    async (rejoin) => {
      const world = set();
      world.rejoin = rejoin;
      world.node('r1').isSilent = true;
      world.at.set('after promote', () => {
        for (const node of world.nodes.values())
          if (node.says.role === 'replica') node.underWay = 5;
      });
      await expect(world.move(down)).rejects.toThrow(/has got more since r[23] was chosen/);
      expect(world.record.primary).toBeNull();
      const { primary: chosen } = await world.move({ ...down, reason: 'unfinished' });
      expect(world.node(chosen).says.offset).toBe(15);
      expect(world.published).toMatchObject({ master: chosen, unavailable: ['r1'] });
      expect(world.published?.slaves).toHaveLength(1);
    },
  );

  it('and that counts also where it answers already, as another process that knows nothing of it', async () => {
    const world = set();
    world.node('r1').says = replication({
      ...{ runId: 'anew', replicationId: 'q', isEmpty: true, hasWritten: false },
    });
    world.at.set('after promote', () => {
      for (const node of world.nodes.values()) if (node.says.role === 'replica') node.underWay = 5;
    });
    await expect(world.move({ reason: 'lost-data' })).rejects.toThrow(/has got more since r[23]/);
    const { primary: chosen } = await world.move({ reason: 'unfinished' });
    expect(world.node(chosen).says.offset).toBe(15);
  });

  it.for(['proven', 'always'] as const)(
    'and at one that is never promoted: it is not emptied of that (rejoin: %s)',
    async (rejoin) => {
      const world = set();
      world.rejoin = rejoin;
      world.node('r1').isSilent = true;
      world.node('r3').says = { ...world.node('r3').says, priority: 0 };
      world.at.set('after promote', () => {
        world.node('r3').underWay = 5;
      });
      await expect(world.move(down)).rejects.toThrow(/r3 has got more since r2 was chosen/);
      expect(world.node('r3').says.offset).toBe(15);
      expect(world.record.primary).toBeNull();
    },
  );

  it('and also at a replica that joins later: it is set aside with it', async () => {
    const world = set();
    world.node('r2').says = replication({
      ...{ runId: 'run-r2', replicationId: 'b', formerReplicationId: 'a' },
      ...{ formerOffset: 11, offset: 10, hasWritten: false },
    });
    world.record = {
      ...world.record,
      primary: 'r2',
      replicationId: 'b',
      lineage: { a: 10, b: 10 },
    };
    world.node('r3').underWay = 5;
    await expect(world.join('r3', 'r2')).resolves.toBe('quarantined');
    expect(world.node('r3').says).toMatchObject({ isAside: true, offset: 15 });
  });

  // Such attempts have an end: each of these nodes is held, and gets nothing more.
  it.for(['proven', 'always'] as const)(
    'and the node that gets them replaces it even when all other reasons for another attempt are used up (rejoin: %s)',
    async (rejoin) => {
      const world = new FakeWorld(
        new FakeNode('r1', primary(10)),
        new FakeNode('r2', { ...replicaOf('r1', 10), linkUp: true }),
        new FakeNode('r3', { ...replicaOf('r1', 10), linkUp: true }),
        new FakeNode('r4', { ...replicaOf('r1', 10), linkUp: true }),
      );
      world.rejoin = rejoin;
      world.node('r1').isSilent = true;
      // It is up by the managers' verdict, which costs all attempts.
      world.node('r4').isSilent = true;
      const available = ['r2', 'r3', 'r4'];
      const move = () => world.move({ reason: 'unfinished', available });
      await expect(world.move({ reason: 'down', available })).rejects.toThrow(/r4 may have more/);
      await expect(move()).rejects.toThrow(/r4/);
      world.at.set('before redirect', () => {
        for (const node of world.nodes.values())
          if (node.says.role === 'replica') node.underWay = 5;
      });
      await expect(move()).rejects.toThrow(/r3 has got more since r2 was chosen/);
      await expect(move()).resolves.toMatchObject({ primary: 'r3' });
      expect(world.node('r3').says.offset).toBe(15);
    },
  );
});

describe('a node that was promoted, and is not published', () => {
  /** Keys that expire move the offset of a primary. */
  const expires = (node: FakeNode) => {
    if (node.says.role === 'primary') node.says = { ...node.says, offset: node.says.offset + 30 };
  };
  const set = () => {
    const world = new FakeWorld(
      new FakeNode('r1', primary(10), all),
      new FakeNode('r2', replicaOf('r1', 10), all),
      new FakeNode('r3', replicaOf('r1', 10), all),
    );
    world.node('r1').isSilent = true;
    return world;
  };
  const available = ['r2', 'r3'];

  it('is a replica again, and follows the one that has got more', async () => {
    const world = set();
    world.at.set('after promote', () => {
      world.node('r3').underWay = 5;
    });
    await expect(world.move({ reason: 'down', available })).rejects.toThrow(/r3 has got more/);
    expires(world.node('r2'));
    await expect(world.move({ reason: 'unfinished', available })).resolves.toMatchObject({
      primary: 'r3',
    });
    expect(world.published?.slaves).toEqual(['r2']);
  });

  it('is a replica again where the move fails later, but not where the outcome is unknown', async () => {
    const world = set();
    world.at.set('after redirect', () => {
      world.node('r2').says = { ...world.node('r2').says, runId: 'anew' };
    });
    await expect(world.move({ reason: 'down', available })).rejects.toThrow(/was started anew/);
    expect(world.primaries).toEqual(['r1']);
    world.at.set('before publish', () => {
      world.losesNextReply = true;
    });
    await expect(world.move({ reason: 'unfinished', available })).rejects.toThrow('lost');
    expect(world.primaries).toContain(world.record.primary);
  });

  it('stays a primary if it was one before: without a backlog its offset does not count', async () => {
    const world = set();
    world.node('r1').isSilent = false;
    world.record = { ...world.record, primary: null, former: 'r1' };
    world.at.set('before publish', () => {
      world.node('r1').says = { ...world.node('r1').says, runId: 'anew' };
    });
    await expect(world.move({ reason: 'unfinished' })).rejects.toThrow(/was started anew/);
    expect(world.primaries).toEqual(['r1']);
  });
});

it('a node that was set aside and goes on as the primary waits for the views of it', async () => {
  const world = new FakeWorld(
    new FakeNode('r1', { ...replicaOf('r2', 10), isAside: true, linkUp: false }),
    new FakeNode('r2', { ...replicaOf('r1', 5), linkUp: false }),
  );
  await world.move({ reason: 'lost-role' });
  expect(world.record.primary).toBe('r1');
  const [revoked = 0] = world.revokedAtMs;
  const [published = 0] = world.publishedAtMs;
  expect(published - revoked).toBeGreaterThanOrEqual(lapseMs);
});

describe('a node that does not take our password', () => {
  const set = () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 100), all),
      new FakeNode('B', replicaOf('F', 100), all),
    );
    world.node('B').isRefusing = true;
    return world;
  };

  it('holds up no request', async () => {
    expect(await set().move({ reason: 'request', target: 'A' })).toMatchObject({ primary: 'A' });
  });

  it('ends no attempt to replace a dead primary', async () => {
    const world = set();
    world.node('F').isSilent = true;
    const moved = await world.move({ reason: 'down', available: ['A', 'B'] });
    expect(moved).toMatchObject({ primary: 'A' });
  });
});

it('a new primary keeps its configuration before any client hears of it', async () => {
  const world = new FakeWorld(
    new FakeNode('F', primary(100), all),
    new FakeNode('A', replicaOf('F', 100), all),
  );
  world.at.set('after publish', () => {
    expect(world.keptConfigs).toEqual(['A']);
  });
  await world.move({ reason: 'request', target: 'A' });
  expect(world.keptConfigs).toEqual(['A', 'F']);
});

describe('a node counts by what it says now', () => {
  const set = (offset: number) =>
    new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', offset), all),
    );

  it('another process than the one that was chosen is not promoted', async () => {
    const world = set(90);
    world.whileSleeping = () => {
      world.node('A').says = { ...world.node('A').says, runId: 'anew', offset: 100 };
    };
    await expect(world.move({ reason: 'request', target: 'A' })).rejects.toThrow(
      'A has not the data any more that it was chosen by',
    );
    expect(world.primaries).toEqual(['F']);
  });

  it('the former primary that begins another stream has more than when it was stopped', async () => {
    const world = set(100);
    world.at.set('after promote', () => {
      world.node('F').says = { ...world.node('F').says, replicationId: 'b', offset: 120 };
      world.node('F').keys = [...all, 'own'];
    });
    await expect(world.move({ reason: 'request' })).resolves.toMatchObject({ primary: 'A' });
    expect(world.node('F')).toMatchObject({ keys: [...all, 'own'], says: { isAside: true } });
  });

  it('the former primary that starts again and loads is waited out: it may take writes', async () => {
    const world = set(100);
    world.at.set('after promote', () => {
      world.node('F').says = { ...world.node('F').says, runId: 'anew', loading: true };
    });
    await expect(world.move({ reason: 'request' })).resolves.toMatchObject({ primary: 'A' });
    const [revoked = 0] = world.revokedAtMs;
    expect(world.publishedAtMs[0]).toBeGreaterThanOrEqual(revoked + lapseMs);
  });

  it('a node that the managers say is down is promoted if it answers, and has most', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), all),
      new FakeNode('A', replicaOf('F', 90), ['k1']),
      new FakeNode('B', replicaOf('F', 100), all),
    );
    world.node('F').isSilent = true;
    await expect(world.move({ reason: 'down', available: ['A'] })).resolves.toMatchObject({
      primary: 'B',
    });
  });
});

it('of nodes that share no stream on record, and have all forked, the one with most is promoted', async () => {
  const forked = (stream: string, offset: number) => ({
    ...{ replicationId: stream, offset, formerReplicationId: 'z', formerOffset: 11 },
  });
  const world = new FakeWorld(
    new FakeNode('A', forked('x', 50), ['k1']),
    new FakeNode('B', forked('y', 70), all),
  );
  world.record = { ...world.record, primary: null, former: null, replicationId: null, runId: null };
  await expect(world.move({ reason: 'unfinished' })).resolves.toMatchObject({ primary: 'B' });
});

it('a request for one node waits while that has no connection, and says what it lacks', async () => {
  const world = new FakeWorld(
    new FakeNode('F', primary(100), all),
    new FakeNode('A', { ...replicaOf('F', 50), linkUp: false }, ['k1']),
  );
  const request = () => world.move({ reason: 'request', target: 'A' });
  await expect(request()).rejects.toMatchObject({
    ...{ name: 'MoveTooEarlyError', isCopying: false },
    message: expect.stringMatching(/^A .* lacks what F has \(50 bytes of writes after 50\)$/),
  });
  world.node('A').says = { ...world.node('A').says, replicationId: 'x' };
  await expect(request()).rejects.toMatchObject({
    ...{ name: 'MoveTooEarlyError', isCopying: false },
    message: expect.stringMatching(/has no connection with its primary, and no data of the set$/),
  });
  expect(world.revokedAtMs).toEqual([]);
});

it('a primary that was promoted by hand with less is taken only after a wait, unless all follow it', async () => {
  const world = new FakeWorld(
    new FakeNode('F', primary(100), all),
    new FakeNode('A', {
      ...{ replicationId: 'u', offset: 90, formerReplicationId: 'a', formerOffset: 91 },
      hasWritten: false,
    }),
  );
  world.position = { stream: 'a', offset: 100 };
  world.node('F').isSilent = true;
  await expect(world.move({ reason: 'found', target: 'A', available: ['A'] })).rejects.toThrow(
    'A cannot have all that the primary had, and F may have it',
  );
});

it('a record with a shorter view than that of clients gets theirs', async () => {
  const world = new FakeWorld(
    new FakeNode('F', primary(100), all),
    new FakeNode('A', replicaOf('F', 100), all),
  );
  world.record = { ...world.record, viewMs: viewMs / 2 };
  await world.move({ reason: 'request' });
  expect(world.record.viewMs).toBe(viewMs);
});

describe('the reason why no node can be promoted', () => {
  const errors = new Map([['A', new Error('A does not answer')]]);
  const said = (known: Map<string, Replication>) =>
    describeNodes(known, { errors } as unknown as MoveWorld, 'down');

  it('names the nodes that do not answer, and gives no advice where none does', () => {
    expect(said(new Map())).toBe('no other node answers; A does not answer');
    const B = replication({ role: 'replica', replicationId: 'x', offset: 7 });
    expect(said(new Map([['B', B]]))).toMatch(/^B \(replica, at 7 in x\); A does not .*keep NODE$/);
    expect(said(new Map([['A', B]]))).toMatch(/^A \(replica, at 7 in x\); an operator/);
  });

  it('is not what a node said before it answered', async () => {
    const hands = { replication: async () => replication() };
    const world = { nodes: ['A'], errors: new Map(errors), hands } as unknown as MoveWorld;
    await askAll(['A'], world);
    expect([...world.errors]).toEqual([]);
  });
});

test.each<[string, Partial<Replication>, boolean]>([
  ['what it had', {}, true],
  ['more', { formerOffset: 111 }, true],
  ['less', { formerOffset: 100 }, false],
  ['another stream', { formerReplicationId: 'z' }, false],
  ['another process', { runId: 'anew' }, false],
])('a promoted replica with %s', (_, more, expected) => {
  const has = replication({ role: 'replica', offset: 100 });
  const promoted = replication({
    ...{ replicationId: 'b', formerReplicationId: 'a', formerOffset: 101, offset: 100 },
    ...more,
  });
  expect(isStillThere(has, promoted)).toBe(expected);
});
