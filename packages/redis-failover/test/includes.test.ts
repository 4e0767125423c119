// Whether a primary has all that a node may have. The tables are the rows of
// docs/design/redis-failover-data.md. The property plays nodes that write, copy, fork and restart, and
// compares with the writes that each of them really has.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lineage } from '../src/manager/lineage.ts';
import {
  goesOn,
  includes,
  lineageOf,
  mostStreams,
  positionOf,
  reaching,
} from '../src/manager/lineage.ts';
import type { Replication } from '../src/redis/replication.ts';
import { replication } from './support/replication.ts';

const lineage = (entries: Record<string, number>): Lineage => new Map(Object.entries(entries));
/** The primary was promoted from stream s at 100, and is at 500 in its own stream p. */
const primary = replication({
  ...{ replicationId: 'p', offset: 500, formerReplicationId: 's', formerOffset: 101 },
});
const recorded = lineage({ r: 40, s: 100, p: 500 });
const at = (stream: string, offset: number, more: Partial<Replication> = {}) =>
  replication({ role: 'replica', replicationId: stream, offset, linkOffset: offset, ...more });
const isIncluded = (node: Replication) => includes(primary, recorded, node);

describe('a node that Redis has emptied is included', () => {
  it.each([
    [
      'it has no keys, and nobody knows its stream',
      replication({ replicationId: 'x', isEmpty: true }),
    ],
    [
      'it has no keys and no position since it started',
      at('x', 0, { isEmpty: true, linkOffset: 1 }),
    ],
    [
      'it has no keys while it copies',
      at('s', 999, { isEmpty: true, linkOffset: 1, syncing: true }),
    ],
    ['it loads what it has copied', at('x', 7, { loading: true, loadsCopy: true, syncing: true })],
  ])('when %s', (_, node) => {
    expect(positionOf(node, recorded).kind).toBe('nothing');
    expect(isIncluded(node)).toBe(true);
  });
});

it('a replica that begins to read its files is not taken for an emptied one', () => {
  const starting = at('x', 0, { isEmpty: true, linkOffset: 1, loading: true, hasWritten: false });
  expect(positionOf(starting, recorded).kind).toBe('loading');
  expect(isIncluded(starting)).toBe(false);
});

it.each([
  ['has written without a backlog, as a primary before: not included', { hasWritten: true }, false],
  ['was started from its file, and has heard nothing yet: included', { hasWritten: false }, true],
])('a replica without a backlog that %s', (_, more, expected) => {
  expect(isIncluded(at('s', 100, { hasBacklog: false, ...more }))).toBe(expected);
});

describe('a node whose position is known is included', () => {
  it.each([
    ['own', at('p', 500), at('p', 501)],
    ['former', at('s', 100), at('s', 101)],
    ['first', at('r', 40), at('r', 41)],
  ])('up to the offset that the primary has of its %s stream', (_, upTo, beyond) => {
    expect(isIncluded(upTo)).toBe(true);
    expect(isIncluded(beyond)).toBe(false);
  });

  it('by its position while it copies and does not load yet', () => {
    expect(isIncluded(at('s', 100, { syncing: true, linkOffset: 1 }))).toBe(true);
    expect(isIncluded(at('s', 101, { syncing: true, linkOffset: 1 }))).toBe(false);
  });

  it('when it has no keys, and its stream is known: that it has none may be what was written', () => {
    expect(isIncluded(at('s', 100, { isEmpty: true }))).toBe(true);
    expect(isIncluded(at('s', 101, { isEmpty: true }))).toBe(false);
  });

  it('as a primary without a write by where its stream began, for PINGs move its offset', () => {
    const promoted = {
      ...{ replicationId: 'x', offset: 9_000, formerReplicationId: 's', formerOffset: 101 },
      hasWritten: false,
    };
    expect(isIncluded(replication(promoted))).toBe(true);
    expect(isIncluded(replication({ ...promoted, hasBacklog: false }))).toBe(true);
    expect(isIncluded(replication({ ...promoted, formerOffset: 102 }))).toBe(false);
    expect(isIncluded(replication({ ...promoted, formerReplicationId: 'y' }))).toBe(false);
    expect(isIncluded(replication({ ...promoted, hasWritten: true }))).toBe(false);
  });

  it('as a former primary at the offset that it stopped at', () => {
    expect(isIncluded(replication({ replicationId: 's', offset: 100 }))).toBe(true);
    expect(isIncluded(replication({ replicationId: 's', offset: 101 }))).toBe(false);
  });
});

