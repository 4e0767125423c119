import type { Term } from 'incumbent';
import type { NodeAddress } from '../node-address.ts';
import { parseNodeAddress } from '../node-address.ts';
import type { NodeAccess, NodeLink, OpenNode, Replication } from '../redis/node-connection.ts';
import { NodeConnection } from '../redis/node-connection.ts';
import { asideAddress, heldAddress, parseInfo } from '../redis/replication.ts';
import type { ReadTail, TailCommands, TailQuestion } from '../redis/tail.ts';
import type { ManagerEvent } from './events.ts';
import type { ManagerHooks } from './hooks.ts';

/** Connections over which a manager changes the role of a Redis bear this, its token and its id. */
const namePrefix = 'incumbent-redis:';
const lookPrefix = 'incumbent-redis-look:';

export interface HandsSettings {
  readonly id: string;
  readonly access: NodeAccess;
  readonly nodeTimeoutMs: number;
  readonly hooks: ManagerHooks;
  readonly tell: (event: ManagerEvent) => void;
  /** Default: NodeConnection.open. */
  readonly openNode?: OpenNode;
  readonly readTail?: ReadTail | undefined;
}

/** A PING is 14 bytes, and comes every 10 s. */
const mostTailBytes = 1 << 20;

/**
 * With these the elected manager changes what a Redis is, in one term. A manager that stood still
 * while another one was elected could go on with what it was about to send. So:
 *
 * - a connection bears a name with the token before anything is sent over it, and is never made anew
 *   by itself; whether the term holds is asked right before each change;
 * - before the first change on a node all others of such connections are closed there.
 *
 * A connection of an older term is either known to the server by its name, and is closed; or its name
 * has not arrived, then its owner waits for the answer to that, and finds its term over. A change by
 * an older term thus comes before the closing, or never; and what is published was looked at after it.
 */
export class Hands implements Disposable {
  readonly #settings: HandsSettings;
  readonly #term: Term;
  readonly #held = new Map<NodeAddress, Promise<NodeLink>>();
  /** By what `CLIENT LIST` says of each: one node may have two names. */
  readonly #own = new Map<string, NodeLink>();
  #opened = 0;
  /** Over these nothing is changed. */
  readonly #looking = new Map<NodeAddress, NodeLink>();
  readonly #close = () => this[Symbol.dispose]();
  /** Nodes that did not keep in their configuration what they are. */
  readonly #notKept = new Set<NodeAddress>();
  #closed = false;

