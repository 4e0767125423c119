/** The checks of an election for one node of any name: those of a lock, by its own nodes. */
import type { Operation, Transaction } from '../harness/zookeeper/tree.ts';
import { parentOf } from '../harness/zookeeper/tree.ts';
import type { Why } from '../lock/held-guarantees.ts';
import { HeldGuarantees } from '../lock/held-guarantees.ts';
import { queueGuarantees } from '../queue/guarantees.ts';
import { lockBeside } from './nodes.ts';

/** All wake up when the node is free. */
const { herd: _, ...shared } = queueGuarantees;

export const nodeGuarantees: Omit<typeof queueGuarantees, 'herd' | 'place'> &
  Readonly<Record<'place' | 'badge' | 'others' | 'theirs', string>> = {
  ...shared,
  place: 'whoever is announced has the node; if it was deleted by hand just then, it does not lead',
  badge: 'a badge goes with its node when that one leaves, or its session is over',
  others:
    'no candidate deletes the node of another one, unless its own was deleted by hand just now',
  theirs: 'whoever follows a member that is not ours has waited as long as one of ours may believe',
};

export class NodeGuarantees extends HeldGuarantees {
  /** When a member that is not ours lost the node, and nobody was announced since. */
  #theirsGoneAtMs: number | undefined;
  #isTheirs = false;

  override onCommit(
    transaction: Transaction,
    session: bigint,
    operations: readonly Operation[],
    why: Why,
  ): void {
    super.onCommit(transaction, session, operations, why);
    this.#onAnnounced(transaction);
    const [place] = this.places();
    const isTheirs = place !== undefined && this.sim.ownerOf(place) === undefined;
    if (this.#isTheirs && !isTheirs) this.#theirsGoneAtMs = this.sim.world.nowMs;
    this.#isTheirs = isTheirs;
    if (why !== 'by hand') this.#checkBadges();
  }

  protected override get lockPath(): string {
    return lockBeside(this.contest.path);
  }

  protected override isOfElection(path: string): boolean {
    return path === this.lockPath || super.isOfElection(path);
  }

  #onAnnounced({ zxid }: Transaction): void {
    const announcement = this.announcements.get(this.record?.token ?? 0n);
    if (announcement?.by === undefined || announcement.zxid !== zxid) return;
    const { world, coverage, scenario } = this.sim;
    const { name, process, handle, timing } = announcement.by;
    if (process.plan.pollMs !== undefined) coverage.count('terms of candidates that poll');
    if (handle > 1) coverage.count('terms of a candidate that shares its client');
    const goneAtMs = this.#theirsGoneAtMs;
    if (announcement.isVoid || goneAtMs === undefined) return;
    this.#theirsGoneAtMs = undefined;
    coverage.count('leaders after one that is not ours');
    const waitedMs = world.nowMs - goneAtMs;
    if (!scenario.waits || waitedMs >= timing.beliefMs) return;
    world.fail(
      'theirs',
      `${name} is announced ${waitedMs.toFixed(1)} ms after a member that is not ours had the node; ` +
        `its belief is ${timing.beliefMs.toFixed(1)} ms`,
    );
  }

  #checkBadges(): void {
    const { tree } = this.sim.ensemble;
    const { path } = this.contest;
    const lock = tree.get(this.lockPath);
    for (const child of tree.get(path)?.children ?? []) {
      const badge = tree.get(`${path}/${child}`);
      if (badge === undefined || badge.czxid === lock?.czxid) continue;
      const place = `${this.lockPath}@0x${badge.czxid.toString(16)}`;
      // Any other member that deletes the node may not know the badge.
      if (['by hand', 'operator'].includes(this.vanished.get(place) ?? '')) continue;
      this.sim.world.fail(
        'badge',
        `the badge ${child} is there, and the node of that member in ${parentOf(path)} is not`,
      );
    }
  }
}
