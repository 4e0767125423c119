/** The checks of a lock: those of a queue, by the nodes of Hadoop. */
import { isDeepStrictEqual } from 'node:util';
import type { QueueRecord } from '../harness/library.ts';
import type { Operation, Transaction } from '../harness/zookeeper/tree.ts';
import type { Candidacy } from '../queue/candidacy.ts';
import { queueGuarantees } from '../queue/guarantees.ts';
import type { Why } from './held-guarantees.ts';
import { HeldGuarantees } from './held-guarantees.ts';
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

/** The breadcrumb as it is committed. */
interface Breadcrumb {
  readonly mzxid: bigint;
  /** Written by a member that is not ours. */
  readonly isForeign: boolean;
}

export class LockGuarantees extends HeldGuarantees {
  /** As it was before the transaction that is judged. */
  #breadcrumb: Breadcrumb | undefined;
  readonly #foreignTokens: bigint[] = [];

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
  }

  protected override get lockPath(): string {
    return lockIn(this.contest.path);
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
