import { describe, expect, it } from 'vitest';
import { GuardedRegister } from '../src/zookeeper/models/guarded-register.ts';
import { Guids } from '../src/zookeeper/models/guids.ts';
import { Names } from '../src/zookeeper/models/names.ts';
import { OpenRegister } from '../src/zookeeper/models/open-register.ts';
import type { Problem } from '../src/zookeeper/models/verdict.ts';

const broken = (problems: readonly Problem[]) => problems.map(({ guarantee }) => guarantee);

describe('a guarded register', () => {
  const written = () => {
    const register = new GuardedRegister();
    expect(register.next()).toEqual({ n: 1, version: 0 });
    expect(register.settled(1, 'done', 1)).toEqual([]);
    return register;
  };

  it('takes what was acknowledged, and nothing older', () => {
    expect(written().observed(1, 1)).toEqual([]);
    expect(broken(written().observed(0, 0))).toEqual(['kept']);
  });

  it('takes a write in doubt, as the next version only', () => {
    for (const [version, wrong] of [
      [2, []],
      [3, ['refused']],
    ] as const) {
      const register = written();
      expect(register.next()).toEqual({ n: 2, version: 1 });
      expect(register.settled(2, 'in doubt')).toEqual([]);
      expect(broken(register.observed(2, version))).toEqual(wrong);
    }
  });

  it('does not take a write that was refused', () => {
    const register = written();
    register.next();
    expect(register.settled(2, 'refused')).toEqual([]);
    expect(broken(register.observed(2, 2))).toEqual(['refused']);
  });

  it('does not take a write in doubt any more when a later one was acknowledged', () => {
    const register = written();
    register.next();
    register.settled(2, 'in doubt');
    register.next();
    expect(register.settled(3, 'done', 2)).toEqual([]);
    expect(broken(register.observed(2, 3))).toEqual(['kept']);
  });

  it('knows no other version without a doubt', () => {
    const register = written();
    register.next();
    expect(broken(register.settled(2, 'refused', undefined, true))).toEqual(['refused']);
    const doubting = written();
    doubting.next();
    doubting.settled(2, 'in doubt');
    doubting.next();
    expect(doubting.settled(3, 'refused', undefined, true)).toEqual([]);
  });

  it('sees a version that was skipped', () => {
    const register = written();
    register.next();
    expect(broken(register.settled(2, 'done', 3))).toEqual(['kept']);
  });
});

describe('an open register', () => {
  const write = (register: OpenRegister, ...fates: readonly ('done' | 'in doubt' | 'refused')[]) =>
    fates.map((fate) => ({ n: register.next(), fate }));

  it('counts versions: none lost, none twice', () => {
    for (const [version, wrong] of [
      [1, ['kept']],
      [2, []],
      [3, []],
      [4, ['refused']],
    ] as const) {
      const register = new OpenRegister();
      write(register, 'done', 'in doubt', 'done');
      register.settled(1, 'done', 1, 1);
      register.settled(2, 'in doubt', 1);
      register.settled(3, 'done', 2, version < 2 ? 2 : version);
      expect(broken(register.observed(3, version))).toEqual(wrong);
    }
  });

  it('sees acknowledgements out of order', () => {
    const register = new OpenRegister();
    write(register, 'done', 'done');
    register.settled(2, 'done', 1, 1);
    expect(broken(register.settled(1, 'done', 1, 2))).toEqual(['order']);
  });

  it('takes an older write only when it was in doubt on an earlier connection', () => {
    for (const [connection, wrong] of [
      [2, []],
      [1, ['kept']],
    ] as const) {
      const register = new OpenRegister();
      write(register, 'in doubt', 'done');
      register.settled(1, 'in doubt', 1);
      register.settled(2, 'done', connection, 1);
      expect(broken(register.observed(1, 2))).toEqual(wrong);
    }
  });

  it('does not take a write that was refused', () => {
    const register = new OpenRegister();
    write(register, 'done', 'refused');
    register.settled(1, 'done', 1, 1);
    register.settled(2, 'refused', 1);
    expect(broken(register.observed(2, 2))).toEqual(['refused', 'refused']);
  });
});

describe('names', () => {
  it('are there when acknowledged, and not when refused', () => {
    const names = new Names();
    names.created('a', 'done');
    names.created('b', 'in doubt');
    names.created('c', 'refused');
    expect(names.observed(['a', 'b'])).toEqual([]);
    expect(broken(names.observed(['b']))).toEqual(['kept']);
    expect(broken(names.observed(['b', 'c']))).toEqual(['refused']);
  });

  it('are gone when deleted, and absent only then', () => {
    const names = new Names();
    names.created('a', 'done');
    names.created('b', 'done');
    expect(names.deleted('a', 'done')).toEqual([]);
    expect(broken(names.deleted('b', 'refused', true))).toEqual(['kept']);
    expect(broken(names.observed(['a']))).toEqual(['refused']);
  });

  it('may be late for one look', () => {
    const names = new Names();
    names.created('a', 'in doubt');
    expect(names.observed([])).toEqual([]);
    expect(names.observed(['a'])).toEqual([]);
    names.deleted('a', 'done');
    names.observed([]);
    names.observed([]);
    expect(broken(names.observed(['a']))).toEqual(['refused']);
  });
});

describe('guids', () => {
  const node = (guid: string, number: number) => `_c_${guid}-node000000000${number}`;

  it('have one node each, the one that was told', () => {
    const guids = new Guids();
    guids.began('g1');
    guids.ended('g1', node('g1', 1));
    guids.began('g2');
    guids.ended('g2', undefined);
    expect(guids.observed([node('g1', 1), node('g2', 2)])).toEqual([]);
  });

  it('have no second node, now or later', () => {
    const guids = new Guids();
    guids.began('g1');
    guids.ended('g1', node('g1', 1));
    expect(broken(guids.observed([node('g1', 1), node('g1', 2)]))).toEqual(['once']);
    expect(broken(guids.observed([node('g1', 3)]))).toEqual(['once']);
  });

  it('have the node that was told', () => {
    const guids = new Guids();
    guids.began('g1');
    guids.ended('g1', node('g1', 1));
    expect(broken(guids.observed([]))).toEqual(['kept']);
  });
});
