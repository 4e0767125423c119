/** The checks of a lock: those of a queue, by the nodes of Hadoop. */
import { isDeepStrictEqual } from 'node:util';
import type { QueueRecord } from '../harness/library.ts';
import type { Node, Operation, Transaction } from '../harness/zookeeper/tree.ts';
import type { Candidacy } from '../queue/candidacy.ts';
import { QueueGuarantees, queueGuarantees } from '../queue/guarantees.ts';
import type { QueueProcess } from '../queue/process.ts';
import { breadcrumbIn, lockIn } from './nodes.ts';

/** All wake up when a lock is free. */
const { herd: _, ...shared } = queueGuarantees;

export const lockGuarantees: Omit<typeof queueGuarantees, 'herd' | 'place'> &
  Readonly<Record<'place' | 'breadcrumb' | 'others', string>> = {
  ...shared,
  place: 'whoever is announced has the lock; if it was deleted by hand just then, it does not lead',
  breadcrumb: 'the breadcrumb is written with every announcement, and goes with every clean end',
  others:
    'no candidate deletes the lock of another one, unless its own was deleted by hand just now',
};

type Why = 'expired' | 'by hand' | 'own';

/** The breadcrumb as it is committed. */
interface Breadcrumb {
  readonly mzxid: bigint;
  /** Written by a member that is not ours. */
  readonly isForeign: boolean;
}

export class LockGuarantees extends QueueGuarantees {
  /** Called once when the lock is free. */
  onFree: (() => void) | undefined;
  /** As they were before the transaction that is judged. */
  #holder: string | undefined;
  #breadcrumb: Breadcrumb | undefined;
  readonly #foreignTokens: bigint[] = [];
  /** When somebody else deleted its lock. */
  readonly #robbedAtMs: Map<QueueProcess, number> = new Map();

  override onCommit(
    transaction: Transaction,
    session: bigint,
    operations: readonly Operation[],
    why: Why,
  ): void {
    const { path } = this.contest;
    const last = this.record;
    super.onCommit(transaction, session, operations, why);
    const isWritten = operations.some((each) => each.type === 'set' && each.path === path);
    // The same again is no announcement.
    if (isWritten && !isDeepStrictEqual(this.record, last))
      this.#checkBreadcrumb(session, transaction);
    this.#onBreadcrumb(transaction, session);
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

  #onBreadcrumb({ changes }: Transaction, session: bigint): void {
    const path = breadcrumbIn(this.contest.path);
    if (!changes.has(path)) return;
    const node = changes.get(path);
    const isForeign = session === 0n;
    this.#breadcrumb = node && { mzxid: node.mzxid, isForeign };
    if (isForeign) {
      const { world } = this.sim;
      const what = node === undefined ? 'deletes the breadcrumb' : 'writes the breadcrumb';
      world.trace.add(world.nowMs, 'stranger', what, () => `${path} ${node?.mzxid ?? ''}`);
    }
    if (node !== undefined && isForeign) this.#foreignTokens.push(node.mzxid);
  }

  /** Of a record that one of ours has written. */
  #checkBreadcrumb(session: bigint, { zxid }: Transaction): void {
    const { record } = this;
    const { world, ensemble, coverage } = this.sim;
    const process = this.sim.processOf(session);
    if (process === undefined || record?.holding === undefined) return;
    const announcement = this.announcements.get(record.token);
    if (announcement?.by?.process !== process) return;
    const node = ensemble.tree.get(breadcrumbIn(this.contest.path));
    const isNew = announcement.zxid === zxid;
    if (node === undefined || (isNew && node.mzxid !== zxid)) {
      world.fail('breadcrumb', `term ${record.token} is announced without a breadcrumb of its own`);
    }
    if (!isNew) return;
    if (process.plan.pollMs !== undefined) coverage.count('terms of candidates that poll');
    if (announcement.by.handle > 1) coverage.count('terms of a candidate that shares its client');
    if (this.#breadcrumb?.isForeign === true) coverage.count('leaders after one that is not ours');
  }

  protected override checkReleased({ name }: Candidacy, { changes }: Transaction): void {
    const { path } = this.contest;
    const hasLeft = changes.has(lockIn(path)) && changes.get(lockIn(path)) === undefined;
    if (!hasLeft || this.sim.ensemble.tree.get(breadcrumbIn(path)) === undefined) return;
    this.sim.world.fail('breadcrumb', `${name} ends clean and leaves the breadcrumb`);
  }

  /** A check alone could have met the lock of another one. */
  protected override proves({ type, path }: Operation, session: bigint): boolean {
    if ((type !== 'check' && type !== 'create') || path !== lockIn(this.contest.path)) return false;
    return this.sim.ensemble.tree.get(path)?.owner === session;
  }

  protected override placeAt(path: string): string | undefined {
    return path === lockIn(this.contest.path) ? this.#holder : undefined;
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

  protected override lastLed(record: QueueRecord | undefined): QueueRecord | undefined {
    const breadcrumb = this.#breadcrumb;
    if (breadcrumb === undefined || !breadcrumb.isForeign) return record;
    const { mzxid } = breadcrumb;
    if (record?.token === mzxid) return record;
    const place = `${breadcrumbIn(this.contest.path)}@0x${mzxid.toString(16)}`;
    const incarnation = `0x${mzxid.toString(16)}`;
    return {
      ...(record ?? emptyRecord),
      token: mzxid,
      place,
      nonce: place,
      holding: {
        candidate: { id: 'stranger', incarnation, addresses: [], metadata: {} },
        place,
        revoked: false,
        request: undefined,
      },
    };
  }

  /** Hadoop's own have fenced whoever they found, and say with the breadcrumb that they stopped. */
  protected override get wasFenced(): boolean {
    return this.#breadcrumb === undefined;
  }

  /** A deletion that is late would meet the lock of another one. */
  protected override goesWithItsSession({ owner }: Node, session: bigint): boolean {
    return owner !== session;
  }

  protected override mayBeVoid(place: string): boolean {
    return ['by hand', 'operator'].includes(this.vanished.get(place) ?? '');
  }

  protected override wasSuperseded(token: bigint): boolean {
    return super.wasSuperseded(token) || this.#foreignTokens.some((each) => each > token);
  }
}

const emptyRecord: QueueRecord = {
  token: 0n,
  nonce: '',
  beliefMs: 0,
  ended: false,
  place: '',
  holding: undefined,
  reservation: undefined,
  unfenced: [],
  drains: [],
  history: [],
};
