// How the elected manager serves requests. Nodes and ZooKeeper are played.
import { describe, expect, it } from 'vitest';
import { encodeNodes, pathsBelow } from '../src/layout.ts';
import type { Replication } from '../src/redis/node-connection.ts';
import { FakeNode, lapseMs, primary, replicaOf } from './support/move-world.ts';
import { FakeReign } from './support/reign-world.ts';

/** The primary `p:1`, and two replicas. */
const set = () =>
  new FakeReign(
    new FakeNode('p:1', primary(100)),
    new FakeNode('a:1', replicaOf('p:1', 100)),
    new FakeNode('b:1', replicaOf('p:1', 100)),
  );

it('a request is carried out, and answered', async () => {
  const world = set();
  const path = world.ask('b:1');
  await world.looks(3);
  expect(world.request(path).outcome).toEqual({ done: true, primary: 'b:1', term: 2 });
  expect(world.record).toMatchObject({ primary: 'b:1', term: 2 });
  expect(world.trouble).toBeUndefined();
});

describe('a request that is withdrawn before the record is revoked', () => {
  const withdrawn = async (world: FakeReign, path: string) => {
    world.at.set('before revoke', () => world.zk.znodes.delete(path));
    const before = world.record;
    await world.looks(2);
    expect(world.record).toEqual({ ...before, lineage: world.record.lineage });
    expect(world.told.filter(({ type }) => type === 'step' || type === 'move-failed')).toEqual([]);
    expect(world.trouble).toBeUndefined();
  };

  it('is not carried out', async () => {
    const world = set();
    await withdrawn(world, world.ask('b:1'));
    // The next one is.
    world.ask('a:1');
    await world.looks(2);
    expect(world.record).toMatchObject({ primary: 'a:1', term: 2 });
  });

  it('is not carried out either where it says whose data to keep', async () => {
    const world = set();
    world.node('b:1').says = {
      ...world.node('b:1').says,
      ...{ offset: 150, isAside: true, primary: '127.0.0.1:1', linkUp: false },
    };
    await withdrawn(world, world.ask('b:1', { action: 'keep' }));
  });

  it('is carried out where a client of the gem has made it, which cannot withdraw', async () => {
    const world = set();
    world.askAsGem('b:1');
    await world.looks(2);
    expect(world.record).toMatchObject({ primary: 'b:1', term: 2 });
  });
});

it('a request of the gem that waits for a node does not hold up a request for another one', async () => {
  const world = set();
  world.node('a:1').says = { ...world.node('a:1').says, linkUp: false, syncing: true };
  world.askAsGem('a:1');
  const path = world.ask('b:1');
  await world.looks(3);
  expect(world.request(path).outcome).toMatchObject({ done: true, primary: 'b:1' });
  // The request is not forgotten.
  world.node('a:1').says = copied(world, 'a:1', 'b:1');
  await world.looks(3);
  expect(world.record.primary).toBe('a:1');
});

