import type { Host, Owner } from '../host.ts';
import type { Random } from '../random.ts';
import type { World } from '../world.ts';
import type { Answer, Request, Server } from './ensemble.ts';
import type { TreeEvent } from './tree.ts';

/** The fate of one request. */
export interface Fate {
  /** It takes so much longer to get there. */
  readonly requestMs?: number;
  /** Its reply, and all that comes after it, takes so much longer. */
  readonly replyMs?: number;
  /** The connection breaks: before the request gets there, or before the reply does. */
  readonly breaks?: 'before' | 'after';
  readonly onSend?: () => void;
  /** Called when the server has answered it. */
  readonly onReply?: () => void;
  /** Called when the reply has been delivered. */
  readonly onAnswer?: () => void;
}

/** The way from one host to the servers. It belongs to the host: a restarted process uses it again. */
export class ClientLink {
  requestsCut = false;
  repliesCut = false;
  slowMs = 0;
  /** Servers that cannot be reached from here. */
  readonly cutServers: Set<Server> = new Set();
  /** The next request of this kind meets this fate. */
  readonly armed: {
    readonly meets: (request: Request) => boolean;
    readonly fate: Fate;
  }[] = [];
  readonly connections: Set<Connection> = new Set();
  readonly latencyMs: number;
  readonly spikes: number;
  readonly spikeMs: number;
  readonly breaks: number;
  isCalm = false;
  readonly random: Random;

  constructor(
    plan: { latencyMs: number; spikes: number; spikeMs: number; breaks: number },
    random: Random,
  ) {
    this.latencyMs = plan.latencyMs;
    this.spikes = plan.spikes;
    this.spikeMs = plan.spikeMs;
    this.breaks = plan.breaks;
    this.random = random;
  }

  delayMs(): number {
    const { random } = this;
    const spike = !this.isCalm && random.chance(this.spikes) ? random.next() * this.spikeMs : 0;
    const slow = this.slowMs > 0 ? random.next() * this.slowMs : 0;
    return this.latencyMs * (0.2 + random.exponential(0.8)) + spike + slow;
  }

  takeFate(request: Request): Fate {
    const index = this.armed.findIndex(({ meets }) => meets(request));
    if (index >= 0) return this.armed.splice(index, 1)[0]?.fate ?? {};
    if (this.isCalm || !this.random.chance(this.breaks)) return {};
    return { breaks: this.random.pick(['before', 'after'] as const) };
  }

  /** Messages that were held up flow again. */
  mend(): void {
    for (const connection of [...this.connections]) connection.flush();
  }

  heal(): void {
    this.requestsCut = false;
    this.repliesCut = false;
    this.slowMs = 0;
    this.cutServers.clear();
    this.armed.length = 0;
    this.isCalm = true;
    this.mend();
  }
}

export type Message =
  | { readonly kind: 'welcome'; readonly session: bigint | undefined }
  | { readonly kind: 'answer'; readonly answer: Answer; readonly zxid: bigint; readonly id: number }
  | { readonly kind: 'event'; readonly event: TreeEvent; readonly zxid: bigint }
  | { readonly kind: 'closed' };

/** One connection between a client and a server: in order both ways, until it breaks. */
export class Connection {
  readonly server: Server;
  readonly clientName: string;
  readonly timeoutMs: number;
  // The server's side.
  session = 0n;
  isBusy = false;
  isClosing = false;
  readonly waiting: { readonly request: Request; readonly reply: (answer: Answer) => void }[] = [];
  readonly watches: Set<string> = new Set();
  // The client's side.
  isOpen = true;
  readonly #world: World;
  readonly #host: Host;
  readonly #owner: Owner;
  readonly #link: ClientLink;
  readonly #onMessage: (message: Message) => void;
  /** Requests that were sent before the client dropped it may arrive all the same. */
  readonly #leavesResidue: boolean;
  #lastToServerMs = 0;
  #lastToClientMs = 0;
  #heldToServer: (() => void)[] = [];
  #heldToClient: Message[] = [];
  /** In order, whatever order a host that has stalled runs things in. */
  readonly #arriving: { readonly message: Message; readonly atMs: number }[] = [];
  /** Messages come in chunks: all of so many ms together, in one turn of the event loop. */
  readonly #chunkMs: number;
  /** Callbacks for the delivery of an answer. */
  readonly #onAnswers = new Map<number, () => void>();
  #lastId = 0;

  constructor(
    world: World,
    who: { host: Host; owner: Owner; link: ClientLink },
    server: Server,
    timeoutMs: number,
    onMessage: (message: Message) => void,
  ) {
    this.#world = world;
    this.#host = who.host;
    this.#owner = who.owner;
    this.#link = who.link;
    this.server = server;
    this.timeoutMs = timeoutMs;
    this.clientName = who.owner.name;
    this.#onMessage = onMessage;
    this.#leavesResidue = who.link.random.chance(0.5);
    this.#chunkMs = who.link.random.chance(0.5) ? 0 : 4 * who.link.latencyMs;
    who.link.connections.add(this);
  }

  // --- from the client ---

