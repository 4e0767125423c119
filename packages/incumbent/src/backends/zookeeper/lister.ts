import { inParallel } from '../../base/in-parallel.ts';
import type { ElectionPages, FoundElection, Wanted } from '../../core/listing.ts';
import { onlyNamed, unreadable } from '../../core/listing.ts';
import type { Leases } from '../../mechanisms/lease/store.ts';
import type { ListedQueue } from '../../mechanisms/queue/listing.ts';
import { foundQueue } from '../../mechanisms/queue/listing.ts';
import { leaderPlaceIn } from '../../mechanisms/queue/named-places.ts';
import type { Member, RecordReading } from '../../mechanisms/queue/store.ts';
import { leasePath } from './check-options.ts';
import type { NodeContent, ZooKeeperClient } from './client.ts';
import { codeOf } from './client.ts';
import { storeError } from './errors.ts';
import type { QueueLayout } from './layout.ts';
import { memberFrom, placesAmong, readingOf } from './store.ts';
import type { VisitedNode } from './walk.ts';
import { visit, visitPage } from './walk.ts';

/** How many elections are looked at once. Each reads its waiting members. */
const electionsAtOnce = 200;

const text = new TextDecoder();

/** `leases.shards`: the nodes with a first part below them. */
export function zooKeeperShards(
  client: ZooKeeperClient,
  root: string,
): NonNullable<Leases['shards']> {
  const below = leasePath(root);
  const goesInto = (child: string) => !/^(\d+|list|directory)$|\.made$/.test(child);
  return async (signal) => {
    const names: string[] = [];
    let after: unknown;
    do {
      const { nodes, next } = await visitPage(client, below, after, goesInto, signal);
      for (const node of nodes) {
        if ('children' in node && node.children.includes('1')) names.push(node.name);
      }
      after = next;
    } while (after !== undefined);
    return names;
  };
}

/**
 * The elections of a layout that is a queue: the nodes below `root` that hold a record of ours, or
 * places.
 */
export function queuePages(
  client: ZooKeeperClient,
  root: string,
  layout: QueueLayout,
): ElectionPages {
  const isPlace = (child: string) => layout.sequenceOf(child) !== undefined;
  const goesInto = (child: string) => !isPlace(child) && child !== layout.endMark;
  return {
    async page(after, wanted, signal) {
      const { nodes, next } = await visitPage(client, root, after, goesInto, signal);
      const found = await inParallel(nodes, electionsAtOnce, async (node) => {
        if ('error' in node) return unreadable(node.name, node.error);
        const { children, content } = node;
        const isOurs =
          children.some((child) => isPlace(child) || child === layout.endMark) ||
          looksLikeRecord(content);
        return isOurs ? read(node, wanted, signal) : undefined;
      });
      return { elections: found.filter((each) => each !== undefined), next };
    },
  };

  async function read(
    seen: VisitedNode,
    wanted: Wanted,
    signal: AbortSignal,
  ): Promise<FoundElection | undefined> {
    if (wanted === 'names') return onlyNamed(seen.name);
    let node = seen;
    if (isLeaderMissing(node)) {
      // It may have gone between the two answers, by a clean end. The record says so by now.
      const again = await visit(client, node, signal);
      if (again === undefined) return undefined;
      if ('error' in again) return unreadable(again.name, again.error);
      node = again;
    }
    return foundQueue(queueOf(node, await membersOf(node, signal)));
  }

  function isLeaderMissing(node: VisitedNode): boolean {
    const { reading, places, nameHere } = queueOf(node, []);
    const leader = leaderIn(reading, nameHere);
    return leader !== undefined && !places.includes(leader);
  }

  async function membersOf(node: VisitedNode, signal: AbortSignal): Promise<readonly Member[]> {
    const { reading, places, nameHere } = queueOf(node, []);
    const leader = leaderIn(reading, nameHere);
    // The record tells more of the leader than its place does. Where others are members, the first
    // one shows who leads.
    const wanted = places.filter((place) => layout.isMixed || place !== leader);
    const members = await inParallel(wanted, electionsAtOnce, async (place) => {
      try {
        return memberFrom(place, await client.get(place, { signal }), layout);
      } catch (error) {
        if (codeOf(error) === 'NO_NODE' || codeOf(error) === 'NO_AUTH') return undefined;
        throw storeError(error, place);
      }
    });
    return members.filter((member) => member !== undefined);
  }

  function queueOf(node: VisitedNode, members: readonly Member[]): ListedQueue {
    const { path, name, content, children } = node;
    return {
      ...{ name, members, isMixed: layout.isMixed },
      places: placesAmong(children, layout).map((child) => `${path}/${child}`),
      nameHere: (recorded) => `${path}/${recorded.slice(recorded.lastIndexOf('/') + 1)}`,
      reading: () => readingOf(content, path, layout.isMixed),
    };
  }
}

/** @returns undefined also for a record that cannot be read */
function leaderIn(
  reading: () => RecordReading,
  nameHere: ListedQueue['nameHere'],
): string | undefined {
  try {
    return leaderPlaceIn({ nameHere }, reading().record);
  } catch {
    return undefined;
  }
}

/** The beginning of every record of ours, also of one that is damaged behind it. */
export function looksLikeRecord({ data }: NodeContent): boolean {
  return data !== null && text.decode(data.subarray(0, 12)) === '{"incumbent"';
}