describe('an operator says whose data to keep', () => {
  const outcomeOf = async (world: FakeReign, node: string): Promise<unknown> => {
    const path = world.ask(node, { action: 'keep' });
    await world.looks(3);
    return world.request(path).outcome;
  };
  const aside = { isAside: true, primary: '127.0.0.1:1', linkUp: false } as const;

  it('of a replica that is not set aside: refused, for the primary has more', async () => {
    const world = set();
    world.node('p:1').says = { ...world.node('p:1').says, offset: 1_000_100 };
    expect(await outcomeOf(world, 'b:1')).toEqual({
      done: false,
      error: 'b:1 is not set aside, and p:1 is the primary: use incumbent-redis failover b:1',
    });
    expect(world.record).toMatchObject({ primary: 'p:1', term: 1 });
    expect(world.node('p:1').says.isAside).toBe(false);
  });

  it('of the primary itself: refused, nothing is to be done', async () => {
    const world = set();
    const error = 'p:1 is the primary already';
    expect(await outcomeOf(world, 'p:1')).toEqual({ done: false, error });
    expect(world.record.term).toBe(1);
  });

  it('of a node that is set aside: it is the primary', async () => {
    const world = set();
    world.node('b:1').says = { ...world.node('b:1').says, ...aside, offset: 150 };
    expect(await outcomeOf(world, 'b:1')).toMatchObject({ done: true, primary: 'b:1' });
  });

  it.for([
    ['counts as down', (world: FakeReign) => world.down.add('p:1')],
    ['is silent', (world: FakeReign) => Object.assign(world.node('p:1'), { isSilent: true })],
    [
      'is aside',
      (world: FakeReign) => {
        const { says } = world.node('p:1');
        world.node('p:1').says = { ...says, ...aside, role: 'replica' };
      },
    ],
    [
      'was started anew',
      (world: FakeReign) => {
        const { says } = world.node('p:1');
        world.node('p:1').says = { ...says, runId: 'anew', replicationId: 'n', offset: 5 };
      },
    ],
  ] as const)('of a replica, while the primary on record %s: it is the primary', async ([, to]) => {
    const world = set();
    to(world);
    expect(await outcomeOf(world, 'b:1')).toMatchObject({ done: true, primary: 'b:1' });
  });

  it('of the primary on record in another process: it is the primary again', async () => {
    const world = set();
    const { says } = world.node('p:1');
    world.node('p:1').says = { ...says, runId: 'anew', replicationId: 'n', offset: 5 };
    expect(await outcomeOf(world, 'p:1')).toMatchObject({ done: true, primary: 'p:1' });
  });
});

describe('a manager that can do nothing writes into the requests why', () => {
  it.for([
    [
      'too few managers',
      (world: FakeReign): void => {
        world.requiredNodeManagers = 2;
      },
      /required/,
    ],
    [
      'managers of the gem',
      (world: FakeReign) => {
        const lock = '/_zklocking/__set__master_redis_node_manager_lock';
        world.zk.put(lock, '');
        world.zk.put(`${lock}/ex0000000000`, '', 9n);
      },
      /managers of the Ruby gem/,
    ],
    [
      'something else stands in the znodes',
      (world: FakeReign) => world.zk.put('/set/primary', 'x'),
      /which is not what redis_failover keeps there/,
    ],
  ] as const)('%s', async ([, to, words]) => {
    const world = set();
    to(world);
    const paths = [world.ask('b:1'), world.ask('b:1', { action: 'keep' })];
    await world.looks(1);
    for (const path of paths) {
      expect(world.request(path).progress).toMatch(words);
      expect(world.request(path).progress).toBe(world.trouble?.message);
      expect(world.request(path).outcome).toBeUndefined();
    }
  });

  it('once a second, and only what is new', async () => {
    const world = set();
    world.requiredNodeManagers = 2;
    world.ask('b:1');
    await world.looks(5);
    expect(world.zk.sets).toHaveLength(1);
  });

  it('but nothing of what does not keep them waiting', async () => {
    const world = set();
    world.node('a:1').says = { ...world.node('a:1').says, linkUp: false, syncing: true };
    world.refusesUs.add('b:1');
    world.down.add('b:1');
    const path = world.ask('a:1');
    await world.looks(10, () => {
      expect(world.trouble?.code).toBe('NODE_REFUSED');
      expect(world.request(path).progress).toBe('a:1 is still copying the data');
    });
  });

  it('and not what another one was refused for', async () => {
    const world = set();
    const [refused, other] = [world.ask('x:1'), world.ask('b:1')];
    await world.looks(1);
    expect(world.request(refused).outcome).toMatchObject({ done: false });
    expect(world.request(other).progress).toBeUndefined();
    await world.looks(2);
    expect(world.request(other).outcome).toMatchObject({ done: true, primary: 'b:1' });
  });
});

/** When each look of one term began, counted from the first one. */
async function looksAt(world: FakeReign, most: number, afterLook: () => void = () => {}) {
  const fromMs = world.nowMs;
  const at = [0];
  await world.looks(most, () => {
    at.push(world.nowMs - fromMs);
    afterLook();
  });
  return at.slice(0, most);
}

