// How a manager changes nodes, over connections that are played.
import type { Term } from 'incumbent';
import { describe, expect, it } from 'vitest';
import type { ManagerEvent } from '../src/manager/events.ts';
import { Hands } from '../src/manager/hands.ts';
import type { NodeLink, Replication } from '../src/redis/node-connection.ts';
import type { TailCommands, TailQuestion } from '../src/redis/tail.ts';
import { replication } from './support/replication.ts';

type Answer = (command: string) => unknown;

/** @param answer to each command; undefined: `OK` */
function play(answer: Answer = () => undefined, tail?: () => Promise<TailCommands>) {
  const ending = new AbortController();
  const sent: string[] = [];
  const names: (string | undefined)[] = [];
  const told: ManagerEvent[] = [];
  let closed = 0;
  let isLeading = true;
  let role: Replication['role'] = 'primary';
  const link: NodeLink = {
    isOpen: true,
    closed: new AbortController().signal,
    replication: async () => replication({ role }),
    command: async (parts) => {
      const command = parts.join(' ');
      // An order arrives later than it was sent.
      await new Promise((resolve) => setImmediate(resolve));
      sent.push(command);
      const reply = await answer(command);
      if (reply !== 'ignored' && command.startsWith('REPLICAOF ')) {
        role = command === 'REPLICAOF NO ONE' ? 'primary' : 'replica';
      }
      return (reply ?? 'OK') as Awaited<ReturnType<NodeLink['command']>>;
    },
    close: () => {
      closed += 1;
    },
  };
  const term = {
    token: 7n,
    signal: ending.signal,
    assertLeading: () => {
      if (!isLeading) throw new Error('the term is over');
    },
  };
  const hands = new Hands(
    {
      ...{ id: 'm', access: {}, nodeTimeoutMs: 100, hooks: {} },
      tell: (event) => void told.push(event),
      openNode: async (_address, { name }) => {
        names.push(name);
        return link;
      },
      readTail: tail,
    },
    term as unknown as Term,
  );
  const endTerm = () => {
    isLeading = false;
    ending.abort(new Error('the term is over'));
  };
  return { hands, sent, names, told, endTerm, closed: () => closed };
}

const clients = (...lines: readonly string[]) => {
  return (command: string) => {
    if (command === 'CLIENT ID') return 5;
    return command === 'CLIENT LIST' ? lines.join('\n') : undefined;
  };
};

describe('a connection', () => {
  it('is named after the term and the manager, and is one for all that is done', async () => {
    const { hands, names } = play(clients());
    await hands.replication('a:1');
    await hands.pauseWrites('a:1', 1_000);
    expect(names).toEqual(['incumbent-redis:7:m:1']);
  });

  it('closes what other managers have open there, and tells how many', async () => {
    const { hands, sent, told } = play(
      clients(
        'id=5 addr=x name=incumbent-redis:7:m',
        'id=3 addr=x name=incumbent-redis:6:other',
        'id=9 addr=x name=incumbent-redis:7:m db=0',
        'id=4 addr=x name=incumbent-redis-watch:other',
        'id=2 addr=x name=',
      ),
    );
    await hands.replication('a:1');
    const kills = sent.filter((command) => command.startsWith('CLIENT KILL'));
    expect(kills).toEqual(['CLIENT KILL ID 3', 'CLIENT KILL ID 9']);
    expect(told).toEqual([{ type: 'fenced', node: 'a:1', connections: 2 }]);
  });

  it('leaves those that are in use under another name of the node', async () => {
    const lines = ['id=5 addr=x name=incumbent-redis:7:m:1'];
    let id = 5;
    const { hands, sent, told } = play((command) => {
      if (command === 'CLIENT ID') return id;
      return command === 'CLIENT LIST' ? lines.join('\n') : undefined;
    });
    await hands.replication('a:1');
    id = 6;
    // Each node counts its connections by itself.
    lines.push('id=6 addr=x name=incumbent-redis:7:m:2', 'id=8 addr=x name=incumbent-redis:7:m:1');
    await hands.replication('a.alias:1');
    const kills = sent.filter((command) => command.startsWith('CLIENT KILL'));
    expect(kills).toEqual(['CLIENT KILL ID 8']);
    expect(told).toEqual([{ type: 'fenced', node: 'a.alias:1', connections: 1 }]);
  });

  it('tells nothing where there are no others', async () => {
    const { hands, told } = play(clients('id=5 addr=x name=incumbent-redis:7:m'));
    await hands.replication('a:1');
    expect(told).toEqual([]);
  });

  it('is closed with the term, and no other one is opened', async () => {
    const { hands, names, endTerm, closed } = play(clients());
    await hands.replication('a:1');
    endTerm();
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed()).toBe(1);
    await expect(hands.replication('b:1')).rejects.toThrow('the term is over');
    expect(names).toHaveLength(1);
  });

  it('is closed when the term ends while it is made', async () => {
    const world: ReturnType<typeof play> = play((command) => {
      if (command === 'CLIENT LIST') world.endTerm();
      return undefined;
    });
    await expect(world.hands.replication('a:1')).rejects.toThrow('has ended');
    expect(world.closed()).toBeGreaterThan(0);
  });
});