  constructor(settings: HandsSettings, term: Term) {
    this.#settings = settings;
    this.#term = term;
    term.signal.addEventListener('abort', this.#close, { once: true });
    if (term.signal.aborted) this.#close();
  }

  /** @returns rejects NodeUnreachableError, NodeRefusedError, or that the term has ended */
  async replication(node: NodeAddress): Promise<Replication> {
    return (await this.#on(node)).replication();
  }

  /**
   * The same of what may be another name of a node: such a connection closes no others there, and ours
   * to that node would be among those.
   */
  async look(node: NodeAddress): Promise<Replication> {
    const held = this.#looking.get(node);
    if (held?.isOpen === true) return held.replication();
    const { access, nodeTimeoutMs, hooks, id, openNode = NodeConnection.open } = this.#settings;
    const connection = await openNode(hooks.reach?.(node) ?? node, {
      ...access,
      name: `${lookPrefix}${id}`,
      timeoutMs: nodeTimeoutMs,
      signal: this.#term.signal,
    });
    // Another question may have opened one meanwhile.
    this.#looking.get(node)?.close();
    this.#looking.set(node, connection);
    if (this.#closed) connection.close();
    return connection.replication();
  }

  /** Resolves when the node has said that it is a primary. */
  async makePrimary(node: NodeAddress): Promise<Replication> {
    const connection = await this.#on(node);
    await this.#change(connection, ['REPLICAOF', 'NO', 'ONE']);
    const replication = await connection.replication();
    if (replication.role === 'primary') return replication;
    throw new Error(`${node} was told to be a primary, and says that it is a replica`);
  }

  /** Resolves when the node has said that it is a replica of that one. */
  async makeReplica(node: NodeAddress, primary: NodeAddress): Promise<void> {
    const connection = await this.#on(node);
    const { host, port } = parseNodeAddress('a node', primary);
    await this.#change(connection, ['REPLICAOF', host, `${port}`]);
    const replication = await connection.replication();
    if (replication.role === 'replica') return;
    throw new Error(`${node} was told to follow ${primary}, and says that it is a primary`);
  }

  /**
   * It takes no writes from now on, copies nobody, and keeps its data.
   * @returns what it has: nothing can be added to that any more
   */
  setAside(node: NodeAddress): Promise<Replication> {
    return this.#cutOff(node, asideAddress);
  }

  /**
   * A replica gets nothing more from whom it follows, and may become the primary, for every manager.
   * @returns what it has
   */
  hold(node: NodeAddress): Promise<Replication> {
    return this.#cutOff(node, heldAddress);
  }

  async #cutOff(node: NodeAddress, from: NodeAddress): Promise<Replication> {
    const connection = await this.#on(node);
    const { host, port } = parseNodeAddress('a node', from);
    await this.#change(connection, ['REPLICAOF', host, `${port}`]);
    // Replicas that wait for a copy already would get it. Redis before 5.0 knows only this word.
    await this.#change(connection, ['CLIENT', 'KILL', 'TYPE', 'slave']);
    const replication = await connection.replication();
    if (replication.role === 'replica') return replication;
    throw new Error(`${node} was told to follow nobody, and says that it is a primary`);
  }

  /** After a restart it is what it is now. Where the node does not want to, that is told once. */
  async keepConfig(node: NodeAddress): Promise<void> {
    try {
      await this.#change(await this.#on(node), ['CONFIG', 'REWRITE']);
    } catch (error) {
      this.#term.signal.throwIfAborted();
      if (this.#notKept.has(node)) return;
      this.#notKept.add(node);
      this.#settings.tell({ type: 'config-not-kept', node, error: error as Error });
    }
  }

  /** @returns undefined where it cannot be read: the backlog has it no more, or the node refuses */
  async readTail(node: NodeAddress, question: TailQuestion): Promise<TailCommands | undefined> {
    const { readTail, access, nodeTimeoutMs, hooks, id } = this.#settings;
    const { after, upTo, stream } = question;
    if (readTail === undefined || upTo - after > mostTailBytes) return undefined;
    try {
      const connection = await this.#on(node);
      const info = parseInfo(String(await connection.command(['INFO', 'replication'])));
      const from = Number(info.get('repl_backlog_first_byte_offset') ?? Number.POSITIVE_INFINITY);
      if (info.get('master_replid') !== stream || from > after + 1) return undefined;
      return await readTail(hooks.reach?.(node) ?? node, question, {
        ...access,
        name: `${namePrefix}tail:${id}`,
        timeoutMs: nodeTimeoutMs,
        signal: this.#term.signal,
      });
    } catch {
      this.#term.signal.throwIfAborted();
      return undefined;
    }
  }

  /** @param db undefined: any. @returns true also where it cannot be known */
  async hasAny(
    node: NodeAddress,
    db: number | undefined,
    keys: readonly string[],
  ): Promise<boolean> {
    try {
      const connection = await this.#on(node);
      const info = parseInfo(String(await connection.command(['INFO', 'keyspace'])));
      const all = [...info.keys()].flatMap((name) => /^db(\d+)$/.exec(name)?.[1] ?? []);
      for (const each of all) {
        if (db !== undefined && Number(each) !== db) continue;
        await connection.command(['SELECT', each]);
        if (Number(await connection.command(['EXISTS', ...keys])) > 0) return true;
      }
      return false;
    } catch {
      this.#term.signal.throwIfAborted();
      return true;
    }
  }

  /** Clients that write are kept waiting for that long; what reads or replicates goes on. */
  async pauseWrites(node: NodeAddress, forMs: number): Promise<void> {
    await this.#change(await this.#on(node), ['CLIENT', 'PAUSE', `${forMs}`, 'WRITE']);
  }

  async resumeWrites(node: NodeAddress): Promise<void> {
    await this.#change(await this.#on(node), ['CLIENT', 'UNPAUSE']);
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#term.signal.removeEventListener('abort', this.#close);
    for (const connection of this.#looking.values()) connection.close();
    for (const connecting of this.#held.values()) {
      connecting.then(
        (connection) => connection.close(),
        // Whoever asked for it was told.
        () => {},
      );
    }
  }

  /** The term is asked about without anything between that and the sending. */
  async #change(connection: NodeLink, command: readonly string[]): Promise<void> {
    if (!this.#settings.hooks.broken?.includes('no-assert')) this.#term.assertLeading();
    await connection.command(command);
  }

  async #on(node: NodeAddress): Promise<NodeLink> {
    const held = this.#held.get(node);
    if (held !== undefined) {
      const connection = await held.catch(() => undefined);
      if (connection?.isOpen === true) return connection;
    }
    // Of those who found it closed together only the first one opens another.
    const current = this.#held.get(node);
    if (current !== undefined && current !== held) return current;
    const opening = this.#open(node);
    this.#held.set(node, opening);
    return opening;
  }

  async #open(node: NodeAddress): Promise<NodeLink> {
    const { access, nodeTimeoutMs, hooks, id, openNode = NodeConnection.open } = this.#settings;
    this.#term.assertLeading();
    this.#opened += 1;
    const name = `${namePrefix}${this.#term.token}:${id}:${this.#opened}`;
    const connection = await openNode(hooks.reach?.(node) ?? node, {
      ...access,
      name,
      timeoutMs: nodeTimeoutMs,
      signal: this.#term.signal,
    });
    try {
      if (!hooks.broken?.includes('no-manager-fence')) await this.#fence(node, name, connection);
      if (this.#closed) throw new Error('the term of this manager has ended');
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /**
   * Closes what other managers, and we ourselves, have open here: all, and not only those with a lower
   * token, for in a ZooKeeper that was set up anew tokens begin anew. Also our own ones of this term, but
   * those we go on with under another name of the node: a change that was sent over one that we gave up may
   * still be on its way.
   */
  async #fence(node: NodeAddress, name: string, connection: NodeLink): Promise<void> {
    const own = String(await connection.command(['CLIENT', 'ID']));
    for (const [key, each] of this.#own) if (!each.isOpen) this.#own.delete(key);
    this.#own.set(`${name} ${own}`, connection);
    const list = String(await connection.command(['CLIENT', 'LIST']));
    const others = list.split('\n').flatMap((line) => {
      const fields = new Map(line.split(' ').map((field) => pairOf(field)));
      const [its = '', client] = [fields.get('name'), fields.get('id')];
      if (!its.startsWith(namePrefix) || client === undefined || client === own) return [];
      return this.#own.get(`${its} ${client}`)?.isOpen === true ? [] : [client];
    });
    for (const client of others) {
      this.#term.assertLeading();
      // 0 when it is gone meanwhile.
      await connection.command(['CLIENT', 'KILL', 'ID', client]);
    }
    if (others.length > 0) {
      this.#settings.tell({ type: 'fenced', node, connections: others.length });
    }
  }
}

function pairOf(field: string): readonly [string, string] {
  const at = field.indexOf('=');
  return [field.slice(0, at), field.slice(at + 1)];
}