describe('everything is looked at', () => {
  it('once a second where nothing is to be done', async () => {
    expect(await looksAt(set(), 3)).toEqual([0, 1_000, 2_000]);
  });

  it('five times a second while a request waits, and the position is written once a second', async () => {
    const world = set();
    world.node('a:1').says = { ...world.node('a:1').says, linkUp: false, syncing: true };
    world.ask('a:1');
    const grow = () => {
      const { says } = world.node('p:1');
      world.node('p:1').says = { ...says, offset: says.offset + 1 };
    };
    expect(await looksAt(world, 10, grow)).toEqual([...Array(10).keys()].map((n) => n * 200));
    expect(world.positionsWritten).toBe(2);
  });
});

it('a request that waits for a copy is refused when its time is up', async () => {
  const world = set();
  world.node('a:1').says = { ...world.node('a:1').says, linkUp: false, syncing: true };
  const path = world.ask('a:1', { waitMs: 2_000 });
  await world.looks(10);
  expect(world.request(path).outcome).toBeUndefined();
  await world.looks(11);
  expect(world.request(path).outcome).toMatchObject({ done: false });
  expect(world.record).toMatchObject({ primary: 'p:1', term: 1 });
});

it('what managers of the gem have published is outlived for 9.9 s', async () => {
  const world = set();
  world.record = { ...world.record, gemViews: true };
  const views: boolean[] = [];
  await world.looks(13, () => void views.push(world.record.gemViews));
  expect(views).toEqual([...Array(10).fill(true), false, false, false]);
});

describe('a manager whose own report is missing', () => {
  it('changes nothing, and says so after ten seconds', async () => {
    const world = set();
    world.isReporting = false;
    const before = world.record;
    const troubles: unknown[] = [];
    await world.looks(12, () => void troubles.push(world.trouble?.message));
    expect(world.record).toEqual(before);
    const words = 'the report of this manager (m) is not in place';
    expect(troubles).toEqual([...Array(10).fill(undefined), words, words]);
  });
});

describe('the published nodes', () => {
  const after = async (change: (world: FakeReign) => void) => {
    const world = set();
    change(world);
    await world.looks(2);
    return world.published;
  };
  const replicaIs = (more: object) => (world: FakeReign) => {
    world.node('b:1').says = { ...world.node('b:1').says, ...more };
  };

  it('name others than before also when as many are there', async () => {
    const nodes = await after((world) => {
      world.published = { master: 'p:1', slaves: ['a:1'], unavailable: ['b:1'] };
      world.node('a:1').isSilent = true;
    });
    expect(nodes).toEqual({ master: 'p:1', slaves: ['b:1'], unavailable: ['a:1'] });
  });

  it.for([
    ['is loading', { loading: true }, false],
    ['has no link, and serves stale reads', { linkUp: false }, true],
    ['has no link, and serves no stale reads', { linkUp: false, servesStaleReads: false }, false],
    ['copies, and serves no stale reads', { syncing: true, servesStaleReads: false }, false],
    ['serves no stale reads, and is linked', { servesStaleReads: false }, true],
  ] as const)('a replica that %s: %j', async ([, more, isServing]) => {
    const { slaves } = await after(replicaIs(more));
    expect(slaves.includes('b:1')).toBe(isServing);
  });
});

describe('a primary that was started anew, with less than a node that is away', () => {
  it('is set aside and waited for', async () => {
    const world = set();
    const { says } = world.node('p:1');
    world.node('p:1').says = { ...says, runId: 'anew', replicationId: 'n', offset: 5 };
    world.node('a:1').isSilent = true;
    world.node('b:1').isSilent = true;
    await world.looks(1);
    expect(world.node('p:1').says.isAside).toBe(true);
    expect(world.record).toMatchObject({ primary: 'p:1', term: 1 });
    expect(world.trouble).toEqual({
      code: 'NO_PRIMARY',
      message:
        'p:1 was started anew, and a:1, b:1 may have more: it is waited for; incumbent-redis keep p:1 ' +
        'ends that',
    });
  });
});

