import type { CandidateInfo } from 'incumbent';
import type {
  Actor,
  ActorProcess,
  LeaseRecord,
  LeaseStore,
  Reading,
  SwapResult,
} from 'incumbent/testing';
import type { Host, Owner } from '../harness/host.ts';
import type { Random } from '../harness/random.ts';
import type { LeaseSimulation } from './simulation.ts';

/** The fate of one request. */
export interface Fate {
  readonly requestMs: number;
  readonly replyMs: number;
  readonly requestLost: boolean;
  readonly replyLost: boolean;
  /** The request arrives a second time, so much later. */
  readonly againAfterMs: number | undefined;
  /** The reply is an error: instead of being applied, or although it was. */
  readonly error: 'instead' | 'although' | undefined;
  /** The caller hears of an error so soon; the request goes on travelling. */
  readonly errorAfterMs: number | undefined;
  readonly onSend?: () => void;
  /** Called when the reply has been delivered. */
  readonly onAnswer?: () => void;
}

/** The store, or the way to it, answered with an error. */
export class StoreTrouble extends Error {
  override readonly name: string = 'StoreTrouble';
}

/** The way from one host to the store. It belongs to the host: a restarted process uses it again. */
export class Link {
  requestsCut = false;
  repliesCut = false;
  slowMs = 0;
  hintsLost = false;
  /** The next operations of this kind meet these fates. */
  readonly armed: { readonly kind: 'read' | 'swap' | 'any'; readonly fate: Partial<Fate> }[] = [];
  readonly #sim: LeaseSimulation;
  readonly #host: Host;
  readonly #random: Random;

  constructor(sim: LeaseSimulation, host: Host, random: Random) {
    this.#sim = sim;
    this.#host = host;
    this.#random = random;
  }

  heal(): void {
    this.requestsCut = false;
    this.repliesCut = false;
    this.slowMs = 0;
    this.hintsLost = false;
    this.armed.length = 0;
  }

