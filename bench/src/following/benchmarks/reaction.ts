import type { Benchmark } from '../../benchmark.ts';
import { jitter, sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf, median, p99Of } from '../../figure.ts';
import type { Samples } from '../../samples.ts';
import { makeSamples } from '../../samples.ts';
import { TermLog } from '../../term-log.ts';
import type { CallerName, Transport } from '../messages.ts';
import type { Scene, Service, Stage } from '../stage.ts';
import { startScene } from '../stage.ts';

interface Way {
  readonly name: string;
  readonly transport: Transport;
  readonly caller: CallerName;
  /** It is to follow within that. */
  readonly goalMs?: number;
}

/** One wake-up of an observer on the file store. */
const goalMs = 20;
const ways: readonly Way[] = [
  { name: 'gRPC', transport: 'grpc', caller: 'following', goalMs },
  { name: 'gRPC with a retry policy', transport: 'grpc', caller: 'retrying' },
  { name: 'HTTP', transport: 'http', caller: 'following', goalMs },
];

/** Until who has just entered again waits for the seat. */
const settleMs = 300;
const leadsWithinMs = 60_000;
const floorTimes = 3;

/**
 * Two processes hand the seat to and fro, while another process calls the leader without pause. The
 * time runs from the start of the new term's work to the first call of that process that is handled
 * there.
 */
export function reaction(stage: Stage): Benchmark {
  const samples = makeSamples();
  let rounds = 0;
  return {
    name: 'reaction',
    about: 'how soon calls reach a new leader',
    roundsOf: (all) => all,
    async round() {
      const scene = await startScene(stage, `reaction-${rounds}`);
      rounds += 1;
      try {
        const { warmUps, perRound } = stage.scale.reaction;
        const seat = await Seat.take(scene);
        for (let i = 0; i < warmUps; i += 1) for (const way of ways) await handOver(seat, way);
        for (let i = 0; i < perRound; i += 1) {
          for (const way of ways) await handOver(seat, way, samples);
        }
      } finally {
        await scene.close();
      }
    },
    figures: () => ways.flatMap((way) => figuresOf(way, samples)),
  };
}

/** The process that leads, and the one that waits. */
class Seat {
  readonly scene: Scene;
  readonly #terms: TermLog;
  #leader: Service;
  #follower: Service;
  #token: string;
  #next: Promise<{ readonly atMs: number; readonly token: string }>;

  static async take(scene: Scene): Promise<Seat> {
    const [leader, follower] = scene.services;
    const { token, atMs } = await leader.process.call('campaign', {}, leadsWithinMs);
    return new Seat(scene, leader, follower, token, atMs);
  }

  private constructor(
    scene: Scene,
    leader: Service,
    follower: Service,
    token: string,
    atMs: number,
  ) {
    this.scene = scene;
    this.#leader = leader;
    this.#follower = follower;
    this.#token = token;
    this.#terms = new TermLog(scene.election);
    this.#terms.begins(BigInt(token), atMs);
    this.#next = this.#campaign(follower);
  }

  get token(): string {
    return this.#token;
  }

  get leader(): Service {
    return this.#leader;
  }

  /** @returns when the work of the next term began */
  async handOver(): Promise<{ readonly atMs: number; readonly token: string }> {
    const resigned = this.#leader.process.call('resign', {});
    resigned.catch(() => {});
    const next = await this.#next;
    const { atMs } = await resigned;
    this.#terms.ends(atMs);
    this.#terms.begins(BigInt(next.token), next.atMs);
    [this.#leader, this.#follower] = [this.#follower, this.#leader];
    this.#token = next.token;
    this.#next = this.#campaign(this.#follower);
    return next;
  }

  #campaign(service: Service): Promise<{ readonly atMs: number; readonly token: string }> {
    const led = service.process.call('campaign', {}, leadsWithinMs);
    // A candidate that is killed at the end of a round never leads.
    led.catch(() => {});
    return led;
  }
}

async function handOver(seat: Seat, way: Way, into?: Samples): Promise<void> {
  const { transport, caller, name } = way;
  const { follower } = seat.scene;
  const followed = follower.call('follow', { transport, caller, above: seat.token }, leadsWithinMs);
  followed.catch(() => {});
  await sleep(settleMs + jitter(100));
  const { atMs } = await seat.handOver();
  const { servedMs, observedMs, resolvedMs } = await followed;
  const { ports } = seat.leader;
  const first = await follower.call('connections', { transport, ports, times: floorTimes });
  const reactionMs = servedMs - atMs;
  const connectionMs = median(first.ms);
  if (into === undefined) return;
  into.add(name, reactionMs);
  into.add(`${name} observed`, observedMs - atMs);
  into.add(`${name} resolved`, resolvedMs - atMs);
  into.add(`${name} connection`, connectionMs);
  into.add(`${name} beside`, reactionMs / connectionMs);
}

function figuresOf({ name, goalMs: goal }: Way, samples: Samples): readonly Figure[] {
  const all = samples.of(name);
  if (all.length === 0) return [];
  const label = `first call at a new leader: ${name}`;
  const of = (key: string, what: string): Figure =>
    figureOf('reaction', `${label}: ${what}`, 'ms', samples.of(`${name} ${key}`));
  return [
    figureOf('reaction', label, 'ms', all, goal),
    p99Of('reaction', label, 'ms', all, goal),
    of('observed', 'an observer in the same process is told'),
    of('resolved', 'the caller has its address'),
    of('connection', 'floor, a first call on a connection of its own'),
    figureOf('reaction', `${label}, beside that floor`, '×', samples.of(`${name} beside`)),
  ];
}