  open(session: bigint | undefined, zxid: bigint): void {
    this.#toServer(0, () => {
      this.session = session ?? 0n;
      this.server.accept(this, session, zxid);
    });
  }

  /** @returns the number by which the answer is known */
  send(request: Request): number {
    this.#lastId += 1;
    const id = this.#lastId;
    const fate = this.#link.takeFate(request);
    // A request may outlast the faults: what its fate does then would never be mended.
    const unlessCalm = (act: (() => void) | undefined) => {
      if (!this.#link.isCalm) act?.();
    };
    this.#toServer(fate.requestMs ?? 0, () => {
      if (fate.breaks === 'before') return this.break();
      this.server.receive(this, request, (answer) => {
        if (fate.breaks === 'after') return this.break();
        if (fate.replyMs !== undefined) this.#lastToClientMs = this.#world.nowMs + fate.replyMs;
        if (fate.onAnswer !== undefined) this.#onAnswers.set(id, () => unlessCalm(fate.onAnswer));
        this.#toClient({ kind: 'answer', answer, zxid: this.server.zxid, id });
        unlessCalm(fate.onReply);
      });
    });
    fate.onSend?.();
    return id;
  }

  /** The client gives it up. */
  drop(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    if (!this.#leavesResidue) this.#heldToServer = [];
    this.#settle();
  }

  /** Lost on the way, for both sides. */
  break(): void {
    this.server.connections.delete(this);
    this.#heldToServer = [];
    this.#toClient({ kind: 'closed' });
  }

  // --- from the server ---

  welcome(session: bigint | undefined): void {
    if (session !== undefined) this.session = session;
    this.#toClient({ kind: 'welcome', session });
  }

  notice(type: TreeEvent['type'], path: string): void {
    const kinds = noticedBy[type];
    let isWatched = false;
    for (const kind of kinds) isWatched = this.watches.delete(`${kind} ${path}`) || isWatched;
    if (isWatched) this.tell({ type, path });
  }

  tell(event: TreeEvent): void {
    this.#toClient({ kind: 'event', event, zxid: this.server.zxid });
  }

  closeByServer(): void {
    this.isClosing = true;
    this.server.connections.delete(this);
    this.#toClient({ kind: 'closed' });
  }

  // --- on the way ---

  flush(): void {
    const { requestsCut, repliesCut, cutServers } = this.#link;
    if (cutServers.has(this.server)) return;
    if (!requestsCut) for (const travel of this.#heldToServer.splice(0)) travel();
    if (!repliesCut) for (const message of this.#heldToClient.splice(0)) this.#toClient(message);
    this.#settle();
  }

  #settle(): void {
    if (!this.isOpen && this.#heldToServer.length === 0) this.#link.connections.delete(this);
  }

  #toServer(extraMs: number, arrive: () => void): void {
    const travel = () => {
      const atMs = Math.max(
        this.#lastToServerMs,
        this.#world.nowMs + this.#link.delayMs() + extraMs,
      );
      this.#lastToServerMs = atMs;
      this.#world.at(atMs, () => {
        if (this.isOpen || this.#leavesResidue) arrive();
        return false;
      });
    };
    const send = () => {
      // A process that stood still in the middle of a turn may have died before it came so far.
      if (!this.#owner.alive) return;
      const { requestsCut, cutServers } = this.#link;
      if (requestsCut || cutServers.has(this.server) || this.#heldToServer.length > 0) {
        this.#heldToServer.push(travel);
      } else travel();
    };
    const { presentMs } = this.#host;
    if (presentMs <= this.#world.nowMs) {
      send();
      return;
    }
    this.#world.at(presentMs, () => {
      send();
      return false;
    });
  }

  #toClient(message: Message): void {
    if (!this.isOpen) return;
    const { repliesCut, cutServers } = this.#link;
    if (repliesCut || cutServers.has(this.server) || this.#heldToClient.length > 0) {
      this.#heldToClient.push(message);
      return;
    }
    let atMs = this.#world.nowMs + this.#link.delayMs();
    if (this.#chunkMs > 0) atMs = Math.ceil(atMs / this.#chunkMs) * this.#chunkMs;
    atMs = Math.max(this.#lastToClientMs, atMs);
    this.#lastToClientMs = atMs;
    this.#arriving.push({ message, atMs });
    this.#world.at(atMs, () => {
      const [first] = this.#arriving;
      if (first === undefined || first.atMs > this.#world.nowMs) return false;
      return this.#host.deliver(this.#owner, () => this.#deliver());
    });
  }

  #deliver(): void {
    while ((this.#arriving[0]?.atMs ?? Number.POSITIVE_INFINITY) <= this.#world.nowMs) {
      const { message } = this.#arriving.shift() as { readonly message: Message };
      if (!this.isOpen) continue;
      this.#onMessage(message);
      if (message.kind === 'answer') this.#onAnswers.get(message.id)?.();
    }
  }
}

const noticedBy = {
  created: ['exist', 'data'],
  changed: ['data', 'exist'],
  deleted: ['data', 'exist', 'child'],
  'children-changed': ['child'],
} as const;
