/**
 * A small model of a client, the one connection that it has, and the servers. The session is the
 * library's own machine, and its view is the library's own `View`. Everything around them is
 * modelled, and every order of it is a state of its own.
 *
 * The servers are one history of transactions: with a quorum or without, and it may be lost. Somebody changes a node
 * that the client watches. The client makes one call. Listeners that are told something may close the client, or take
 * so long that the session expires.
 */
import type * as Machine from '../../../../packages/zookeeper/dist/session/session-machine.js';
import type {
  SessionAt,
  SessionEffect,
  SessionEvent,
} from '../../../../packages/zookeeper/dist/session/session-states.js';
import type { View } from '../../../../packages/zookeeper/dist/session/view.js';
import type { State } from '../../../../packages/zookeeper/dist/state.js';

export type SessionMachine = Pick<
  typeof Machine,
  'firstSessionAt' | 'hasWatches' | 'isFinal' | 'isGranted' | 'nextSessionAt' | 'toldAt'
>;

export interface Options {
  readonly machine: SessionMachine;
  readonly View: typeof View;
}

type ToServer =
  | { readonly kind: 'connect'; readonly id: number; readonly seen: number }
  | { readonly kind: 'watches'; readonly since: number }
  /** The first of two packets: its watches are others. */
  | { readonly kind: 'auth' | 'other watches' | 'sasl' | 'sync' | 'call' | 'close' };

type ToClient =
  | { readonly kind: 'session'; readonly id: number; readonly readOnly: boolean }
  | { readonly kind: 'no-session'; readonly readOnly: boolean }
  | { readonly kind: 'auth'; readonly isTaken: boolean }
  | { readonly kind: 'watches' | 'event' | 'synced'; readonly zxid: number }
  | { readonly kind: 'reply'; readonly zxid: number; readonly isOver: boolean }
  | { readonly kind: 'sasl' | 'closed' };

interface Connection {
  readonly toServer: readonly ToServer[];
  readonly toClient: readonly ToClient[];
  readonly server: {
    readonly isUp: boolean;
    /** It had a quorum when it was asked. */
    readonly hasQuorum: boolean;
    readonly session: number;
    readonly hasAuth: boolean;
    readonly hasWatch: boolean;
  };
  /** The client has been answered that its credentials are taken. */
  readonly isTaken: boolean;
}

export interface World {
  /** How the client proves who it is. */
  readonly proof: 'none' | 'auth' | 'sasl';
  readonly at: SessionAt;
  readonly told: State;
  readonly id: number;
  readonly seen: number;
  readonly watched: number;
  /** The last change of the node that its watch was told of. */
  readonly knows: number;
  readonly call: 'none' | 'waiting' | 'sent' | 'done';
  /** Requests are sent. */
  readonly isOpen: boolean;
  readonly connection: Connection | undefined;
  /** The last server closed without a word. */
  readonly wasShutOut: boolean;
  readonly hasTried: boolean;
  readonly servers: {
    readonly zxid: number;
    readonly changedAt: number;
    readonly alive: readonly number[];
    readonly given: number;
    readonly hasQuorum: boolean;
  };
  readonly faults: number;
  readonly problem: string | undefined;
}

/** The session id that a server without a quorum gives: no other server knows it. */
const provisionalId = 9;
const mostSessions = 2;
const mostChanges = 1;

export function firstWorlds(faults: number, { machine }: Options): World[] {
  const world = (proof: World['proof'], identity: 'none' | 'known'): World => ({
    ...{ proof, at: machine.firstSessionAt(identity), told: 'connecting' },
    ...{ id: identity === 'known' ? 1 : 0, seen: 0, watched: 0, knows: 0, call: 'none' },
    ...{ isOpen: false, connection: undefined, wasShutOut: false, hasTried: false },
    servers: {
      ...{ zxid: 0, changedAt: 0, alive: identity === 'known' ? [1] : [] },
      ...{ given: identity === 'known' ? 1 : 0, hasQuorum: true },
    },
    ...{ faults, problem: undefined },
  });
  return [world('auth', 'none'), world('sasl', 'none'), world('auth', 'known')];
}

/** The act of a listener when it is told something. */
type InListener = 'nothing' | 'closes' | 'leaves' | 'is slow';
const inListeners: readonly InListener[] = ['nothing', 'closes', 'leaves', 'is slow'];

