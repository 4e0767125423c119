import type { Term } from 'incumbent';
import type { NodeAddress } from '../node-address.ts';
import { parseNodeAddress } from '../node-address.ts';
import type { NodeAccess, NodeLink, OpenNode, Replication } from '../redis/node-connection.ts';
import { NodeConnection } from '../redis/node-connection.ts';
import { asideAddress, heldAddress, parseInfo } from '../redis/replication.ts';
import type { ReadTail, TailCommands, TailQuestion } from '../redis/tail.ts';
import type { ManagerEvent } from './events.ts';
import type { ManagerHooks } from './hooks.ts';

/**
 * The names of connections over which a manager changes roles begin with this. The fencing token
 * and the manager's id follow.
 */
const namePrefix = 'incumbent-redis:';
/** The names of connections over which a manager only asks. */
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

/** The longest end of a stream that is read. A PING takes 14 bytes, and comes every 10 s. */
const mostTailBytes = 1 << 20;

/**
 * The connections to the nodes over which the elected manager changes their roles, in one term of
 * its leadership. A manager that was suspended while another one was elected could still send its
 * next command. So:
 *
 * - A connection gets a name with the fencing token before anything is sent over it, and never
 *   reconnects.
 * - Right before each change the manager checks that its term holds.
 * - Before the first change on a node all other connections of this kind are closed there.
 *
 * If the server knows the name of an older term's connection, the newer manager closes it. If the
 * name has not arrived yet, its owner still waits for the answer to it, and then finds its term
 * over. So a change by an older term comes before the closing, or never. The newer manager looks at
 * the node after the closing, and publishes only what it finds then.
 */
export class Hands implements Disposable {
  readonly #settings: HandsSettings;
  readonly #term: Term;
  readonly #held = new Map<NodeAddress, Promise<NodeLink>>();
  /**
   * Connections of this term, by name and id as in `CLIENT LIST`. One node may have two addresses,
   * and so two of these.
   */
  readonly #own = new Map<string, NodeLink>();
  #opened = 0;
  /** Connections that only ask. */
  readonly #looking = new Map<NodeAddress, NodeLink>();
  readonly #close = () => this[Symbol.dispose]();
  /** Nodes that have refused `CONFIG REWRITE`. */
  readonly #notKept = new Set<NodeAddress>();
  #closed = false;

  constructor(settings: HandsSettings, term: Term) {
    this.#settings = settings;
    this.#term = term;
    term.signal.addEventListener('abort', this.#close, { once: true });
    if (term.signal.aborted) this.#close();
  }

  /**
   * @returns rejects with NodeUnreachableError or NodeRefusedError, or because the term has ended
   */
  async replication(node: NodeAddress): Promise<Replication> {
    return (await this.#on(node)).replication();
  }

  /**
   * Asks a node that only other managers list. That may be another name of a node on the own list,
   * so this connection closes no others there: they may be ours.
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
    // Another call may have opened one meanwhile.
    this.#looking.get(node)?.close();
    this.#looking.set(node, connection);
    if (this.#closed) connection.close();
    return connection.replication();
  }

  /** Resolves when the node says that it is a primary. */
  async makePrimary(node: NodeAddress): Promise<Replication> {
    const connection = await this.#on(node);
    await this.#change(connection, ['REPLICAOF', 'NO', 'ONE']);
    const replication = await connection.replication();
    if (replication.role === 'primary') return replication;
    throw new Error(`${node} was told to be a primary, and says that it is a replica`);
  }

  /** Resolves when the node says that it is a replica. It may not be connected to `primary` yet. */
  async makeReplica(node: NodeAddress, primary: NodeAddress): Promise<void> {
    const connection = await this.#on(node);
    const { host, port } = parseNodeAddress('a node', primary);
    await this.#change(connection, ['REPLICAOF', host, `${port}`]);
    const replication = await connection.replication();
    if (replication.role === 'replica') return;
    throw new Error(`${node} was told to follow ${primary}, and says that it is a primary`);
  }

  /**
   * Sets a node aside: from now on it takes no writes, copies no node, and keeps its data.
   * @returns what it has; nothing can be added to that
   */
  setAside(node: NodeAddress): Promise<Replication> {
    return this.#cutOff(node, asideAddress);
  }

  /**
   * Holds a replica: it gets nothing more from its primary. Any manager may still promote it,
   * unlike a node that is set aside.
   * @returns what it has
   */
  hold(node: NodeAddress): Promise<Replication> {
    return this.#cutOff(node, heldAddress);
  }

  async #cutOff(node: NodeAddress, from: NodeAddress): Promise<Replication> {
    const connection = await this.#on(node);
    const { host, port } = parseNodeAddress('a node', from);
    await this.#change(connection, ['REPLICAOF', host, `${port}`]);
    // Replicas that wait for a copy already would still get it. Redis before 5.0 knows only the
    // word `slave`.
    await this.#change(connection, ['CLIENT', 'KILL', 'TYPE', 'slave']);
    const replication = await connection.replication();
    if (replication.role === 'replica') return replication;
    throw new Error(`${node} was told to follow nobody, and says that it is a primary`);
  }

  /**
   * Has the node write its present role into its configuration file, for the next restart. A
   * refusal is reported once for each node.
   */
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

  /** @returns undefined if it cannot be read: the backlog no longer has it, or the node refuses */
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

  /**
   * @param db undefined: any database
   * @returns whether the node has one of the keys; true also if that cannot be known
   */
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

  /** Makes clients that write wait for that long. Reads and replication go on. */
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
        // Its caller has got the error.
        () => {},
      );
    }
  }

  /** Checks the term, and sends in the same turn of the event loop. */
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
    // Of several callers that found the connection closed only the first opens another.
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
   * Closes all other connections of managers on the node, not only those with a lower token: after
   * ZooKeeper was set up anew, tokens begin anew. This manager's own older connections are closed,
   * too, because a change that was sent over one may still be on its way. Those that it still uses
   * under another name of the node stay open.
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
      // Redis answers 0 if that connection is gone.
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
