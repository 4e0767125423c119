/**
 * Makes a node a replica, but only if no data are lost by that. Otherwise the node is set aside.
 */
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import type { ManagerEvent } from './events.ts';
import type { Hands } from './hands.ts';
import type { Lineage } from './lineage.ts';
import { includes, isMute, lineageOf, positionOf, reaching } from './lineage.ts';
import { lackedOf, meaningOf } from './tail-proof.ts';

export interface JoinWorld {
  readonly hands: Hands;
  readonly tell: (event: ManagerEvent) => void;
  readonly nowMs: () => number;
  /**
   * `always`: an operator has allowed in advance that data which only one node has are thrown away.
   */
  readonly rejoin: 'always' | 'proven';
  /** The last report of each quarantine, so that the same one is not reported twice. */
  readonly quarantined: Map<NodeAddress, string>;
}

export interface Joining {
  readonly node: NodeAddress;
  readonly primary: NodeAddress;
  readonly streams: StreamNotes;
  /** The node's state when its writes were paused. Since then only PINGs have moved its offset. */
  readonly stoodAt?: Replication | undefined;
  /**
   * The node had nothing more than the primary when that was chosen, and the primary is not
   * published yet. If the node has more now, it is `ahead`: it follows no node until the next
   * attempt has chosen.
   */
  readonly wasIncluded?: boolean;
}

export type Joined = 'joined' | 'loading' | 'quarantined' | 'ahead';

export async function join(joining: Joining, world: JoinWorld): Promise<Joined> {
  const { node, primary, streams } = joining;
  const { hands } = world;
  let says = await hands.replication(node);
  if (positionOf(says, streams.lineage).kind === 'loading') return 'loading';
  let stoodAt = joining.stoodAt;
  let missing: string | undefined;
  const isHeld = says.role === 'replica' && !says.isAside && says.primary !== primary;
  // Writes of the node that it follows could arrive between the question and the order.
  if (isHeld) says = await hands.hold(node);
  if (says.role === 'primary') {
    const tail = world.rejoin === 'proven' ? await readEnd(joining, says, world) : undefined;
    // A write could come between the question and the order.
    says = await hands.setAside(node);
    const stoodStillMeanwhile = tail !== undefined && world.nowMs() < tail.untilMs;
    if (tail !== undefined) await hands.resumeWrites(node);
    if (stoodStillMeanwhile) {
      missing = tail.missing;
      stoodAt = tail.stoodAt;
      if (missing === undefined && stoodStill(says, stoodAt) !== undefined) {
        await streams.include(tail.stoodAt);
      }
    }
  }
  const has = stoodStill(says, stoodAt) ?? says;
  // Asked after the node, which may be ahead of what the primary said before.
  const own = await hands.replication(primary);
  if (own.role !== 'primary') throw new Error(`${primary} is not a primary any more`);
  const isIncluded = includes(own, streams.lineage, has);
  const hasGotMore = isHeld && joining.wasIncluded === true && !isIncluded;
  if (hasGotMore && positionOf(says, streams.lineage).kind === 'known') return 'ahead';
  if (isIncluded || world.rejoin === 'always') {
    // Without this its PINGs would count as data that the primary lacks, while it waits for its
    // copy.
    if (isIncluded && has !== says) await streams.include(says);
    await hands.makeReplica(node, primary);
    world.quarantined.delete(node);
    return 'joined';
  }
  if (!says.isAside) says = await hands.setAside(node);
  const lacks = missingFrom(own, streams.lineage, says);
  const words = missing === undefined ? lacks : `${lacks}: ${missing}`;
  tellQuarantine(node, primary, words, says, world);
  return 'quarantined';
}

/**
 * Whether a node that was told to follow the primary earlier is about to replace more data by a
 * copy of it. Such a node has no connection with the primary yet, even if it says so, and is
 * further in a stream on record.
 * @param isFirstSight our managers have not judged the primary before, so no earlier stream is on
 *   record
 */
export function wouldLose(
  node: Replication,
  primary: Replication,
  lineage: Lineage,
  isFirstSight = false,
): boolean {
  // If nothing arrives, a replica reports for seconds that it is connected, although that process
  // is gone.
  const isConnected = node.linkUp && node.replicationId === primary.replicationId;
  if (isConnected || node.loading) return false;
  // A node whose position is unknown follows because an operator told it to.
  if (!isFirstSight && positionOf(node, lineage).kind !== 'known') return false;
  return !includes(primary, lineage, node);
}