  /** How long a message takes, without what was armed. */
  delayMs(): number {
    const { latencyMs, spikes, spikeMs } = this.#sim.network;
    const spike = this.#random.chance(spikes) ? this.#random.next() * spikeMs : 0;
    const slow = this.slowMs > 0 ? this.#random.next() * this.slowMs : 0;
    return latencyMs * (0.2 + this.#random.exponential(0.8)) + spike + slow;
  }

  /** One request and its reply, with everything that may go wrong in between. */
  call<T>(
    owner: Owner,
    kind: 'read' | 'swap' | 'any',
    signal: AbortSignal | undefined,
    apply: () => T,
    onAnswer: (result: T, tookMs: number) => void = () => {},
  ): Promise<T> {
    const { world, network } = this.#sim;
    const fate = this.#fate(kind);
    return new Promise<T>((resolve, reject) => {
      const sentMs = this.#host.presentMs;
      const answer = (settle: () => void, delayMs: number) => {
        world.at(world.nowMs + delayMs, () => this.#host.deliver(owner, settle));
      };
      const arrive = (isFirst: boolean) => {
        const { outage } = this.#sim;
        if (outage === 'silent') return;
        if (outage === 'refuses' || (outage === 'read-only' && kind === 'swap')) {
          if (isFirst) answer(() => reject(new StoreTrouble(`the store ${outage}`)), fate.replyMs);
          return;
        }
        if (fate.error === 'instead' && isFirst) {
          answer(() => reject(new StoreTrouble('the store failed')), fate.replyMs);
          return;
        }
        const result = apply();
        if (!isFirst || fate.replyLost || this.repliesCut) return;
        const settle =
          fate.error === 'although'
            ? () => reject(new StoreTrouble('the reply was an error'))
            : () => {
                onAnswer(result, this.#host.presentMs - sentMs);
                resolve(result);
                fate.onAnswer?.();
              };
        answer(settle, fate.replyMs);
      };
      const send = () => {
        // A process that stood still in the middle of a turn may have died before it came so far.
        if (!owner.alive) return;
        fate.onSend?.();
        const cut = this.requestsCut;
        if (!cut && !fate.requestLost) {
          this.#sim.travels(kind, world.nowMs + fate.requestMs);
          world.at(world.nowMs + fate.requestMs, () => {
            arrive(true);
            return false;
          });
        }
        if (!cut && fate.againAfterMs !== undefined) {
          const againMs = world.nowMs + fate.requestMs + fate.againAfterMs;
          this.#sim.travels(kind, againMs);
          world.at(againMs, () => {
            arrive(false);
            return false;
          });
        }
        if (fate.errorAfterMs !== undefined) {
          answer(() => reject(new StoreTrouble('the connection broke')), fate.errorAfterMs);
        }
      };
      if (sentMs > world.nowMs) {
        world.at(sentMs, () => {
          send();
          return false;
        });
      } else {
        send();
      }
      if (signal !== undefined && network.honoursAbort) {
        if (signal.aborted) reject(signal.reason);
        else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      }
    });
  }

  #fate(kind: 'read' | 'swap' | 'any'): Fate {
    const { network } = this.#sim;
    const random = this.#random;
    const error = random.chance(network.errors)
      ? random.pick(['instead', 'although'] as const)
      : undefined;
    const fate: Fate = {
      requestMs: this.delayMs(),
      replyMs: this.delayMs(),
      requestLost: random.chance(network.losesRequests),
      replyLost: random.chance(network.losesReplies),
      againAfterMs: random.chance(network.duplicates) ? this.delayMs() * 20 : undefined,
      error,
      errorAfterMs: undefined,
    };
    const index = this.armed.findIndex((entry) => entry.kind === kind || entry.kind === 'any');
    if (index < 0) return fate;
    const [armed] = this.armed.splice(index, 1);
    return { ...fate, error: undefined, requestLost: false, replyLost: false, ...armed?.fate };
  }
}

/** A party that talks to the store over a link. */
export interface Client extends Owner {
  readonly host: Host;
  readonly link: Link;
  readonly number: number;
}

/** The store as one process sees it. */
export function storeOf(sim: LeaseSimulation, client: Client): LeaseStore {
  const { server, scenario, guarantees, library } = sim;
  const { link } = client;
  const travel = (record: LeaseRecord): LeaseRecord =>
    scenario.store.encodes
      ? library.decodeLeaseRecord(library.encodeLeaseRecord(record), 'the simulated store')
      : record;
  const store: LeaseStore = {
    read(signal) {
      const term = guarantees.onReadSent(client);
      return link.call<Reading>(
        client,
        'read',
        signal,
        () => {
          const reading = server.read();
          guarantees.onRead(client, reading);
          return reading;
        },
        (reading, tookMs) => {
          guarantees.onReadAnswer(client, reading, tookMs);
          if (term !== undefined) guarantees.onReadBack(term, reading, tookMs);
        },
      );
    },
    swap(expected, next, signal) {
      guarantees.onSwapSent(client, expected, next);
      const sent = travel(next);
      return link.call<SwapResult>(
        client,
        'swap',
        signal,
        () => {
          const result = server.swap(expected, sent, client);
          guarantees.onSwapped(client, expected, next, result);
          return result;
        },
        (result, tookMs) => guarantees.onSwapAnswer(client, result, tookMs),
      );
    },
    forgets: scenario.store.forgets !== 'never',
    ...(scenario.store.clockStepMs === undefined
      ? {}
      : { clockStepMs: scenario.store.clockStepMs }),
  };
  if (scenario.store.hints) {
    store.watch = (onHint) =>
      server.watch(() => {
        if (link.hintsLost || link.repliesCut || sim.world.random.chance(0.1)) return;
        const atMs = sim.world.nowMs + link.delayMs();
        sim.world.at(atMs, () => client.host.deliver(client, onHint));
      });
  }
  if (scenario.store.lists) {
    store.enlist = async (candidate: CandidateInfo) => {
      await link.call(client, 'any', undefined, () => sim.enlist(client, candidate));
      return () => link.call(client, 'any', undefined, () => sim.delist(client));
    };
    store.list = (signal) => link.call(client, 'any', signal, () => sim.listed());
  }
  if (scenario.store.proves) {
    store.describe = async (described: ActorProcess): Promise<Actor> => ({
      number: described.pid === process.pid ? client.number : described.pid,
    });
    // True for an empty list: the library has to know better than to ask.
    store.provesGone = (actors) => actors.every((actor) => sim.isDead(Number(actor['number'])));
  }
  return store;
}