describe('a primary that was started anew while its replicas stand still', () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  /** The replicas answer when the primary has got an order, or after many turns. */
  const played = async (says: Partial<Replication>) => {
    const world = set();
    const { says: before } = world.node('p:1');
    world.node('p:1').says = { ...before, runId: 'anew', replicationId: 'n', offset: 5, ...says };
    let goOn: () => void = () => {};
    const answer = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    for (const node of ['a:1', 'b:1']) world.standsStill.set(node, answer);
    const looking = world.looks(2);
    for (let turns = 0; turns < 50 && world.orders.length === 0; turns += 1) await turn();
    const first = [...world.orders];
    goOn();
    await looking;
    return { world, first };
  };

  it('is set aside before they have answered: they would copy it as soon as they go on', async () => {
    const { first } = await played({ isEmpty: true });
    expect(first).toEqual(['p:1 → 127.0.0.1:1']);
  });

  it('so it is with one that has some of the data', async () => {
    const { first } = await played({});
    expect(first).toEqual(['p:1 → 127.0.0.1:1']);
  });

  it('once it is set aside they are waited for, and one of them is the next primary', async () => {
    const { world } = await played({ isEmpty: true });
    expect(world.record).toMatchObject({ primary: 'a:1', term: 2 });
  });

  it('no node is waited for either while it does not answer: it may be back', async () => {
    const world = set();
    let goOn: () => void = () => {};
    world.standsStill.set(
      'a:1',
      new Promise((resolve) => {
        goOn = resolve;
      }),
    );
    world.refusesUs.add('p:1');
    let isOver = false;
    const looking = world.looks(1).finally(() => {
      isOver = true;
    });
    for (let turns = 0; turns < 50 && !isOver; turns += 1) await turn();
    const wasOver = isOver;
    goOn();
    await looking;
    expect(wasOver).toBe(true);
  });
});

it('a primary that is started anew between two questions of a look is judged at once', async () => {
  const world = set();
  let asked = 0;
  world.whenAsked = (node) => {
    if (node === 'p:1') asked += 1;
    if (asked === 2) {
      const { says } = world.node('p:1');
      world.node('p:1').says = { ...says, runId: 'anew', replicationId: 'n', offset: 5 };
    }
  };
  await world.looks(1);
  expect(world.wakes).toBe(1);
});

it('that one node refuses to be set aside keeps no other from it', async () => {
  const world = set();
  const { says } = world.node('p:1');
  world.node('p:1').says = { ...says, runId: 'anew', replicationId: 'n', offset: 5 };
  world.unlisted.add('p:1');
  world.hasOtherManager = true;
  world.refusesOrders.add('a:1');
  await world.looks(1);
  expect(world.orders).toEqual(['b:1 → 127.0.0.1:2']);
});

describe('a manager whose list lacks the primary on record', () => {
  const misled = () => {
    const world = set();
    world.unlisted.add('p:1');
    return world;
  };
  const returns = (world: FakeReign) => {
    const { says } = world.node('p:1');
    world.node('p:1').says = { ...says, runId: 'anew', replicationId: 'n', offset: 5 };
    for (const node of ['a:1', 'b:1']) {
      world.node(node).says = { ...world.node(node).says, linkUp: false };
    }
  };

  it('leaves the set alone, and says which one its list lacks', async () => {
    const world = misled();
    await world.looks(3);
    expect(world.trouble).toMatchObject({ code: 'LAYOUT', message: expect.stringMatching(/p:1/) });
    expect(world.node('a:1').says.primary).toBe('p:1');
    expect(world.record).toMatchObject({ primary: 'p:1', term: 1 });
  });

  it('keeps its nodes from copying a primary that came back with less', async () => {
    const world = misled();
    returns(world);
    await world.looks(2);
    // Held, and not set aside, because the manager that judges them may choose them.
    for (const node of ['a:1', 'b:1']) {
      expect(world.node(node).says).toMatchObject({ primary: '127.0.0.1:2', isAside: false });
    }
    expect(world.node('p:1').says.role).toBe('primary');
  });

  it('lets another one lead after a second, if that one lists it', async () => {
    const world = misled();
    world.hasOtherManager = true;
    const began = world.nowMs;
    await world.looks(1_000);
    expect(world.nowMs - began).toBeGreaterThanOrEqual(1_000);
    expect(world.nowMs - began).toBeLessThan(2_000);
  });
});

