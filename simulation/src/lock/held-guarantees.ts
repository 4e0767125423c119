/** The checks of an election for one node, whatever stands beside it. */
import type { Node, Operation, Transaction } from '../harness/zookeeper/tree.ts';
import { QueueGuarantees } from '../queue/guarantees.ts';
import type { QueueProcess } from '../queue/process.ts';

export type Why = 'expired' | 'by hand' | 'own';

export abstract class HeldGuarantees extends QueueGuarantees {
  /** Called once when the lock is free. */
  onFree: (() => void) | undefined;
  /** As it was before the transaction that is judged. */
  #holder: string | undefined;
  /** When somebody else deleted its lock. */
  readonly #robbedAtMs: Map<QueueProcess, number> = new Map();

  protected abstract get lockPath(): string;

  override onCommit(
    transaction: Transaction,
    session: bigint,
    operations: readonly Operation[],
    why: Why,
  ): void {
    super.onCommit(transaction, session, operations, why);
    const before = this.#holder;
    this.#holder = this.places()[0];
    if (before === undefined || before === this.#holder) return;
    const owner = this.sim.ownerOf(before);
    const isRobbed = ['by hand', 'operator'].includes(this.vanished.get(before) ?? '');
    if (owner !== undefined && isRobbed) this.#robbedAtMs.set(owner, this.sim.world.nowMs);
    const told = this.onFree;
    this.onFree = undefined;
    told?.();
  }

  /** A check alone could have met the lock of another one. */
  protected override proves({ type, path }: Operation, session: bigint): boolean {
    if ((type !== 'check' && type !== 'create') || path !== this.lockPath) return false;
    return this.sim.ensemble.tree.get(path)?.owner === session;
  }

  protected override placeAt(path: string): string | undefined {
    return path === this.lockPath ? this.#holder : undefined;
  }

  protected override checkTaken(owner: QueueProcess | undefined, session: bigint): void {
    const process = this.sim.processOf(session);
    if (process === undefined) {
      super.checkTaken(owner, session);
      return;
    }
    // It had looked at the lock, at most a timeout before it sent the deletion. The deletion is
    // under way for another timeout at most, and cannot name the czxid.
    const { world, scenario, coverage } = this.sim;
    const robbedMs = world.nowMs - (this.#robbedAtMs.get(process) ?? Number.NEGATIVE_INFINITY);
    if (robbedMs <= 2 * scenario.timeoutMs) coverage.count('locks deleted in place of an own one');
    else world.fail('others', `${process.name} deletes the lock of ${owner?.name ?? 'a stranger'}`);
  }

  /** All that wait for a lock wake up. */
  protected override checkHerd(): void {}

  /** A deletion that is late would meet the lock of another one. */
  protected override goesWithItsSession({ owner }: Node, session: bigint): boolean {
    return owner !== session;
  }

  protected override mayBeVoid(place: string): boolean {
    return ['by hand', 'operator'].includes(this.vanished.get(place) ?? '');
  }
}
