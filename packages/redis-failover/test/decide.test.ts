/** The decisions of the elected manager, in every situation of three nodes. */
import { describe, expect, test } from 'vitest';
import type { Decision, Situation } from '../src/manager/decide.ts';
import { decide, isFollowable, patienceMs, strayAct } from '../src/manager/decide.ts';
import { firstRecord } from '../src/manager/discover.ts';
import {
  includes,
  isOfReign,
  positionOf,
  reaches,
  recordedLineage,
} from '../src/manager/lineage.ts';
import type { NodeAddress } from '../src/node-address.ts';
import type { Replication } from '../src/redis/node-connection.ts';
import { replication } from './support/replication.ts';

const p = 'p:1' as NodeAddress;
const a = 'a:1' as NodeAddress;
const b = 'b:1' as NodeAddress;
const nodes = [p, a, b];

/** It was published when the primary, in process `r`, was at 100 of stream `a`. */
const record = {
  ...firstRecord(p, replication({ offset: 100 }), {
    ...{ viewMs: 1_000, gemViews: false, manager: 'm', token: '1', manualSeen: '0' },
  }),
  primary: p,
  lineage: { z: 50, a: 100 },
};

type States = Readonly<Record<string, Partial<Replication> | undefined>>;

const anew = { runId: 'anew', hasWritten: false };
const restored = { ...anew, replicationId: 'n', formerReplicationId: 'a' };

const statesOfThePrimary: States = {
  silent: undefined,
  'as on record': { offset: 120 },
  'anew, with all that it had': { ...restored, offset: 120, formerOffset: 121 },
  'anew, with some of it': { ...restored, offset: 60, formerOffset: 61 },
  'anew, empty': { ...anew, replicationId: 'e', isEmpty: true },
  'anew, with data that nobody can place': { ...anew, replicationId: 'x', hasWritten: true },
  'anew, loading': { ...anew, replicationId: 'x', loading: true },
  'anew, set aside, with some of it': {
    ...{ ...restored, offset: 60, formerOffset: 61, role: 'replica', linkUp: false },
    ...{ isAside: true, primary: '127.0.0.1:1' as NodeAddress },
  },
  'told by hand to follow a': { offset: 120, role: 'replica', primary: a },
};

function statesOfAnother(it: string): States {
  const replica = { runId: it, role: 'replica', primary: p } as const;
  const promoted = { runId: it, replicationId: `of ${it}`, formerReplicationId: 'a' };
  return {
    silent: undefined,
    'a replica with all': { ...replica, offset: 120 },
    'a replica that is behind': { ...replica, offset: 80, linkUp: false },
    'a replica that is behind, and connected': { ...replica, offset: 80 },
    'set aside, with all': {
      ...{ ...replica, offset: 120, linkUp: false, isAside: true },
      primary: '127.0.0.1:1' as NodeAddress,
    },
    loading: { ...replica, loading: true },
    'emptied for a copy': { ...replica, offset: 120, linkOffset: 1, isEmpty: true, linkUp: false },
    'promoted by hand, with all': { ...promoted, offset: 130, formerOffset: 121 },
    'promoted by hand, behind': { ...promoted, offset: 90, formerOffset: 81 },
    'a primary of before': { runId: it, replicationId: 'z', offset: 900 },
    'a primary of its own': { runId: it, replicationId: `own ${it}`, offset: 5 },
  };
}

interface Case {
  readonly name: string;
  readonly situation: Situation;
  readonly decision: Decision;
}

const cases: readonly Case[] = Object.entries(statesOfThePrimary).flatMap(([ofP, stateOfP]) =>
  Object.entries(statesOfAnother('a')).flatMap(([ofA, stateOfA]) =>
    Object.entries(statesOfAnother('b')).flatMap(([ofB, stateOfB]) =>
      [true, false].flatMap((isUp) =>
        [true, false].flatMap((othersAreUp) =>
          [0, patienceMs].flatMap((returnedForMs) =>
            [undefined, { stream: 'a', offset: 110 }].map((position): Case => {
              const states = [stateOfP, stateOfA, stateOfB];
              const known = new Map(
                nodes.flatMap((node, index) => {
                  const state = states[index];
                  return state === undefined ? [] : [[node, replication(state)] as const];
                }),
              );
              const situation = {
                ...{ record, nodes, others: [], known, returnedForMs, position },
                isUp: (node: NodeAddress) => (node === p ? isUp : othersAreUp),
              };
              const name = `p ${isUp ? '' : '(down) '}${ofP}; a ${ofA}; b ${ofB}`;
              return { name, situation, decision: decide(situation) };
            }),
          ),
        ),
      ),
    ),
  ),
);

/** The situations that break a rule. Their names are easier to read than thousands of tests. */
const breaking = (rule: (each: Case) => boolean) =>
  cases.filter((each) => !rule(each)).map(({ name, decision }) => [name, decision]);