describe('the first record of ours', () => {
  /** A manager of the gem has named `p:1`. */
  const unmanaged = () => {
    const world = set();
    world.zk.znodes.delete(pathsBelow('/set').primary);
    return world;
  };

  it('comes with a look at the node that replicas are about to copy: a replica with more is set aside', async () => {
    const world = unmanaged();
    // It was started anew without data while no manager led.
    const empty = { runId: 'anew', replicationId: 'n', offset: 0, isEmpty: true };
    world.node('p:1').says = { ...world.node('p:1').says, ...empty };
    world.node('a:1').says = { ...world.node('a:1').says, linkUp: false };
    // It has not noticed.
    world.node('b:1').says = { ...world.node('b:1').says, linkUp: true };
    await world.looks(2);
    expect(world.record).toMatchObject({ primary: 'p:1', term: 1 });
    expect(world.node('a:1').says.isAside).toBe(true);
    expect(world.node('b:1').says.isAside).toBe(true);
  });

  it('leaves replicas that copy nothing in place of more', async () => {
    const world = unmanaged();
    world.node('a:1').says = { ...world.node('a:1').says, linkUp: false };
    await world.looks(2);
    expect(world.node('a:1').says.primary).toBe('p:1');
    expect(world.node('b:1').says.primary).toBe('p:1');
  });

  it('of a primary that is down takes a node that comes back there for another process', async () => {
    const world = unmanaged();
    world.node('p:1').isSilent = true;
    world.at.set('before fence', () => {
      const node = world.node('p:1');
      node.isSilent = false;
      node.says = { ...node.says, runId: 'anew', replicationId: 'n', offset: 5 };
    });
    await world.looks(3);
    expect(world.record).toMatchObject({ primary: 'a:1' });
    expect(world.node('p:1').says.isAside).toBe(true);
  });
});

function copied(world: FakeReign, node: string, of: string) {
  const { runId } = world.node(node).says;
  return { ...world.node(of).says, runId, role: 'replica', primary: of } as const;
}

it('after the gem has moved the primary, the next term begins when no view of the last one holds', async () => {
  const world = set();
  const { nodes } = pathsBelow('/set');
  world.zk.znodes.delete(nodes);
  world.node('p:1').says = { ...world.node('p:1').says, ...replicaOf('b:1', 100) };
  world.node('b:1').says = { ...world.node('b:1').says, role: 'primary', primary: undefined };
  world.zk.put(nodes, encodeNodes({ master: 'b:1', slaves: ['p:1', 'a:1'], unavailable: [] }));
  const seenAtMs = world.nowMs;
  let begunAtMs: number | undefined;
  await world.looks(4, () => {
    if (world.record.term === 2) begunAtMs ??= world.nowMs;
  });
  expect(world.record).toMatchObject({ term: 2, primary: 'b:1', former: 'p:1' });
  expect((begunAtMs ?? 0) - seenAtMs).toBeGreaterThanOrEqual(lapseMs);
});

/** The first look was at a healthy set, so the lineage and the position are on record already. */
const known = async () => {
  const world = set();
  await world.looks(1);
  return world;
};

