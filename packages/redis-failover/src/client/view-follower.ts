import type { Clock, Confirmed, GetReply, StateChange } from '@incumbent/zookeeper';
import { formatDuration } from 'incumbent';
import { readClocks } from '../clock.ts';
import type { LayoutError, Paths } from '../layout.ts';
import { decodeNodes, decodePrimary } from '../layout.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';
import type { Bound } from './bound.ts';
import type { Picture, Proposal, Reign, Seen, ViewOptions } from './view.ts';
import { View } from './view.ts';

/** The shortest and the longest pause before a confirmation that failed is tried again. */
const retryPausesMs = { shortest: 20, longest: 500 };

/** How often the clocks are read while a view holds. */
const lookEveryMs = 250;

/** Keeps a view up to date: follows the two znodes, confirms what they say, and judges replies. */
export class ViewFollower {
  readonly #zk: ZooKeeperClient;
  readonly #paths: Paths;
  readonly #clock: Clock;
  readonly #view: View;
  readonly #stop = new AbortController();
  readonly #looks = new Set<() => void>();
  readonly #running: Promise<unknown>;
  readonly #forgetState: () => void;
  /** Ends the pause of the loop that confirms. */
  #wakeConfirmer: () => void = () => {};
  #looking: { cancel(): void } | undefined;
  /** Replies wait for a confirmation that is sent after this time. */
  #wantedAfterMs = Number.NEGATIVE_INFINITY;
  /** Since when ZooKeeper is away, on the monotonic clock. */
  #awaySinceMs: number | undefined;
  /** The znode that was read last cannot be understood. */
  #trouble: LayoutError | undefined;
  /** Why a znode is no longer followed. */
  #failure: Error | undefined;
  /** Since when there is no primary, on the monotonic clock. */
  #movingSinceMs: number | undefined;

