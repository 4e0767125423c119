import type { Clock, GetReply } from '@incumbent/zookeeper';
import { BadVersionError, ClosedError, NodeExistsError, NoNodeError } from '@incumbent/zookeeper';
import { pause, systemClock } from '../clock.ts';
import type { Paths, Report } from '../layout.ts';
import { encodeReport } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';
import type { NodeSight } from './node-watcher.ts';
import { Wake } from './wake.ts';

export { ReportBoard } from './report-board.ts';

const retryMs = 250;
const foreverMs = 2 ** 31 - 1;

/**
 * The report of one manager about the nodes that it watches. Nodes without a first check are left
 * out.
 */
export function reportOf(sights: Iterable<NodeSight>): Report {
  const available: Record<NodeAddress, number> = {};
  const unavailable: NodeAddress[] = [];
  for (const { address, state, latencyMs } of sights) {
    if (state === 'unavailable') unavailable.push(address);
    // In seconds, as the gem has it, rounded to whole microseconds.
    if (state === 'available') available[address] = Math.round((latencyMs ?? 0) * 1e3) / 1e6;
  }
  return { available, unavailable };
}

/**
 * Keeps the report of one manager in ZooKeeper, as an ephemeral child of `manager_node_state`. It
 * goes with the session, and is written again in the next one.
 */
export class Reporter {
  readonly #zk: ZooKeeperClient;
  readonly #parent: string;
  readonly #path: string;
  readonly #onTrouble: (error: Error) => void;
  readonly #stop: AbortController = new AbortController();
  readonly #clock: Clock;
  readonly #wake: Wake;
  readonly #running: Promise<unknown>;
  /** The sessions in which this reporter has published. */
  readonly #ours: Set<bigint> = new Set();
  #wanted: string | undefined;
  /** The last reported trouble, unless it has passed. */
  #trouble: string | undefined;

  /**
   * Publishes nothing before the first `publish`.
   * @param id of the manager
   * @param onTrouble called with the reason if the report cannot be published. The same reason is
   *   told once, and the reporter tries again and again
   */
  constructor(
    zk: ZooKeeperClient,
    paths: Paths,
    id: string,
    onTrouble: (error: Error) => void = () => {},
    clock: Clock = systemClock,
  ) {
    this.#clock = clock;
    this.#wake = new Wake(clock);
    this.#zk = zk;
    this.#parent = paths.reports;
    this.#path = `${paths.reports}/${id}`;
    this.#onTrouble = onTrouble;
    this.#running = Promise.all([this.#follow(), this.#keep()]);
  }

  /** Publishes the latest report. To be called whenever a watcher has news. */
  publish(report: Report): void {
    this.#wanted = encodeReport(report);
    this.#wake.call();
  }

  /** Deletes the report, as well as that can be done. Never rejects. Idempotent. */
  async close(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    await this.#running;
    const present = await this.#read().catch(() => undefined);
    if (present === undefined || !this.#ours.has(present.stat.ephemeralOwner)) return;
    const { version } = present.stat;
    // If this fails, the report goes with the session.
    await this.#zk.delete(this.#path, { version }).catch(() => {});
  }

  /** Wakes the loop if somebody else deleted or changed the report, or it went with a session. */
  async #follow(): Promise<void> {
    try {
      for await (const _ of this.#zk.follow(this.#path, { signal: this.#stop.signal })) {
        this.#wake.call();
      }
    } catch (error) {
      if (!(error instanceof ClosedError)) this.#onTrouble(error as Error);
    }
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#update();
        this.#trouble = undefined;
        await this.#wake.wait(foreverMs, signal);
      } catch (error) {
        if (signal.aborted || error instanceof ClosedError) return;
        const { message } = error as Error;
        if (message !== this.#trouble) this.#onTrouble(error as Error);
        this.#trouble = message;
        await pause(this.#clock, retryMs, signal);
      }
    }
  }

  async #update(): Promise<void> {
    const wanted = this.#wanted;
    if (wanted === undefined) return;
    try {
      const present = await this.#read();
      if (present === undefined) return await this.#create(wanted);
      const { ephemeralOwner, version } = present.stat;
      if (ephemeralOwner === this.#zk.session?.id) {
        this.#ours.add(ephemeralOwner);
        if (present.text !== wanted) await this.#set(wanted, version);
        return;
      }
      if (!this.#ours.has(ephemeralOwner)) {
        throw new Error(
          `the report ${this.#path} is kept by another session (0x${ephemeralOwner.toString(16)}): ` +
            'another manager has the same id, or this one was started again before its session ended',
        );
      }
      // This znode would go with our earlier session, and the report with it.
      await this.#zk.delete(this.#path, { version });
      await this.#create(wanted);
    } catch (error) {
      const isOvertaken =
        error instanceof NoNodeError ||
        error instanceof NodeExistsError ||
        error instanceof BadVersionError;
      if (!isOvertaken) throw error;
      // Another change came first, so the loop looks at the report again.
      this.#wake.call();
    }
  }

  async #create(text: string): Promise<void> {
    try {
      await this.#zk.create(this.#path, text, { ephemeral: true });
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      await this.#zk.ensurePath(this.#parent);
      await this.#zk.create(this.#path, text, { ephemeral: true });
    }
    const { session } = this.#zk;
    if (session !== undefined) this.#ours.add(session.id);
  }

  async #set(text: string, version: number): Promise<void> {
    await this.#zk.set(this.#path, text, { version });
  }

  async #read(): Promise<GetReply | undefined> {
    try {
      return await this.#zk.get(this.#path);
    } catch (error) {
      if (error instanceof NoNodeError) return undefined;
      throw error;
    }
  }
}
