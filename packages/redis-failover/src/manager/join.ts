/** How a node becomes a replica: only if nothing is lost by that. Else it is set aside. */
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
  /** `always`: an operator has said beforehand that what only one node has may be thrown away. */
  readonly rejoin: 'always' | 'proven';
  /** What was told of each quarantine, so that it is told once. */
  readonly quarantined: Map<NodeAddress, string>;
}

export interface Joining {
  readonly node: NodeAddress;
  readonly primary: NodeAddress;
  readonly streams: StreamNotes;
  /** What it had when its writes were stopped: since then only PINGs have moved its offset. */
  readonly stoodAt?: Replication | undefined;
  /**
   * It had nothing more when the primary was chosen, and that is not published yet. If it has more now, it is
   * `ahead`, and follows nobody until the next attempt has chosen.
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
  // What another node has sent could arrive between the question and the order.
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
  // Asked after the node, which may be ahead of what its primary said before.
  const own = await hands.replication(primary);
  if (own.role !== 'primary') throw new Error(`${primary} is not a primary any more`);
  const isIncluded = includes(own, streams.lineage, has);
  const hasGotMore = isHeld && joining.wasIncluded === true && !isIncluded;
  if (hasGotMore && positionOf(says, streams.lineage).kind === 'known') return 'ahead';
  if (isIncluded || world.rejoin === 'always') {
    // Else its PINGs would count as more than the primary has, while it waits for its copy.
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
 * Whether a node that was told to follow the primary before will copy it in place of more: it has no
 * connection with it, whatever it believes, and is further in a stream on record.
 * @param isFirstSight nobody of ours has judged the primary before, so that no stream of before is on record
 */
export function wouldLose(
  node: Replication,
  primary: Replication,
  lineage: Lineage,
  isFirstSight = false,
): boolean {
  // Where nothing arrives a replica believes for seconds in a connection with a process that is gone.
  const isConnected = node.linkUp && node.replicationId === primary.replicationId;
  if (isConnected || node.loading) return false;
  // Else an operator has told it to follow.
  if (!isFirstSight && positionOf(node, lineage).kind !== 'known') return false;
  return !includes(primary, lineage, node);
}

/** For so long writes are held up while the end of the stream is read. */
const readPauseMs = 10_000;

interface EndOfStream {
  /** What it had when its writes were stopped. */
  readonly stoodAt: Replication;
  /** Until then nothing was written there since. */
  readonly untilMs: number;
  /** What the primary lacks of it; undefined: nothing but PINGs and the like. */
  readonly missing: string | undefined;
}

/**
 * Of a primary that somebody cut off: PINGs and expired keys move its offset, too. Its own stream says
 * what has moved it. It is read while the node is a primary: set aside it refuses to give it.
 * @returns undefined where nothing is to be read, or it cannot be
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

/** The lineage on record, in which a stream is raised before a node of it copies. */
export class StreamNotes {
  #lineage: Lineage;
  readonly #write: (lineage: Lineage) => Promise<void>;
  /** Nodes join side by side, and there is one record. */
  #writing: Promise<void> = Promise.resolve();

  constructor(lineage: Lineage, write: (lineage: Lineage) => Promise<void>) {
    this.#lineage = lineage;
    this.#write = write;
  }

  get lineage(): Lineage {
    return this.#lineage;
  }

  /** The primary has all that this node has in its stream: what is more there are PINGs and the like. */
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

/** What the primary would need to include the node. */
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