/** How long writes are paused while the end of the stream is read. */
const readPauseMs = 10_000;

interface EndOfStream {
  /** The node's state when its writes were paused. */
  readonly stoodAt: Replication;
  /** Until this time it has taken no write since `stoodAt`. */
  readonly untilMs: number;
  /** The data of it that the primary lacks; undefined: nothing but PINGs and the like. */
  readonly missing: string | undefined;
}

/**
 * Reads the end of the stream of a primary that was cut off. PINGs and expired keys move its
 * offset, too, and only the stream tells what did. It is read before the node is set aside, because
 * Redis refuses it afterwards.
 * @returns undefined if there is nothing to read, or it cannot be read
 */
async function readEnd(
  { node, primary, streams }: Joining,
  says: Replication,
  { hands, nowMs }: JoinWorld,
): Promise<EndOfStream | undefined> {
  const own = await hands.replication(primary);
  const held = lineageOf(own, streams.lineage);
  const after = held.get(says.replicationId);
  const position = positionOf(says, new Map([...streams.lineage, ...held]));
  if (position.kind !== 'known' || position.stream !== says.replicationId) return undefined;
  if (own.role !== 'primary' || own.replicationId === says.replicationId) return undefined;
  if (after === undefined || says.offset <= after) return undefined;
  const untilMs = nowMs() + readPauseMs;
  await hands.pauseWrites(node, readPauseMs);
  const stoodAt = await hands.replication(node);
  const { replicationId: stream, offset: upTo, runId, role } = stoodAt;
  if (runId !== says.runId || stream !== says.replicationId || role !== 'primary') return undefined;
  const commands = await hands.readTail(node, { stream, after, upTo });
  if (commands === undefined) return undefined;
  const missing = await lackedOf(meaningOf(commands), (db, keys) =>
    hands.hasAny(primary, db, keys),
  );
  return { stoodAt, untilMs, missing };
}

/** The lineage on record. Before a node copies the primary, its stream is raised there. */
export class StreamNotes {
  #lineage: Lineage;
  readonly #write: (lineage: Lineage) => Promise<void>;
  /** Several nodes join at a time, and there is one record. */
  #writing: Promise<void> = Promise.resolve();

  constructor(lineage: Lineage, write: (lineage: Lineage) => Promise<void>) {
    this.#lineage = lineage;
    this.#write = write;
  }

  get lineage(): Lineage {
    return this.#lineage;
  }

  /** Notes that the primary has all of this node's stream: the rest of it is PINGs and the like. */
  include({ replicationId, offset }: Replication): Promise<void> {
    return this.#change((lineage) => reaching(lineage, replicationId, offset));
  }

  async #change(changed: (lineage: Lineage) => Lineage): Promise<void> {
    const next = this.#writing.then(async () => {
      const lineage = changed(this.#lineage);
      const isSame = [...lineage].every(([stream, at]) => this.#lineage.get(stream) === at);
      if (lineage.size === this.#lineage.size && isSame) return;
      await this.#write(lineage);
      this.#lineage = lineage;
    });
    this.#writing = next.catch(() => {});
    await next;
  }
}

/** The data that the primary lacks, or the reason why that is unknown, in words. */
export function missingFrom(primary: Replication, lineage: Lineage, node: Replication): string {
  const held = lineageOf(primary, lineage);
  const position = positionOf(node, new Map([...lineage, ...held]));
  if (position.kind !== 'known') {
    return isMute(node)
      ? 'it took writes that its offset does not count'
      : `nobody else knows its stream of writes (${node.replicationId})`;
  }
  const upTo = held.get(position.stream);
  return upTo === undefined
    ? `the primary is not in its stream of writes (${position.stream}, at ${position.offset})`
    : `${position.offset - upTo} bytes of writes after ${upTo}`;
}

function stoodStill(says: Replication, stoodAt: Replication | undefined): Replication | undefined {
  if (stoodAt === undefined || stoodAt.runId !== says.runId) return undefined;
  return stoodAt.replicationId === says.replicationId ? stoodAt : undefined;
}

function tellQuarantine(
  node: NodeAddress,
  primary: NodeAddress,
  missing: string,
  { replicationId: stream, offset, runId }: Replication,
  { quarantined, tell }: JoinWorld,
): void {
  const what = `${runId} ${stream} ${offset} ${primary}`;
  if (quarantined.get(node) === what) return;
  quarantined.set(node, what);
  tell({ type: 'quarantined', node, primary, stream, offset, missing });
}