export function* successors(world: World, options: Options): Generator<readonly [string, World]> {
  for (const [name, act] of happenings(world)) {
    for (const inListener of inListeners) {
      const game = new Play(world, options, inListener);
      act(game);
      const how = inListener === 'nothing' ? name : `${name}; a listener ${inListener}`;
      yield [how, game.world];
      // Nobody was told anything: then it makes no difference what listeners would do.
      if (!game.hasListened) break;
    }
  }
}

type Happening = readonly [string, (play: Play) => void];

function* happenings(world: World): Generator<Happening> {
  const { at, connection, servers, faults, call } = world;
  if (at.at === 'refused') yield ['close()', close(false)];
  if (at.at === 'refused' || at.at === 'closed') return;
  if (connection === undefined) {
    yield ['a server is tried', (play) => play.attach()];
    if (world.hasTried) {
      yield ['a round has failed', (play) => play.failRound(0)];
      yield ['a round has failed, late', (play) => play.failRound(1)];
    }
  } else {
    const { server, toServer, toClient } = connection;
    if (at.at === 'seeking' && at.link.at === 'opening') {
      yield ['the connection opens', (play) => play.happen({ on: 'opened' })];
    }
    const [first, second] = toServer;
    if (server.isUp && first !== undefined) {
      yield [`the server takes ${first.kind}`, (play) => play.serve()];
      if (first.kind === 'connect' && second?.kind === 'auth') {
        yield ['the server answers credentials first', (play) => play.serveAuthFirst()];
      }
      if (first.kind === 'auth' && faults > 0) {
        yield ['the server refuses the credentials', (play) => play.refuseAuth()];
      }
    }
    const heard = toClient[0];
    if (heard !== undefined) {
      yield [`the client hears ${heard.kind}`, (play) => play.hear()];
    } else if (!server.isUp) {
      yield ['the server has closed', (play) => play.lose(server.session === 0)];
    }
    if (faults > 0) yield ['the connection breaks', fault((play) => play.lose(false))];
    if (at.at === 'serving' && at.readOnly && servers.hasQuorum) {
      yield ['a server with a quorum is found', (play) => play.lose(false)];
    }
  }
  if (call === 'none') yield ['a call', (play) => play.call()];
  if (at.ending === 'no') {
    yield ['close()', close(false)];
    yield ['close({ keepSession })', close(true)];
  } else {
    yield ['close has waited enough', (play) => play.happen({ on: 'waited-enough' })];
  }
  if (servers.zxid < mostChanges && servers.hasQuorum) {
    yield ['the node changes', (play) => play.change()];
  }
  if (faults === 0) return;
  if (at.identity !== 'none') {
    yield ['no server has confirmed the session in time', fault((play) => play.expire())];
  }
  if (servers.alive.length > 0) {
    yield ['the servers end the session', fault((play) => play.endSession())];
  }
  yield ['the servers lose their data', fault((play) => play.loseData())];
  yield [
    servers.hasQuorum ? 'the quorum is lost' : 'the quorum is back',
    fault((play) => play.turnQuorum()),
  ];
}

function close(keepSession: boolean): (play: Play) => void {
  return (play) => play.happen({ on: 'close-asked', keepSession });
}

function fault(act: (play: Play) => void): (play: Play) => void {
  return (play) => {
    play.set({ faults: play.world.faults - 1 });
    act(play);
  };
}

/** One thing that happens, and all that follows from it at once. */
class Play {
  world: World;
  hasListened = false;
  readonly #options: Options;
  readonly #inListener: InListener;
  readonly #events: SessionEvent[] = [];
  #isActing = false;
  #offered = 0;

  constructor(world: World, options: Options, inListener: InListener) {
    this.world = world;
    this.#options = options;
    this.#inListener = inListener;
  }

  set(change: Partial<World>): void {
    this.world = { ...this.world, ...change };
  }

  // The client --------------------------------------------------------------------------------------

  happen(event: SessionEvent): void {
    this.#events.push(event);
    if (this.#isActing) return;
    this.#isActing = true;
    for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) {
      const { machine } = this.#options;
      const step = machine.nextSessionAt(this.world.at, next, this.world.proof === 'sasl');
      this.set({ at: step.next });
      for (const effect of step.effects) this.#carryOut(effect);
    }
    this.#isActing = false;
  }