const lineage = recordedLineage(record);
const hasAllThatOthersHave = ({ known }: Situation, node: NodeAddress) =>
  [...known].every(
    ([other, its]) =>
      other === node ||
      positionOf(its, lineage).kind !== 'known' ||
      !isOfReign(its, record) ||
      includes(known.get(node)!, lineage, its),
  );

const isFollowed = ({ known }: Situation, target: NodeAddress) =>
  nodes.every((node) => node === target || known.get(node)?.primary === target);

/** Also all data that only earlier streams have, and data that cannot be placed. */
const includesAllThatIsKnown = ({ known }: Situation, node: NodeAddress) =>
  [...known].every(([other, its]) => {
    if (other === node) return true;
    const { kind } = positionOf(its, lineage);
    const has = known.get(node)!;
    if (kind === 'unknown') return positionOf(has, lineage).kind !== 'nothing';
    return kind !== 'known' || includes(has, lineage, its);
  });

describe('the decision', () => {
  test('is tried in every situation, and each decision is met', () => {
    expect(cases).toHaveLength(9 * 11 * 11 * 16);
    const met = cases.map(({ decision }) =>
      decision.do === 'move' ? `move: ${decision.reason}` : decision.do,
    );
    expect([...new Set(met)].sort()).toEqual([
      'ask-operator',
      'keep',
      'move: down',
      'move: found',
      'move: lost-data',
      'move: lost-role',
      'wait',
    ]);
  });

  test('is to keep a primary that is up and runs on, whatever the others are', () => {
    const runsOn = cases.filter(({ name }) => name.startsWith('p as on record'));
    expect(runsOn.length).toBeGreaterThan(0);
    expect(runsOn.filter(({ decision }) => decision.do !== 'keep')).toEqual([]);
  });

  test('never keeps a primary in another process that lacks what another node has', () => {
    const broken = breaking(({ situation, decision }) => {
      const primary = situation.known.get(p);
      if (decision.do !== 'keep' || primary === undefined || primary.loading) return true;
      return primary.runId === 'r' || hasAllThatOthersHave(situation, p);
    });
    expect(broken).toEqual([]);
  });

  test('never keeps an empty primary in another process beside data of unknown position', () => {
    const broken = breaking(({ name, situation, decision }) => {
      if (!name.includes('p anew, empty') || decision.do !== 'keep') return true;
      return [a, b].every((node) => {
        const its = situation.known.get(node);
        return its === undefined || positionOf(its, lineage).kind !== 'unknown';
      });
    });
    expect(broken).toEqual([]);
  });

  test('never keeps an empty primary in another process while a node is missing', () => {
    const broken = breaking(({ name, situation, decision }) => {
      const isEverybodyThere = [a, b].every((node) => situation.known.get(node)?.loading === false);
      return !(name.includes('p anew, empty') && decision.do === 'keep') || isEverybodyThere;
    });
    expect(broken).toEqual([]);
  });

  test('follows a primary that was promoted by hand only if it has all, or all others have copied it', () => {
    const broken = breaking(({ situation, decision }) => {
      if (decision.do !== 'move' || decision.reason !== 'found') return true;
      const { target } = decision;
      const { role, loading } = situation.known.get(target)!;
      if (role !== 'primary' || loading) return false;
      return isFollowed(situation, target) || hasAllThatOthersHave(situation, target);
    });
    expect(broken).toEqual([]);
  });

  test('never follows a primary that was promoted by hand without data of the last term, unless all others have copied it', () => {
    const broken = breaking(({ situation, decision }) => {
      if (decision.do !== 'move' || decision.reason !== 'found') return true;
      const { target } = decision;
      return isFollowed(situation, target) || isOfReign(situation.known.get(target)!, record);
    });
    expect(broken).toEqual([]);
  });

  test('waits with a primary that came back with less than it was known to have, while a node is missing', () => {
    const broken = breaking(({ name, situation, decision }) => {
      const { position, known, returnedForMs } = situation;
      const isLess = name.startsWith('p anew, with some of it') && position !== undefined;
      const isMissing = [a, b].some((node) => known.get(node)?.loading !== false);
      return !isLess || !isMissing || returnedForMs >= patienceMs || decision.do !== 'keep';
    });
    expect(broken).toEqual([]);
  });

  test('replaces a primary that is up only if it is no primary any more, or has lost data', () => {
    const broken = breaking(({ situation, decision }) => {
      if (decision.do !== 'move' || !situation.isUp(p)) return true;
      if (decision.reason === 'lost-data') return !includesAllThatIsKnown(situation, p);
      return situation.known.get(p)?.role === 'replica' && decision.reason !== 'down';
    });
    expect(broken).toEqual([]);
  });

  test('replaces a primary that answers and runs on, and is judged down, only by one with its data', () => {
    const broken = breaking(({ name, situation, decision }) => {
      if (!name.startsWith('p (down) as on record') || decision.do !== 'move') return true;
      const primary = situation.known.get(p)!;
      return [a, b].some((node) => {
        const other = situation.known.get(node);
        if (other === undefined) return false;
        return other.linkUp || includes(other, lineage, primary);
      });
    });
    expect(broken).toEqual([]);
  });

  test('replaces a primary that answers, and is judged down, where a node has all that it has, or can still get it', () => {
    const broken = breaking(({ name, situation, decision }) => {
      if (!name.startsWith('p (down) as on record')) return true;
      const fit = /[ab] (a replica with all|a replica that is behind, and connected)(;|$)/;
      return !fit.test(name) || (decision.do === 'move' && !situation.isUp(p));
    });
    expect(broken).toEqual([]);
  });

  test('does not move a primary again at once that no other node could replace a moment ago', () => {
    const known = new Map([
      [p, replication({ offset: 120 })],
      // Its connection is half open.
      [a, replication({ runId: 'a', role: 'replica', primary: p, offset: 80 })],
    ]);
    const situation = { record, nodes, others: [], known, position: undefined, returnedForMs: 0 };
    const decided = (cameBackForMs?: number) =>
      decide({ ...situation, isUp: (node) => node !== p, cameBackForMs });
    expect(decided()).toEqual({ do: 'move', reason: 'down' });
    expect(decided(59_999)).toEqual({ do: 'keep' });
    expect(decided(60_000)).toEqual({ do: 'move', reason: 'down' });
  });

  test('waits only for nodes that are missing, and are up or may have more, and only for a limited time', () => {
    const broken = breaking(({ situation, decision }) => {
      if (decision.do !== 'wait') return true;
      const { known, returnedForMs, isUp, position } = situation;
      const isMissing = (node: NodeAddress) => known.get(node)?.loading !== false;
      const mayLack =
        positionOf(known.get(p)!, lineage).kind === 'unknown' ||
        (position !== undefined && !reaches(known.get(p)!, lineage, position));
      return (
        returnedForMs < patienceMs &&
        decision.missing.every(isMissing) &&
        (decision.missing.some((node) => isUp(node)) || mayLack)
      );
    });
    expect(broken).toEqual([]);
  });

  test('is made at once where every node answers and has read its data, unless the data cannot be compared', () => {
    const broken = breaking(({ name, situation, decision }) => {
      const { known } = situation;
      const isWhole = nodes.every((node) => known.get(node)?.loading === false);
      if (!isWhole || decision.do !== 'ask-operator') return !isWhole || decision.do !== 'wait';
      return (
        name.includes('p anew, with data that nobody can place') &&
        / [ab] a primary of before/.test(name)
      );
    });
    expect(broken).toEqual([]);
  });
});

