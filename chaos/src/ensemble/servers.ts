import type { TestEnsemble, TestMember } from '@incumbent/zookeeper-testing';
import { TestServerError } from '@incumbent/zookeeper-testing';
import type { QuorumState } from '../harness/liveness.ts';
import type { Loss, Network } from '../harness/network.ts';
import { monotonicMs } from '../harness/time.ts';

const lookEveryMs = 100;
const answerWithinMs = 500;

/** Watches from outside which servers there are, and whether a majority of them serves. */
export class Servers {
  readonly ensemble: TestEnsemble;
  /** Undefined where servers cannot be parted. */
  readonly network: Network | undefined;
  readonly #tell: { struck(atMs: number): void; quorum(state: QuorumState, atMs: number): void };
  #able: ReadonlySet<TestMember> = new Set();
  #pids: readonly number[] = [];
  #watching: Promise<void> | undefined;
  #ending = false;
  /** When a server was last missing, or no majority served. */
  lastTroubleMs: number = Number.NEGATIVE_INFINITY;

  constructor(
    ensemble: TestEnsemble,
    network: Network | undefined,
    tell: { struck(atMs: number): void; quorum(state: QuorumState, atMs: number): void },
  ) {
    this.ensemble = ensemble;
    this.network = network;
    this.#tell = tell;
  }

  watch(): void {
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#ending = true;
    await this.#watching;
  }

  part(member: TestMember, loss: Loss): void {
    const others = this.ensemble.members.filter((each) => each !== member);
    this.network?.part(member, others, loss);
    this.look();
  }

  heal(member: TestMember): void {
    this.network?.heal(member);
  }

  /** Whom the quorum can count on, as far as we have struck them. Cheap: asks nobody. */
  look(): void {
    const { members } = this.ensemble;
    const able = new Set(
      members.filter(
        (member) => member.state === 'running' && this.network?.isParted(member) !== true,
      ),
    );
    const pids = members.map(({ pid }) => pid);
    const nowMs = monotonicMs();
    const lost = [...this.#able].some((member) => !able.has(member));
    // Between two looks. One that comes back takes nothing away.
    const restarted = members.some(
      (member, index) => this.#able.has(member) && pids[index] !== this.#pids[index],
    );
    if (lost || restarted) this.#tell.struck(nowMs);
    this.#able = able;
    this.#pids = pids;
    if (able.size < members.length) this.lastTroubleMs = nowMs;
    if (2 * able.size <= members.length) this.#enter('down', nowMs);
  }

  #enter(state: QuorumState, atMs: number): void {
    if (state !== 'up') this.lastTroubleMs = atMs;
    this.#tell.quorum(state, atMs);
  }

  async #watch(): Promise<void> {
    while (!this.#ending) {
      this.look();
      const asked = this.#able;
      const modes = await Promise.all([...asked].map(modeOf));
      this.look();
      // A server that was struck meanwhile may have answered before.
      const same = asked.size === this.#able.size && [...asked].every((m) => this.#able.has(m));
      const state = same ? stateOf(modes, this.ensemble.members.length) : undefined;
      if (state !== undefined) this.#enter(state, monotonicMs());
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
    }
  }
}

/** Of a server that was asked; `late` says nothing: the machine may be busy. */
type Mode = 'leader' | 'follower' | 'neither' | 'late';

async function modeOf(member: TestMember): Promise<Mode> {
  try {
    const answer = await member.fourLetterWord('srvr', { timeoutMs: answerWithinMs });
    return (/^Mode: (leader|follower)/m.exec(answer)?.[1] as Mode | undefined) ?? 'neither';
  } catch (error) {
    const isLate = error instanceof TestServerError && error.code === 'TIMED_OUT';
    return isLate ? 'late' : 'neither';
  }
}

/** Undefined: the answers do not tell. */
function stateOf(modes: readonly Mode[], size: number): QuorumState | undefined {
  if (2 * modes.length <= size) return 'down';
  const count = (wanted: Mode) => modes.filter((mode) => mode === wanted).length;
  if (count('leader') === 1 && 2 * (1 + count('follower')) > size) return 'up';
  return count('late') > 0 ? undefined : 'able';
}
