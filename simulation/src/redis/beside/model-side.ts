import { setImmediate as turn } from 'node:timers/promises';
import { Link } from '../link.ts';
import type { RedisConnection } from '../model.ts';
import { RedisModel } from '../model.ts';
import type { RedisNode } from '../node.ts';
import type { GivenSettings } from '../settings.ts';
import { pingEntry } from '../stream.ts';
import { VirtualTime } from '../virtual-time.ts';
import type { Layout } from './layout.ts';
import { calm, password } from './layout.ts';
import type { Observation, Send, Value } from './observe.ts';
import { observe, said } from './observe.ts';
import type { Says, Side } from './side.ts';
import { parseInfo } from './side.ts';
import type { LinkFault, Step } from './steps.ts';
import { name } from './steps.ts';

/** Longer than anything here takes that has no time limit of its own. */
const settledMs = 4_000;
const pollMs = 50;
const longestMs = 30_000;

/** The steps on the model. */
export class ModelSide implements Side {
  readonly nodes: readonly RedisNode[];
  readonly #time: VirtualTime;
  readonly #model: RedisModel;
  readonly #links: ReadonlyMap<string, Link>;
  readonly #connections = new Map<number, RedisConnection>();
  readonly #blocked: string[] = [];
  readonly #slow = new Set<number>();

