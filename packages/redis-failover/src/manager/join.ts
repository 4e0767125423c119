/** How a node becomes a replica: only if nothing is lost by that. Else it is set aside. */
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import type { ManagerEvent } from './events.ts';
import type { Hands } from './hands.ts';
import type { Lineage } from './lineage.ts';
import { includes, joinedBy, lineageOf, positionOf } from './lineage.ts';

export interface JoinWorld {
  readonly hands: Hands;
  readonly tell: (event: ManagerEvent) => void;
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
}

export type Joined = 'joined' | 'loading' | 'quarantined';

export async function join(joining: Joining, world: JoinWorld): Promise<Joined> {
  const { node, primary, streams } = joining;
  const { hands } = world;
  let says = await hands.replication(node);
  if (positionOf(says, streams.lineage).kind === 'loading') return 'loading';
  // A write could come between the question and the order.
  if (says.role === 'primary') says = await hands.setAside(node);
  const has = stoodStill(says, joining.stoodAt) ?? says;
  // Asked after the node, which may be ahead of what its primary said before.
  const own = await hands.replication(primary);
  if (own.role !== 'primary') throw new Error(`${primary} is not a primary any more`);
  const isIncluded = includes(own, streams.lineage, has);
  if (isIncluded || world.rejoin === 'always') {
    if (isIncluded) await streams.note(has);
    await hands.makeReplica(node, primary);
    world.quarantined.delete(node);
    return 'joined';
  }
  if (!says.isAside) says = await hands.setAside(node);
  tellQuarantine(node, primary, missingFrom(own, streams.lineage, says), says, world);
  return 'quarantined';
}

/** The lineage on record, to which the streams of nodes that join are added before they copy. */
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

  async note(node: Replication): Promise<void> {
    const next = this.#writing.then(async () => {
      const lineage = joinedBy(this.#lineage, node);
      if (
        lineage.size === this.#lineage.size &&
        [...lineage.keys()].every((stream) => this.#lineage.has(stream))
      )
        return;
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
    const isMute = (node.role === 'primary' || node.isAside) && !node.hasBacklog;
    return isMute
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