  #carryOut(effect: SessionEffect): void {
    const { world } = this;
    switch (effect.do) {
      case 'greet': {
        const id = effect.attaches ? world.id : 0;
        if (id === provisionalId) this.#fail('a server is asked for a session that it cannot know');
        if (effect.doubts && world.told !== 'expired') {
          this.#fail('what was seen is doubted while the session may live');
        }
        this.#send({ kind: 'connect', id, seen: effect.doubts ? 0 : world.seen });
        return;
      }
      case 'introduce': {
        const hasAuth = world.proof !== 'none';
        if (hasAuth) this.#send({ kind: 'auth' });
        this.#send({ kind: 'other watches' });
        this.#send({ kind: 'watches', since: world.watched });
        this.happen({ on: 'introduced', taken: !hasAuth, watches: 2 });
        return;
      }
      case 'adopt':
        this.set({ id: this.#offered });
        return;
      case 'start-sasl':
        this.#send({ kind: 'sasl' });
        return;
      case 'ask-sync':
        this.#send({ kind: 'sync' });
        return;
      case 'forget-view':
        if (world.connection?.server.hasQuorum !== true || effect.zxid >= BigInt(world.seen)) {
          this.#fail('what was seen is forgotten though it was not lost');
        }
        this.set({ seen: Number(effect.zxid), watched: Number(effect.zxid) });
        return;
      case 'catch-up':
        // A reader that is told that the session has expired reads again.
        if (effect.gap === 'expired') this.set({ knows: world.servers.changedAt });
        return;
      case 'tell':
        this.#tell(effect.state);
        return;
      case 'open':
        this.#open();
        return;
      case 'send-close':
        this.#open();
        this.#send({ kind: 'close' });
        return;
      case 'drop':
        if (world.connection !== undefined) this.#disconnect();
        return;
      case 'forget-session':
        this.set({ id: 0 });
        return;
      case 'bury':
      case 'finish':
        if (world.call !== 'none') this.set({ call: 'done' });
        return;
      case 'go-on':
        this.#events.push(effect.event);
        return;
      case 'hurry':
      case 'let-reads-ride':
      case 'search-read-write':
        return;
    }
  }

  #tell(state: State): void {
    const { told, connection, proof } = this.world;
    if (mayFollow[told]?.includes(state) !== true) {
      this.#fail(`listeners are told "${state}" after "${told}"`);
    }
    if (state === 'connected' && proof !== 'none' && connection?.isTaken !== true) {
      this.#fail('connected is told before the credentials are taken');
    }
    this.set({ told: state });
    if (this.hasListened) return;
    this.hasListened = true;
    if (this.#inListener === 'closes') this.happen({ on: 'close-asked', keepSession: false });
    if (this.#inListener === 'leaves') this.happen({ on: 'close-asked', keepSession: true });
    if (this.#inListener === 'is slow') this.expire();
  }

  #open(): void {
    if (this.world.connection === undefined) return;
    this.set({ isOpen: true });
    if (this.world.call === 'waiting') this.#sendCall();
  }

  call(): void {
    if (this.world.isOpen) this.#sendCall();
    else this.set({ call: 'waiting' });
  }

  #sendCall(): void {
    const { told } = this.world;
    if (told !== 'connected' && told !== 'read-only') {
      this.#fail('a call is sent before listeners are told of the connection');
    }
    this.#send({ kind: 'call' });
    this.set({ call: 'sent' });
  }

  attach(): void {
    this.happen({ on: 'opening' });
    const server = { ...{ isUp: true, hasQuorum: this.world.servers.hasQuorum, session: 0 } };
    this.set({
      ...{ hasTried: true, wasShutOut: false, isOpen: false },
      connection: {
        ...{ toServer: [], toClient: [], isTaken: false },
        server: { ...server, hasAuth: false, hasWatch: false },
      },
    });
  }

  expire(): void {
    this.happen({ on: 'over', error: new Error('not confirmed') });
  }

  failRound(nowMs: number): void {
    const shutOut = this.world.wasShutOut && this.world.seen > 0;
    this.set({ hasTried: false });
    this.happen({ on: 'round-failed', shutOut, nowMs, timeoutMs: 1 });
  }

  /** The client finds its connection gone. */
  lose(wasShutOut: boolean): void {
    this.set({ wasShutOut });
    this.#isActing = true;
    this.#disconnect();
    this.#isActing = false;
    this.happen(this.#events.pop() as SessionEvent);
  }

  #disconnect(): void {
    const { call } = this.world;
    this.set({
      connection: undefined,
      isOpen: false,
      call: call === 'sent' ? 'done' : call,
    });
    this.#events.push({ on: 'disconnected', error: new Error('gone') });
  }

  #send(frame: ToServer): void {
    const { connection } = this.world;
    if (connection === undefined) return;
    this.set({ connection: { ...connection, toServer: [...connection.toServer, frame] } });
  }