  /** @param loadMs of each node: how long it reads its data */
  constructor(
    layout: Layout,
    settings: readonly GivenSettings[],
    random: () => number,
    loadMs = 0,
  ) {
    this.#time = new VirtualTime(random);
    const ways = layout.ways.map(({ from, to, port }) => {
      const link = new Link(() => 0.05 + 0.1 * random());
      return { from: name(from), to: name(to), address: `127.0.0.1:${port}`, link };
    });
    this.#links = new Map(ways.map(({ from, to, link }) => [`${from}${to}`, link]));
    const clients = new Link(() => 0.05);
    this.#model = new RedisModel({
      scheduler: this.#time,
      route: (from, address) => {
        // 127.1 is another name of it.
        const plain = address.replace(/^127\.1:/, '127.0.0.1:');
        const way = ways.find((each) => each.from === from && each.address === plain);
        if (way !== undefined) return { node: way.to, link: way.link };
        const node = [...this.#model.nodes.values()].find((each) =>
          each.addresses.includes(address),
        );
        return { node: node?.name, link: clients };
      },
    });
    this.nodes = layout.ports.map((port, index) =>
      this.#model.addNode({
        name: name(index),
        addresses: [`127.0.0.1:${port}`],
        settings: settings[index] ?? {},
        speeds: {
          loadMs: () => loadMs,
          copyMs: () => 0,
          saveMs: (keys) => (this.#slow.has(index) && keys > 0 ? 1e9 : 1),
        },
      }),
    );
  }

  /** @returns the reply of a command */
  async play(step: Step): Promise<string> {
    const reply = await this.act(step);
    await this.#pass(settledMs);
    return reply;
  }

  async info(node: number): Promise<ReadonlyMap<string, string>> {
    return parseInfo(String(await this.#await((await this.#sender(node))(['INFO']))));
  }

  async until(node: number, what: string, says: Says): Promise<void> {
    for (let passed = 0; !says(await this.info(node)); passed += pollMs) {
      if (passed > longestMs) throw new Error(`not within ${longestMs} ms: ${what}`);
      await this.#pass(pollMs);
    }
  }

  /** So many PINGs of that node to its replicas. */
  async ping(node: number, count: number): Promise<void> {
    const server = this.nodes[node]?.server;
    if (server === undefined) return;
    const offset = server.history.offset + count * pingEntry.bytes;
    server.settings.set('repl-ping-replica-period', '1');
    while (server.history.offset < offset) await this.#pass(500);
    server.settings.set('repl-ping-replica-period', calm['repl-ping-replica-period'] ?? '');
    await this.#pass(settledMs);
  }

  async observe(reports: boolean): Promise<readonly Observation[]> {
    const seen: Observation[] = [];
    for (const [index, node] of this.nodes.entries()) {
      if (!node.isRunning) seen.push({ state: 'down' });
      else if (node.isPaused) seen.push({ state: 'paused' });
      else seen.push(await this.#await(observe(await this.#sender(index), reports)));
    }
    return [...seen, Object.fromEntries(this.#blocked.entries())];
  }

  async act(step: Step): Promise<string> {
    if (step.type === 'settle') return '';
    if (step.type === 'link') {
      setLink(this.#links.get(`${name(step.from)}${name(step.to)}`) as Link, step.how);
      return '';
    }
    const node = this.nodes[step.node] as RedisNode;
    switch (step.type) {
      case 'command':
        return this.#await(said((await this.#sender(step.node))(step.parts)));
      case 'block':
        await this.#block(step);
        return '';
      case 'start':
        this.#slow.delete(step.node);
        this.#resetLinksTo(step.node);
        node.start();
        return '';
      case 'slow-copies':
        if (step.areSlow) this.#slow.add(step.node);
        else this.#slow.delete(step.node);
        return '';
      case 'pings':
        return '';
      case 'kill':
        node.kill();
        this.#connections.get(step.node)?.close();
        return '';
      case 'stop':
        node.stop();
        return '';
      case 'pause':
        node.pause();
        return '';
      case 'resume':
        node.resume();
        return '';
      case 'lose-data':
        node.loseData();
        return '';
      case 'configure':
        node.configuration = step.settings;
        return '';
      default:
        return step satisfies never;
    }
  }

  /** As the proxies do: see `ServerSide`. */
  #resetLinksTo(node: number): void {
    for (const [key, link] of this.#links) {
      const isWhole = !link.refuses && !link.forth.isHeld && !link.back.isHeld;
      if (key.endsWith(name(node)) && isWhole) link.reset();
    }
  }

  async #block({ node, parts, first }: Step & { readonly type: 'block' }): Promise<void> {
    const connection = await this.#open(node);
    const index = this.#blocked.push('waits') - 1;
    for (const each of first ?? []) void said(connection.send(each) as Promise<Value>);
    void said(connection.send(parts) as Promise<Value>).then((reply) => {
      this.#blocked[index] = reply;
    });
  }

  async #sender(node: number): Promise<Send> {
    const held = this.#connections.get(node);
    const connection = held === undefined || held.closed ? await this.#open(node) : held;
    this.#connections.set(node, connection);
    return (parts) => connection.send(parts) as Promise<Value>;
  }

  async #open(node: number): Promise<RedisConnection> {
    const address = this.nodes[node]?.addresses[0] as string;
    const connection = await this.#await(this.#model.connect('client', address));
    const greeting = await this.#await(said(connection.send(['PING']) as Promise<Value>));
    if (greeting.startsWith('-NOAUTH')) await this.#await(connection.send(['AUTH', password]));
    return connection;
  }

  /** Lets time pass until there is an answer. */
  async #await<Result>(answer: Promise<Result>): Promise<Result> {
    let isThere = false;
    const done = answer.finally(() => {
      isThere = true;
    });
    done.catch(() => {}); // it is awaited below
    for (let count = 0; !isThere; count += 1) {
      if (count > 20_000) throw new Error('the model does not answer');
      this.#time.advance(0.5);
      await turn();
    }
    return done;
  }

  async #pass(ms: number): Promise<void> {
    const atOnceMs = Math.min(ms, 500);
    for (let passed = 0; passed < ms; passed += atOnceMs) {
      this.#time.advance(atOnceMs);
      await turn();
    }
  }
}

function setLink(link: Link, how: LinkFault): void {
  link.refuses = how === 'refuse';
  if (how === 'refuse') link.reset();
  if (how === 'hold-replies') link.back.hold();
  else link.back.letGo();
  if (how === 'hold-requests') link.forth.hold();
  else link.forth.letGo();
}
