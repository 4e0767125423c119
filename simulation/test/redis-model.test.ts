/**
 * The part of the model of Redis that cannot be held to a real server. The rest:
 * test-integration/redis-facts.test.ts.
 */
import { expect, test } from 'vitest';
import { Random } from '../src/harness/random.ts';
import type { GivenSettings } from '../src/redis/index.ts';
import { RedisModel } from '../src/redis/index.ts';
import { VirtualTime } from '../src/redis/virtual-time.ts';

/** Nodes `a`, `b` and `c`, and a client that reaches all of them. */
class Trio {
  readonly time: VirtualTime;
  readonly model: RedisModel;
  /** How long a copy takes. */
  saveMs = 1;

  constructor(...settings: readonly GivenSettings[]) {
    const random = new Random(1);
    this.time = new VirtualTime(() => random.next());
    this.model = new RedisModel({ scheduler: this.time });
    for (const [index, name] of ['a', 'b', 'c'].entries()) {
      this.model.addNode({
        name,
        addresses: [`${name}:6379`],
        settings: { save: '', 'repl-diskless-sync-delay': '0', ...settings[index] },
        speeds: { saveMs: () => this.saveMs },
      });
      this.node(name).start();
    }
  }

  node(name: string) {
    const node = this.model.nodes.get(name);
    if (node === undefined) throw new Error(`there is no node ${name}`);
    return node;
  }

  /** The reply, after so much time for what follows from it. */
  async say(name: string, command: string, ms = 3_000): Promise<unknown> {
    const replying = this.model
      .connect('client', `${name}:6379`)
      .then((connection) => connection.send(command.split(' ')))
      .catch((error: Error) => error.message);
    let reply: unknown = 'none';
    void replying.then((value) => {
      reply = value;
    });
    for (let passed = 0; passed < ms; passed += 10) {
      this.time.advance(10);
      await Promise.resolve(); // a turn for `replying`
      await Promise.resolve();
    }
    return reply;
  }

  async info(name: string): Promise<ReadonlyMap<string, string>> {
    const lines = String(await this.say(name, 'INFO', 50)).split('\r\n');
    return new Map(lines.map((line) => line.split(':') as [string, string]));
  }

  async follow(replica: string, primary: string): Promise<void> {
    await this.say(replica, `REPLICAOF ${primary} 6379`);
  }
}

test('a promoted replica goes on from the story of its primary, and the others follow it', async () => {
  const set = new Trio();
  await set.follow('b', 'a');
  await set.follow('c', 'b');
  await set.say('a', 'SET key value');
  const former = idsOf(await set.info('b'));
  await set.say('b', 'REPLICAOF NO ONE');
  const next = idsOf(await set.info('b'));
  expect(next).toMatchObject({ id2: former.id, second: `${Number(former.offset) + 1}` });
  expect(idsOf(await set.info('c'))).toEqual(next);
});

test('a machine that loses its power loses writes that were not synced, and nobody is told', async () => {
  const set = new Trio({ appendonly: 'yes' });
  await set.follow('b', 'a');
  await set.say('a', 'SET early value');
  await set.say('a', 'SET late value', 100);
  set.node('a').cutPower();
  set.time.advance(5_000);
  expect((await set.info('b')).get('master_link_status')).toBe('up');
  set.node('a').start();
  // A replica that reports over a connection that the machine does not know is answered by a reset.
  set.time.advance(5_000);
  const info = await set.info('b');
  expect(info.get('master_link_status')).toBe('up');
  expect(info.get('master_replid')).toBe((await set.info('a')).get('master_replid'));
  expect(await set.say('a', 'GET early')).toBe('value');
  expect(await set.say('a', 'GET late')).toBe(null);
});

test('messages that are held in one direction arrive in order when they are let go', async () => {
  const set = new Trio();
  await set.follow('b', 'a');
  const link = set.model.link('b', 'a');
  link.back.hold();
  await set.say('a', 'SET key first');
  await set.say('a', 'SET key second');
  expect(await set.say('b', 'GET key')).toBe(null);
  // It still reports what it has.
  expect(await set.say('a', 'ROLE')).toMatchObject(['master', 104, [['b', '6379', '0']]]);
  link.back.letGo();
  expect(await set.say('b', 'GET key')).toBe('second');
});

test('a link that is reset is made anew, and a part of the history is enough', async () => {
  const set = new Trio();
  await set.follow('b', 'a');
  const link = set.model.link('b', 'a');
  link.refuses = true;
  link.reset();
  await set.say('a', 'SET key value');
  expect((await set.info('b')).get('master_link_status')).toBe('down');
  link.refuses = false;
  set.time.advance(3_000);
  expect(await set.say('b', 'GET key')).toBe('value');
  const info = await set.info('a');
  expect([info.get('sync_full'), info.get('sync_partial_ok')]).toEqual(['1', '1']);
});

test('a copy that is read as it comes and does not go on is given up after repl-timeout', async () => {
  const set = new Trio({}, { 'repl-diskless-load': 'swapdb', 'repl-timeout': '10' });
  set.saveMs = 60_000;
  await set.say('a', 'SET key value');
  await set.say('b', 'SET own value');
  await set.say('b', 'REPLICAOF a 6379');
  const waits = await set.say('b', 'GET own');
  // It reads nothing else, or says that it loads: which of both is left to chance.
  expect(['none', 'LOADING Redis is loading the dataset in memory']).toContain(waits);
  set.node('a').kill();
  set.time.advance(20_000);
  expect(await set.say('b', 'GET own')).toBe('value');
});

function idsOf(info: ReadonlyMap<string, string>) {
  return {
    id: info.get('master_replid'),
    id2: info.get('master_replid2'),
    offset: info.get('master_repl_offset'),
    second: info.get('second_repl_offset'),
  };
}