describe('a change', () => {
  it('is not sent when the term is over', async () => {
    const { hands, sent, endTerm } = play(clients());
    await hands.replication('a:1');
    const before = sent.length;
    const pausing = hands.pauseWrites('a:1', 1_000);
    endTerm();
    await expect(pausing).rejects.toThrow('the term is over');
    expect(sent).toHaveLength(before);
  });

  it('of the configuration that a node refuses is told once', async () => {
    const { hands, told } = play((command) => {
      if (command === 'CONFIG REWRITE') throw new Error('ERR no config file');
      return clients()(command);
    });
    await hands.keepConfig('a:1');
    await hands.keepConfig('a:1');
    const error = new Error('ERR no config file');
    expect(told).toEqual([{ type: 'config-not-kept', node: 'a:1', error }]);
  });

  it.for([
    ['makePrimary', ['REPLICAOF NO ONE']],
    ['makeReplica', ['REPLICAOF ::1 6379']],
    ['setAside', ['REPLICAOF 127.0.0.1 1', 'CLIENT KILL TYPE slave']],
    ['hold', ['REPLICAOF 127.0.0.1 2', 'CLIENT KILL TYPE slave']],
    ['resumeWrites', ['CLIENT UNPAUSE']],
  ] as const)('%s sends %j, and resolves when the node says so', async ([act, orders]) => {
    const { hands, sent } = play(clients());
    // Each of these changes the role.
    if (act === 'makePrimary') await hands.makeReplica('a:1', 'b:2');
    await hands.replication('a:1');
    const before = sent.length;
    await hands[act]('a:1', '[::1]:6379');
    expect(sent.slice(before)).toEqual(orders);
  });

  it('is refused when the node does not say that it was done', async () => {
    const ignores = play((command) =>
      command.startsWith('REPLICAOF ') ? 'ignored' : clients()(command),
    );
    const { hands } = ignores;
    await expect(hands.makeReplica('a:1', 'b:2')).rejects.toThrow('says that it is a primary');
    await expect(hands.setAside('a:1')).rejects.toThrow('says that it is a primary');
    const stubborn = play((command) =>
      command === 'REPLICAOF NO ONE' ? 'ignored' : clients()(command),
    );
    await stubborn.hands.makeReplica('a:1', 'b:2');
    await expect(stubborn.hands.makePrimary('a:1')).rejects.toThrow('says that it is a replica');
  });

  it.for(['keepConfig', 'readTail', 'hasAny'] as const)(
    '%s that fails because the term has ended says that',
    async (act) => {
      const world: ReturnType<typeof play> = play(
        (command) => {
          if (command.startsWith('CLIENT')) return clients()(command);
          world.endTerm();
          throw new Error('the connection was closed');
        },
        async () => [],
      );
      const { hands } = world;
      const acting = {
        keepConfig: () => hands.keepConfig('a:1'),
        readTail: () => hands.readTail('a:1', { stream: 's', after: 1, upTo: 2 }),
        hasAny: () => hands.hasAny('a:1', undefined, ['k']),
      }[act];
      await expect(acting()).rejects.toThrow('the term is over');
    },
  );

  it('by a manager whose term is over already is not tried: nothing is opened', async () => {
    const { hands, names, endTerm } = play(clients());
    endTerm();
    await expect(hands.makePrimary('a:1')).rejects.toThrow('the term is over');
    expect(names).toEqual([]);
  });
});

describe('the end of a stream', () => {
  const commands: TailCommands = [[Buffer.from('PING')]];
  const read = (more: Partial<TailQuestion> = {}, first: number | null = 101) => {
    const question = { stream: 's', after: 100, upTo: 200, ...more };
    const backlog = first === null ? '' : `repl_backlog_first_byte_offset:${first}\r\n`;
    const { hands } = play(
      (command) =>
        command === 'INFO replication'
          ? `# Replication\r\nmaster_replid:s\r\n${backlog}`
          : clients()(command),
      async () => commands,
    );
    return hands.readTail('a:1', question);
  };

  it('is read where the backlog begins with the first byte that is wanted, or before', async () => {
    expect(await read()).toBe(commands);
    expect(await read({}, 1)).toBe(commands);
  });

  it.for([
    ['the backlog has not all of it', {}, 102],
    ['there is no backlog', {}, null],
    ['the node is in another stream', { stream: 't' }, 101],
    ['it is more than a MiB', { upTo: 101 + (1 << 20) }, 101],
  ] as const)('is not read where %s', async ([, more, first]) => {
    expect(await read(more, first)).toBeUndefined();
  });

  it('is read up to a MiB', async () => {
    expect(await read({ upTo: 100 + (1 << 20) })).toBe(commands);
  });
});

describe('whether a node has any of some keys', () => {
  const ask = (exist: (db: string) => number, db?: number) => {
    let selected = '';
    const { hands } = play((command) => {
      if (command === 'INFO keyspace') return '# Keyspace\r\ndb0:keys=1\r\ndb12:keys=1\r\n';
      if (command.startsWith('SELECT ')) selected = command.slice('SELECT '.length);
      return command.startsWith('EXISTS ') ? exist(selected) : clients()(command);
    });
    return hands.hasAny('a:1', db, ['k']);
  };
  const none = () => 0;
  const inTwelve = (db: string) => (db === '12' ? 1 : 0);

  it('is looked for in all databases, unless one is named', async () => {
    expect(await ask(none)).toBe(false);
    expect(await ask(inTwelve)).toBe(true);
    expect(await ask(inTwelve, 12)).toBe(true);
    expect(await ask(inTwelve, 0)).toBe(false);
  });

  it('counts as so where the node does not say', async () => {
    const refuses = () => {
      throw new Error('NOPERM');
    };
    expect(await ask(refuses)).toBe(true);
  });
});

it('a node that may be another name of one that is held is looked at, and no connection is closed there', async () => {
  const { hands, sent, names, closed } = play();
  await hands.look('a:1');
  await hands.look('a:1');
  expect(sent).toEqual([]);
  expect(names).toEqual(['incumbent-redis-look:m']);
  hands[Symbol.dispose]();
  expect(closed()).toBe(1);
  // Before changes they are closed.
  await hands.replication('a:1').catch(() => {});
  expect(sent).toContain('CLIENT LIST');
});