describe('a node is not included', () => {
  it.each([
    ['its stream is not known', at('x', 1)],
    ['it is a primary without a backlog', replication({ replicationId: 's', hasBacklog: false })],
    ['it was one when it was set aside', at('s', 1, { hasBacklog: false, isAside: true })],
    ['it is reading its files', replication({ replicationId: 's', loading: true })],
    [
      'it has no keys yet, for it is reading its files',
      replication({ loading: true, isEmpty: true }),
    ],
  ])('when %s', (_, node) => {
    expect(isIncluded(node)).toBe(false);
  });

  it('when it is a replica from a file, its offset moves only with what it copies', () => {
    expect(isIncluded(at('s', 100, { hasBacklog: false, hasWritten: false }))).toBe(true);
  });
});

describe('what a replica would include if it were the primary', () => {
  it('is what the record says of earlier streams, and its own position', () => {
    expect([...lineageOf(at('p', 450), recorded)]).toEqual(
      Object.entries({ r: 40, s: 100, p: 450 }),
    );
    expect([...lineageOf(at('s', 130), recorded)]).toEqual(Object.entries({ r: 40, s: 130 }));
    expect([...lineageOf(at('x', 7), recorded)]).toEqual([['x', 7]]);
  });

  it('goes one way: that the primary has the earlier stream says nothing of the others in it', () => {
    expect(includes(at('s', 10_000), recorded, primary)).toBe(false);
  });

  it('of a node that went on from an earlier stream leaves out what came after that', () => {
    const forked = replication({
      ...{ replicationId: 'x', offset: 300, formerReplicationId: 's', formerOffset: 91 },
    });
    expect([...lineageOf(forked, recorded)]).toEqual(Object.entries({ r: 40, s: 90, x: 300 }));
    expect(includes(forked, recorded, at('s', 90))).toBe(true);
    expect(includes(forked, recorded, at('s', 91))).toBe(false);
    expect(includes(forked, recorded, at('p', 1))).toBe(false);
  });
});

describe('the lineage on record', () => {
  it('gets the stream that a promotion begins', () => {
    const next = goesOn(
      recorded,
      replication({ replicationId: 'q', offset: 610, formerReplicationId: 'p', formerOffset: 601 }),
    );
    expect([...next]).toEqual(Object.entries({ r: 40, s: 100, p: 600, q: 610 }));
  });

  it('keeps all of a stream that the same process has given another name', () => {
    const next = goesOn(recorded, replication({ replicationId: 'q', offset: 700 }));
    expect([...next]).toEqual(Object.entries({ r: 40, s: 100, p: 700, q: 700 }));
  });

  it('is raised to what a node has more of PINGs, and gets no stream by that', () => {
    expect([...reaching(recorded, 's', 120)]).toEqual(Object.entries({ r: 40, s: 120, p: 500 }));
    expect(reaching(recorded, 's', 90)).toEqual(recorded);
    expect(reaching(recorded, 'y', 8)).toEqual(recorded);
  });

  it('keeps so many streams, and drops the oldest', () => {
    let next: Lineage = new Map();
    for (let i = 0; i < 20; i += 1) {
      next = goesOn(next, replication({ replicationId: `s${i}`, offset: i }));
    }
    expect(next.size).toBe(mostStreams);
    expect([...next.keys()].at(0)).toBe('s4');
    expect([...next.keys()].at(-1)).toBe('s19');
  });
});

/** A node that really has writes, and reports what Redis would. */
class Played {
  readonly name: string;
  writes = new Set<number>();
  says = replication({ hasWritten: false, hasBacklog: true, isEmpty: true });
  saved:
    | { readonly writes: Set<number>; readonly stream: string; readonly offset: number }
    | undefined;

  constructor(name: string, stream: string) {
    this.name = name;
    this.tell({ replicationId: stream });
  }

  tell(more: Partial<Replication>): void {
    this.says = { ...this.says, ...more, isEmpty: this.writes.size === 0 };
  }
}

class Play {
  readonly nodes: readonly Played[];
  primary: Played;
  lineage: Lineage;
  #streams = 0;
  #writes = 0;