  #saw(zxid: number): void {
    const view = new this.#options.View(BigInt(this.world.watched));
    view.saw(BigInt(this.world.seen), false);
    view.saw(BigInt(zxid), this.#options.machine.hasWatches(this.world.at));
    this.set({ seen: Number(view.lastZxid), watched: Number(view.watchZxid) });
  }

  hear(): void {
    const { connection } = this.world;
    const [frame, ...toClient] = connection?.toClient ?? [];
    if (connection === undefined || frame === undefined) return;
    this.set({ connection: { ...connection, toClient } });
    switch (frame.kind) {
      case 'session':
        this.#offered = frame.id;
        this.happen({
          ...{ on: 'granted', readOnly: frame.readOnly, isOurs: frame.id === this.world.id },
        });
        return;
      case 'no-session':
        this.happen({ on: 'not-granted', readOnly: frame.readOnly, error: new Error('expired') });
        return;
      case 'auth':
        if (!frame.isTaken) {
          this.happen({ on: 'credentials-refused', error: new Error('refused') });
          return;
        }
        this.set({ connection: { ...connection, toClient, isTaken: true } });
        this.happen({ on: 'credentials-taken' });
        return;
      case 'watches':
        this.happen({ on: 'watches-restored' });
        this.#saw(frame.zxid);
        return;
      case 'event':
        if (this.world.at.at !== 'serving') this.#fail('an event is told before its gap');
        this.set({ knows: Math.max(this.world.knows, frame.zxid) });
        return;
      case 'sasl':
        this.happen({ on: 'sasl-done' });
        return;
      case 'synced': {
        this.#saw(frame.zxid);
        const behind = frame.zxid < this.world.seen;
        this.happen({ on: 'synced', behind, zxid: BigInt(frame.zxid) });
        return;
      }
      case 'reply':
        this.#saw(frame.zxid);
        this.set({ call: 'done' });
        if (frame.isOver) this.expire();
        return;
      case 'closed':
        this.happen({ on: 'close-answered' });
        return;
    }
  }

  // The servers -------------------------------------------------------------------------------------

  #answer(frames: readonly ToClient[], server: Partial<Connection['server']> = {}): void {
    const { connection } = this.world;
    if (connection === undefined) return;
    this.set({
      connection: {
        ...connection,
        toServer: connection.toServer.slice(1),
        toClient: [...connection.toClient, ...frames],
        server: { ...connection.server, ...server },
      },
    });
  }

  serve(): void {
    const { connection, servers } = this.world;
    const frame = connection?.toServer[0];
    if (connection === undefined || frame === undefined) return;
    const { server } = connection;
    const { zxid, alive } = servers;
    switch (frame.kind) {
      case 'connect':
        this.#connect(frame.id, frame.seen);
        return;
      case 'sasl':
        this.#answer([{ kind: 'sasl' }]);
        return;
      case 'auth':
        this.#answer([{ kind: 'auth', isTaken: true }], { hasAuth: true });
        return;
      case 'other watches':
        this.#answer([{ kind: 'watches', zxid }]);
        return;
      case 'watches': {
        const missed: ToClient[] =
          servers.changedAt > frame.since ? [{ kind: 'event', zxid: servers.changedAt }] : [];
        this.#answer([...missed, { kind: 'watches', zxid }], { hasWatch: true });
        return;
      }
      case 'sync':
        this.#answer([{ kind: 'synced', zxid }]);
        return;
      case 'call': {
        if (!server.hasWatch || (this.world.proof !== 'none' && !server.hasAuth)) {
          this.#fail('a server is asked before it knows who asks, and what is watched');
        }
        const isOver = server.session !== provisionalId && !alive.includes(server.session);
        this.#answer([{ kind: 'reply', zxid, isOver }]);
        return;
      }
      case 'close':
        this.set({
          servers: { ...servers, alive: alive.filter((each) => each !== server.session) },
        });
        this.#answer([{ kind: 'closed' }], { isUp: false });
        return;
    }
  }

  #connect(id: number, seen: number): void {
    const { servers } = this.world;
    const { hasQuorum } = servers;
    if (seen > servers.zxid) {
      this.#answer([], { isUp: false });
    } else if (!hasQuorum) {
      if (id !== 0) this.#answer([{ kind: 'no-session', readOnly: true }], { session: -1 });
      else {
        const session = provisionalId;
        this.#answer([{ kind: 'session', id: session, readOnly: true }], { session, hasQuorum });
      }
    } else if (id === 0) {
      // There are no more in this world.
      if (servers.given === mostSessions) {
        this.#answer([{ kind: 'no-session', readOnly: true }], { session: -1 });
        return;
      }
      const session = servers.given + 1;
      this.set({ servers: { ...servers, given: session, alive: [...servers.alive, session] } });
      this.#answer([{ kind: 'session', id: session, readOnly: false }], { session, hasQuorum });
    } else if (servers.alive.includes(id)) {
      this.#answer([{ kind: 'session', id, readOnly: false }], { session: id, hasQuorum });
    } else {
      this.#answer([{ kind: 'no-session', readOnly: false }], { session: -1 });
    }
  }

  serveAuthFirst(): void {
    const before = this.world.connection?.toClient.length ?? 0;
    this.serve();
    const { connection } = this.world;
    if (connection?.toClient.length !== before + 1 || !connection.server.isUp) return;
    this.serve();
    const after = this.world.connection;
    if (after === undefined) return;
    const [session, auth, ...rest] = after.toClient;
    if (session === undefined || auth === undefined) return;
    this.set({ connection: { ...after, toClient: [auth, session, ...rest] } });
  }

  refuseAuth(): void {
    this.set({ faults: this.world.faults - 1 });
    this.#answer([{ kind: 'auth', isTaken: false }], { isUp: false });
  }

  change(): void {
    const zxid = this.world.servers.zxid + 1;
    this.set({ servers: { ...this.world.servers, zxid, changedAt: zxid } });
    const { connection } = this.world;
    if (connection?.server.isUp !== true || !connection.server.hasWatch) return;
    const toClient: ToClient[] = [...connection.toClient, { kind: 'event', zxid }];
    this.set({ connection: { ...connection, toClient } });
  }

  endSession(): void {
    this.set({ servers: { ...this.world.servers, alive: [] } });
    this.#closeServer();
  }

  loseData(): void {
    this.set({ servers: { ...this.world.servers, zxid: 0, changedAt: 0, alive: [] } });
    this.#closeServer();
  }

  turnQuorum(): void {
    const { servers } = this.world;
    this.set({ servers: { ...servers, hasQuorum: !servers.hasQuorum } });
    this.#closeServer();
  }

  #closeServer(): void {
    const { connection } = this.world;
    if (connection === undefined) return;
    this.set({ connection: { ...connection, server: { ...connection.server, isUp: false } } });
  }

  #fail(problem: string): void {
    if (this.world.problem === undefined) this.set({ problem });
  }
}