describe('what ZooKeeper does not take is told as the trouble', () => {
  const words = 'the connection to ZooKeeper was lost';

  it('when the views of the gem end', async () => {
    const world = await known();
    world.record = { ...world.record, gemViews: true };
    const troubles: unknown[] = [];
    await world.looks(12, () => {
      troubles.push(world.trouble?.message);
      if (troubles.length === 10) world.zk.failsNext.set('commit', new Error(words));
    });
    expect(troubles).toEqual([...Array(10).fill(undefined), words, undefined]);
    expect(world.record.gemViews).toBe(false);
  });

  it('when a request of the gem is noted as seen', async () => {
    const world = await known();
    world.askAsGem('p:1');
    world.zk.failsNext.set('commit', new Error(words));
    const troubles: unknown[] = [];
    await world.looks(2, () => void troubles.push(world.trouble?.message));
    expect(troubles).toEqual([words, undefined]);
    expect(world.record.manualSeen).not.toBe('0');
  });

  it('when a request is told what it waits for', async () => {
    const world = await known();
    world.node('a:1').says = { ...world.node('a:1').says, linkUp: false, syncing: true };
    const path = world.ask('a:1');
    world.zk.failsNext.set('set', new Error(words));
    const troubles: unknown[] = [];
    await world.looks(2, () => void troubles.push(world.trouble?.message));
    expect(troubles).toEqual([words, undefined]);
    expect(world.request(path).outcome).toBeUndefined();
  });
});

describe('what an operator has decided ends the look', () => {
  it('when a node that was set aside is to be kept: it is moved to once', async () => {
    const world = await known();
    world.node('b:1').says = {
      ...world.node('b:1').says,
      ...{ offset: 150, isAside: true, primary: '127.0.0.1:1', linkUp: false },
    };
    world.ask('b:1', { action: 'keep' });
    await world.looks(1);
    expect(world.told.filter(({ type }) => type === 'moved')).toHaveLength(1);
    expect(world.record).toMatchObject({ primary: 'b:1', former: 'p:1', term: 2 });
    expect(world.trouble).toBeUndefined();
  });
});

it('a manager in trouble lets another one try after fifteen seconds', async () => {
  const world = set();
  world.hasOtherManager = true;
  world.requiredNodeManagers = 3;
  const began = world.nowMs;
  await world.looks(100);
  expect(world.trouble?.code).toBe('TOO_FEW_MANAGERS');
  expect(world.nowMs - began).toBe(15_000);
});

it('a request is told of another trouble a second after the last one, not at each look', async () => {
  const world = set();
  world.unlisted.add('p:1');
  world.hasOtherManager = true;
  world.requiredNodeManagers = 2;
  const path = world.ask('b:1');
  const told: unknown[] = [];
  const fromMs = world.nowMs;
  await world.looks(7, () => {
    world.hasOtherManager = false;
    const isNew = /report at all: 1/.test(world.request(path).progress ?? '');
    told.push([world.nowMs - fromMs, isNew]);
  });
  expect(told).toEqual([
    [200, false],
    [400, false],
    [600, false],
    [800, false],
    [1_000, false],
    [1_200, true],
    [1_400, true],
  ]);
});

describe('a move that waits for a node which may have more', () => {
  /** `p:1` is down. So is `b:1`, which may have data that `a:1` lacks. */
  const waiting = async () => {
    const world = await known();
    world.node('a:1').says = { ...world.node('a:1').says, offset: 50 };
    world.node('p:1').isSilent = true;
    world.node('b:1').isSilent = true;
    return world;
  };
  const failures = (world: FakeReign) =>
    world.told.flatMap((event) => (event.type === 'move-failed' ? [event.error.message] : []));

  it('is told once, although it is tried five times a second', async () => {
    const world = await waiting();
    await world.looks(10);
    expect(failures(world)).toEqual([expect.stringMatching(/nobody is promoted yet: a:1 /)]);
  });

  it('is told to have failed when it fails for another reason after that', async () => {
    const world = await waiting();
    await world.looks(2, () => {
      world.node('a:1').says = { ...world.node('a:1').says, priority: 0 };
    });
    expect(failures(world)).toEqual([
      expect.stringMatching(/^nobody is promoted yet: a:1 /),
      expect.stringMatching(/^(?!nobody is promoted yet)/),
    ]);
  });
});

it('a manager that has failed three times to move the primary lets another one try', async () => {
  const world = await known();
  world.node('p:1').isSilent = true;
  for (const node of ['a:1', 'b:1']) {
    world.node(node).says = { ...world.node(node).says, priority: 0 };
  }
  await world.looks(10);
  expect(world.told.filter(({ type }) => type === 'move-failed')).toHaveLength(3);
});