describe('another primary, while the one on record is not there,', () => {
  const moving = { ...record, primary: null, former: p, promoting: { z: 40, x: 40, x2: 40 } };
  const ofBefore = { formerReplicationId: 'z', formerOffset: 41, offset: 45 };
  test.each([
    ['stays if it has something of the last term', { replicationId: 'a' }, 'leave'],
    ['is set aside if it has nothing of it', { replicationId: 'y', ...ofBefore }, 'set-aside'],
    ['is held if a move has promoted it', { replicationId: 'x', ...ofBefore }, 'hold'],
    ['is set aside without a backlog', { replicationId: 'x', hasBacklog: false }, 'set-aside'],
    ['is left while it reads its files', { replicationId: 'y', loading: true }, 'leave'],
  ] as const)('%s', (_, says, act) => {
    expect(strayAct(replication(says), moving)).toBe(act);
  });
});

describe('a primary that was promoted by hand, and that no node follows yet,', () => {
  const promoted = {
    runId: 'a',
    replicationId: 'of a',
    formerReplicationId: 'a',
    offset: 120,
    formerOffset: 121,
  };
  const follows = (of: Partial<Replication>, other: Partial<Replication>) => {
    const known = new Map([
      [a, replication({ ...promoted, ...of })],
      [b, replication({ runId: 'b', role: 'replica', primary: p, linkUp: false, ...other })],
    ]);
    return isFollowable(a, known, record, { nodes });
  };

  test.each([
    ['is taken where it has all that others of the last term have', {}, { offset: 120 }, true],
    ['is not where one of them has more', {}, { offset: 130 }, false],
    ['is taken whatever strangers have', {}, { replicationId: 'x', offset: 999 }, true],
    [
      'is not where nothing says what it has itself',
      { hasBacklog: false, hasWritten: true },
      { offset: 120 },
      false,
    ],
  ])('%s', (_, of, other, isTaken) => {
    expect(follows(of, other)).toBe(isTaken);
  });
});