const mayFollow: { readonly [told in State]?: readonly State[] } = {
  connecting: ['connected', 'read-only', 'expired', 'auth-failed', 'closed'],
  connected: ['suspended', 'auth-failed', 'closed'],
  'read-only': ['suspended', 'auth-failed', 'closed'],
  suspended: ['connected', 'read-only', 'expired', 'auth-failed', 'closed'],
  expired: ['connected', 'read-only', 'auth-failed', 'closed'],
  'auth-failed': ['closed'],
};

/** The problem of a state that is at rest. */
export function problemOf(world: World, { machine }: Options): string | undefined {
  if (world.problem !== undefined) return world.problem;
  const { at, told, connection, call, id } = world;
  if (told !== machine.toldAt(at)) return `it is ${machine.toldAt(at)}, and "${told}" was told`;
  const hasLink = at.at === 'serving' || (at.at === 'seeking' && at.link.at !== 'none');
  if (hasLink !== (connection !== undefined)) return 'a connection is kept, or is missing';
  if (machine.isFinal(at)) {
    return call === 'waiting' || call === 'sent' ? 'a call waits although all is over' : undefined;
  }
  if ((at.at === 'seeking' || at.at === 'serving') && (at.identity === 'none') !== (id === 0)) {
    return 'the machine and the client differ on whether there is a session';
  }
  if (call === 'sent' && at.at !== 'serving') return 'a call is in doubt, and nobody says so';
  if (connection === undefined) return undefined;
  const { server, toServer, toClient } = connection;
  if (!server.isUp || toServer.length > 0 || toClient.length > 0) return undefined;
  // Nothing is on its way.
  if (at.at === 'seeking') return at.link.at === 'opening' ? undefined : 'the handshake is stuck';
  if (at.at !== 'serving') return undefined;
  if (!at.isOpen || at.ending !== 'no') return 'it serves, and does nothing';
  if (call === 'waiting') return 'a call waits although a server serves';
  if (!machine.hasWatches(at)) return 'the watches are never restored';
  if (world.knows < world.servers.changedAt) return 'a change of the watched node was missed';
  return undefined;
}