  constructor() {
    this.nodes = ['a', 'b', 'c'].map((name) => new Played(name, this.#stream()));
    [this.primary] = this.nodes as [Played];
    this.lineage = goesOn(new Map(), this.primary.says);
    this.write(this.primary);
    for (const node of this.nodes) {
      this.join(node);
      this.copy(this.primary, node);
    }
  }

  #stream(): string {
    this.#streams += 1;
    return `stream-${this.#streams}`;
  }

  write(node: Played): void {
    if (node.says.role === 'replica') return;
    this.#writes += 1;
    node.writes.add(this.#writes);
    const step = node.says.hasBacklog ? 10 : 0;
    node.tell({ offset: node.says.offset + step, hasWritten: true });
  }

  ping(node: Played): void {
    if (node.says.role === 'primary' && node.says.hasBacklog) {
      node.tell({ offset: node.says.offset + 14 });
    }
  }

  /** Writes that the offset does not count. Then Redis begins a new stream for its next replica. */
  loseBacklog(node: Played): void {
    if (node.says.role === 'primary') node.tell({ hasBacklog: false });
  }

  /**
   * Copies all data that the other node has now. Its replicas copy it whole, or continue partially.
   */
  copy(from: Played, to: Played): void {
    if (from === to || from.says.role === 'replica' || to.says.role === 'primary') return;
    if (!from.says.hasBacklog) {
      const name = {
        replicationId: this.#stream(),
        formerReplicationId: undefined,
        formerOffset: -1,
      };
      from.tell({ ...name, hasBacklog: true });
      if (from === this.primary) this.lineage = goesOn(this.lineage, from.says);
    }
    to.writes = new Set(from.writes);
    const { replicationId, formerReplicationId, formerOffset, offset } = from.says;
    const goesOnPartially = [replicationId, formerReplicationId].includes(to.says.replicationId);
    const former = goesOnPartially
      ? { formerReplicationId, formerOffset }
      : { formerReplicationId: undefined, formerOffset: -1 };
    to.tell({
      ...{ replicationId, offset, linkOffset: offset, ...former },
      ...{ hasBacklog: true, primary: from.name, isAside: false, hasWritten: true },
    });
  }

  /** A manager never gives this order to a node that is not included. */
  join(node: Played): void {
    if (node === this.primary || this.primary.says.role !== 'primary') return;
    if (!includes(this.primary.says, this.lineage, node.says)) return;
    node.tell({ role: 'replica', primary: this.primary.name, isAside: false });
  }

  setAside(node: Played): void {
    if (node !== this.primary) node.tell({ role: 'replica', isAside: true });
  }

  promote(node: Played): void {
    if (node.says.role === 'primary') return;
    const { replicationId, offset } = node.says;
    node.tell({
      ...{ role: 'primary', primary: undefined, isAside: false, linkOffset: undefined },
      ...{ replicationId: this.#stream(), formerReplicationId: replicationId },
      formerOffset: offset + 1,
    });
  }

  /** A move by a manager: the chosen node has a known position, and its lineage is noted first. */
  move(node: Played): void {
    if (node.says.isAside || positionOf(node.says, this.lineage).kind !== 'known') return;
    const held = lineageOf(node.says, this.lineage);
    this.promote(node);
    this.primary = node;
    this.lineage = goesOn(held, node.says);
  }

  save(node: Played): void {
    const { replicationId: stream, offset } = node.says;
    // A file without a backlog has no position.
    if (node.says.hasBacklog) node.saved = { writes: new Set(node.writes), stream, offset };
  }

  restart(node: Played): void {
    if (node === this.primary) return;
    const { saved } = node;
    node.writes = new Set(saved?.writes);
    const former =
      saved === undefined
        ? { formerReplicationId: undefined, formerOffset: -1, hasBacklog: false }
        : { formerReplicationId: saved.stream, formerOffset: saved.offset + 1, hasBacklog: true };
    node.tell({
      ...{ role: 'primary', primary: undefined, isAside: false, linkOffset: undefined },
      ...{
        replicationId: this.#stream(),
        offset: saved?.offset ?? 0,
        hasWritten: false,
        ...former,
      },
    });
  }
}

type Act = readonly [kind: number, node: number];

/**
 * The first node begins a new stream, the third one is promoted and joins, and the second one is
 * behind.
 */
const behindWhoJoined: [number, number][] = [
  [0, 0],
  [10, 0],
  [3, 2],
  [6, 2],
  [4, 2],
  [7, 1],
];

describe('whatever nodes do', () => {
  it('a node that is included has no write that the primary lacks', () => {
    let included = 0;
    const acts = fc.array(fc.tuple(fc.nat(10), fc.nat(2)), { minLength: 10, maxLength: 60 });
    fc.assert(
      fc.property(acts, (list: readonly Act[]) => {
        const play = new Play();
        for (const [kind, index] of list) {
          const node = play.nodes[index] as Played;
          const act = [
            () => play.write(node),
            () => play.write(node),
            () => play.ping(node),
            () => play.copy(play.primary, node),
            () => play.join(node),
            () => play.setAside(node),
            () => play.promote(node),
            () => play.move(node),
            () => play.save(node),
            () => play.restart(node),
            () => play.loseBacklog(node),
          ][kind] as () => void;
          act();
          for (const each of play.nodes) {
            if (!includes(play.primary.says, play.lineage, each.says)) continue;
            if (each !== play.primary && each.writes.size > 0) included += 1;
            const missing = [...each.writes].filter((write) => !play.primary.writes.has(write));
            expect(missing, `${each.name} has writes that ${play.primary.name} lacks`).toEqual([]);
          }
        }
      }),
      { numRuns: 2_000, examples: [[behindWhoJoined]] },
    );
    // Otherwise a rule that includes no node would pass.
    expect(included).toBeGreaterThan(500);
  });
});