  constructor(zk: ZooKeeperClient, paths: Paths, clock: Clock, options: ViewOptions) {
    this.#zk = zk;
    this.#paths = paths;
    this.#clock = clock;
    this.#view = new View(options);
    this.#forgetState = zk.onState((change) => this.#onState(change));
    if (zk.state !== 'connected') this.#awaySinceMs = clock.monotonicMs();
    const { primary, nodes } = paths;
    this.#running = Promise.allSettled([
      this.#follow(primary, decodePrimary, (seen) => this.#view.seeRecord(seen)),
      this.#follow(nodes, decodeNodes, (seen) => this.#view.seeNodes(seen)),
      this.#confirm(),
    ]);
  }

  get picture(): Picture {
    return this.#view.picture;
  }

  /** The term that ZooKeeper showed last, confirmed or not; undefined while the primary moves. */
  get reign(): Reign | undefined {
    return this.#view.named;
  }

  /** The process of a term's primary, as the record last said. */
  runIdOf(reign: Reign): string | undefined {
    return this.#view.runIdOf(reign);
  }

  /** The term in which a write may be sent now; undefined while no view holds. */
  usable(): Reign | undefined {
    return this.#view.usable(readClocks(this.#clock));
  }

  /**
   * Waits for a term in which a write may be sent. Rejects with the reason of `bound`, and with an
   * error of ZooKeeper that no waiting cures.
   */
  waitUntilUsable(bound: Bound): Promise<Reign> {
    return this.until(() => {
      if (this.#failure !== undefined) throw this.#failure;
      return this.usable();
    }, bound);
  }

  /** Resolves when both znodes have been read. */
  async waitUntilRead(bound: Bound): Promise<void> {
    await this.until(() => {
      if (this.trouble !== undefined) throw this.trouble;
      return this.#view.complete || undefined;
    }, bound);
  }

  /**
   * Judges a reply. To be called in the turn of the event loop in which the reply arrives: it first
   * reads the clocks.
   * @returns false if the primary was moved, so that it is unknown whether the write survives.
   *   Rejects with the reason of `bound` if that could not be found out in time
   */
  settle(reign: Reign, connectedMs: number, bound: Bound): boolean | Promise<boolean> {
    const arrivedAt = readClocks(this.#clock);
    const verdict = this.#view.judgeArrival(reign, arrivedAt, connectedMs);
    if (verdict !== 'held') return verdict === 'acknowledged';
    this.expectConfirmation(arrivedAt.monotonicMs);
    return this.until(() => {
      const later = this.#view.judgeHeld(reign, arrivedAt);
      return later === 'held' ? undefined : later === 'acknowledged';
    }, bound);
  }

  /** Asks for a confirmation that is sent after `afterMs`, on the monotonic clock. */
  expectConfirmation(afterMs: number): void {
    if (afterMs <= this.#wantedAfterMs) return;
    this.#wantedAfterMs = afterMs;
    this.#wakeConfirmer();
  }

  /** Why the znodes cannot be followed or understood; undefined when all is well. */
  get trouble(): Error | undefined {
    return this.#failure ?? this.#trouble;
  }

  /** Whether no reply to a command of that term can count any more. */
  isHopeless(reign: Reign): boolean {
    return this.#view.isHopeless(reign, readClocks(this.#clock));
  }

  /** Calls `look` now and after every change, until it returns a value or throws. */
  async until<Value>(look: () => Value | undefined, bound: Bound): Promise<Value> {
    const now = look();
    if (now !== undefined) return now;
    return new Promise((resolve, reject) => {
      const again = () => {
        try {
          const value = look();
          if (value !== undefined) finish(() => resolve(value));
        } catch (error) {
          finish(() => reject(error));
        }
      };
      const giveUp = () => finish(() => reject(bound.reason));
      const finish = (settle: () => void) => {
        this.#looks.delete(again);
        forget();
        settle();
      };
      if (bound.isOver) return reject(bound.reason);
      this.#looks.add(again);
      const forget = bound.onOver(giveUp);
    });
  }

  /** Calls `listener` after every change that may matter. @returns stops it */
  onChange(listener: () => void): () => void {
    this.#looks.add(listener);
    return () => this.#looks.delete(listener);
  }

  /** Why there is no primary to write to, as the end of a sentence. */
  explain(): string {
    const { record, nodes } = this.#view;
    const { primary, root } = this.#paths;
    if (this.trouble !== undefined) return `ZooKeeper says: ${this.trouble.message}`;
    if (this.#awaySinceMs !== undefined) {
      return `ZooKeeper has been out of reach for ${this.#since(this.#awaySinceMs)}`;
    }
    if (!this.#view.complete) return 'ZooKeeper has not said yet who is primary';
    if (record === undefined && nodes === undefined) {
      return (
        `there is neither ${primary} nor ${this.#paths.nodes} in ZooKeeper: is ${root} the root ` +
        'that the managers use, and does one run?'
      );
    }
    if (record !== undefined && nodes !== undefined && record.primary !== nodes.master) {
      return (
        `${primary} says ${record.primary ?? 'nobody'} and ${this.#paths.nodes} says ` +
        `${nodes.master ?? 'nobody'} is primary: do managers of both kinds run?`
      );
    }
    if (this.#movingSinceMs !== undefined) {
      const from =
        record?.former === undefined || record.former === null ? '' : ` from ${record.former}`;
      return `the primary has been moving${from} for ${this.#since(this.#movingSinceMs)}`;
    }
    return 'ZooKeeper has not confirmed in time who is primary';
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#forgetState();
    this.#looking?.cancel();
    this.#wakeConfirmer();
    await this.#running;
    this.#looks.clear();
  }

  async #follow<Value>(
    path: string,
    decode: (path: string, text: string) => Value,
    see: (seen: Seen<Value> | undefined | null) => void,
  ): Promise<void> {
    const { signal } = this.#stop;
    try {
      for await (const reply of this.#zk.follow(path, { signal })) {
        see(this.#decode(path, decode, reply));
        this.#tell();
      }
    } catch (error) {
      // An error such as a denied ACL, which no waiting repairs.
      this.#failure = error as Error;
      this.#tell();
    }
  }

  #decode<Value>(
    path: string,
    decode: (path: string, text: string) => Value,
    reply: GetReply | undefined,
  ): Seen<Value> | undefined | null {
    if (this.#trouble?.path === path) this.#trouble = undefined;
    if (reply === undefined) return undefined;
    try {
      const { version, czxid, mzxid } = reply.stat;
      const value = decode(path, reply.text);
      return { value, version, createdZxid: czxid, modifiedZxid: mzxid };
    } catch (error) {
      // The znode may be repaired. Until then it says nothing.
      this.#trouble = error as LayoutError;
      return null;
    }
  }

  /**
   * Confirms the view, one confirmation at a time: three times in the life of a view, and at once
   * if a reply waits for one.
   */
  async #confirm(): Promise<void> {
    const { signal } = this.#stop;
    let sentMs = Number.NEGATIVE_INFINITY;
    let failed:
      | { readonly proposal: Proposal; readonly times: number; readonly atMs: number }
      | undefined;
    while (!signal.aborted) {
      const { proposal } = this.#view;
      if (proposal === undefined) {
        await this.#pause(undefined);
        continue;
      }
      const now = readClocks(this.#clock);
      let dueMs = sentMs + proposal.viewMs / 3;
      if (!this.#view.believes(now) || this.#wantedAfterMs > sentMs) {
        dueMs = sentMs + retryPausesMs.shortest;
      }
      if (failed?.proposal === proposal) {
        const pauseMs = retryPausesMs.shortest * 2 ** Math.min(failed.times - 1, 10);
        dueMs = failed.atMs + Math.min(pauseMs, retryPausesMs.longest);
      }
      if (dueMs > now.monotonicMs) {
        await this.#pause(dueMs - now.monotonicMs);
        continue;
      }
      try {
        const { sentAt } = await this.#zk.confirm(this.#checks(proposal), { signal });
        sentMs = sentAt.monotonicMs;
        failed = undefined;
        this.#view.confirmed(proposal, sentAt);
        if (this.#looking === undefined) this.#keepLooking();
        this.#tell();
      } catch {
        // If the version is another one, the news of that is on its way. Otherwise ZooKeeper is
        // away, which its state says.
        const times = failed?.proposal === proposal ? failed.times + 1 : 1;
        failed = { proposal, times, atMs: this.#clock.monotonicMs() };
      }
    }
  }

  /** Reads the clocks regularly as long as a view holds, even while ZooKeeper does not answer. */
  #keepLooking(): void {
    const isBelieved = this.#view.look(readClocks(this.#clock));
    this.#looking =
      isBelieved && !this.#stop.signal.aborted
        ? this.#clock.setTimer(() => this.#keepLooking(), lookEveryMs)
        : undefined;
  }

  #checks({ recordVersion, nodesVersion }: Proposal): Confirmed[] {
    const { primary, nodes } = this.#paths;
    const checks: Confirmed[] = [{ path: nodes, version: nodesVersion }];
    if (recordVersion !== undefined) checks.push({ path: primary, version: recordVersion });
    return checks;
  }

  /** Waits until the time is over, or something has changed. */
  async #pause(ms: number | undefined): Promise<void> {
    if (this.#stop.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = ms === undefined ? undefined : this.#clock.setTimer(resolve, ms);
      this.#wakeConfirmer = () => {
        timer?.cancel();
        resolve();
      };
    });
    this.#wakeConfirmer = () => {};
  }

  #onState({ state }: StateChange): void {
    if (state === 'connected') this.#awaySinceMs = undefined;
    else this.#awaySinceMs ??= this.#clock.monotonicMs();
    this.#tell();
  }

  #tell(): void {
    if (this.#view.named !== undefined) this.#movingSinceMs = undefined;
    else if (this.#view.complete) this.#movingSinceMs ??= this.#clock.monotonicMs();
    this.#wakeConfirmer();
    for (const look of [...this.#looks]) look();
  }

  #since(ms: number): string {
    return formatDuration(Math.round(this.#clock.monotonicMs() - ms));
  }
}
