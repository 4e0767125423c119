import { describe, expect, it } from 'vitest';
import { RecordJudge, RoleJudge, TermJudge } from '../src/redis-failover/judge.ts';
import type { Damage } from '../src/redis-failover/losses.ts';
import { LossJudge, mayLose } from '../src/redis-failover/losses.ts';
import type { Acknowledged, WriteLine } from '../src/redis-failover/messages.ts';
import { describeRound, drawRounds } from '../src/redis-failover/plan.ts';
import { parseRoleChange } from '../src/redis-failover/role-watch.ts';

/** Term 1 is of port 1, term 2 of 2, term 3 of 1 again. */
const primaries: Readonly<Record<number, string>> = { 1: 'h:1', 2: 'h:2', 3: 'h:1' };
const primaryOf = (term: number) => primaries[term];

let numbers = 0;
function write(acknowledged: Partial<Acknowledged> & { port: number; atUs: number }): WriteLine {
  const term = acknowledged.fromTerm ?? acknowledged.port;
  const outcome: Acknowledged = {
    ...{ kind: 'acknowledged', fromTerm: term, toTerm: term, again: false },
    ...acknowledged,
  };
  numbers += 1;
  return { client: 'c', number: numbers, startMs: 0, endMs: 1, outcome };
}

function judged(...lines: readonly WriteLine[]): readonly string[] {
  const judge = new TermJudge();
  for (const line of lines) judge.add(line);
  return judge.findings(primaryOf);
}

describe('the judge of acknowledged writes', () => {
  it('accepts terms that follow each other, in whatever order they are told', () => {
    const lines = [
      write({ port: 2, atUs: 30 }),
      write({ port: 1, atUs: 10 }),
      write({ port: 2, atUs: 20 }),
      write({ port: 1, atUs: 19 }),
      write({ port: 1, atUs: 31, fromTerm: 3, toTerm: 3 }),
    ];
    expect(judged(...lines)).toEqual([]);
  });

  it('finds a write of an older term that was executed behind one of a newer term', () => {
    const lines = [
      write({ port: 1, atUs: 10 }),
      write({ port: 2, atUs: 20 }),
      write({ port: 2, atUs: 3_020 }),
      write({ port: 1, atUs: 2_520 }),
    ];
    expect(judged(...lines)).toEqual([
      'never two primaries: 1 executed acknowledged writes of term 1 up to 2.500 ms after 2 had ' +
        'begun with term 2',
    ]);
  });

  it('finds one that comes long after another term has begun and ended', () => {
    const late = write({ port: 1, atUs: 50, fromTerm: 1, toTerm: 1 });
    const lines = [
      write({ port: 1, atUs: 10 }),
      write({ port: 2, atUs: 20 }),
      write({ port: 1, atUs: 40, fromTerm: 3, toTerm: 3 }),
    ];
    expect(judged(...lines)).toEqual([]);
    expect(judged(...lines, late)).toHaveLength(2);
  });

  it('counts a write that was under way in a move to the term of the primary that executed it', () => {
    const lines = [
      write({ port: 1, atUs: 10, fromTerm: 1, toTerm: 2 }),
      write({ port: 2, atUs: 20, fromTerm: 1, toTerm: 2 }),
      write({ port: 2, atUs: 30, fromTerm: 2, toTerm: 3 }),
    ];
    expect(judged(...lines)).toEqual([]);
  });

  it('finds writes that another node than the primary of that term took', () => {
    expect(judged(write({ port: 2, atUs: 1, fromTerm: 1, toTerm: 1 }))[0]).toMatch(
      /^clients go by the record: .*executed by 2, is of no such term: 1 \(h:1\)/,
    );
    expect(judged(write({ port: 2, atUs: 1, fromTerm: 9, toTerm: 9 }))[0]).toContain(
      '9 (not seen)',
    );
  });

  it('finds writes that were done twice', () => {
    expect(judged(write({ port: 1, atUs: 1, again: true }))[0]).toContain('was done twice');
  });

  it('tells everything once, also of writes that come later', () => {
    const judge = new TermJudge();
    for (const atUs of [10, 30]) judge.add(write({ port: 1, atUs }));
    judge.add(write({ port: 2, atUs: 20 }));
    expect(judge.findings(primaryOf)).toHaveLength(1);
    judge.add(write({ port: 1, atUs: 25 }));
    expect(judge.findings(primaryOf)).toEqual([]);
  });
});

describe('the judge of the record', () => {
  const seen = (...records: readonly (readonly [number, string | null, number?, string?])[]) => {
    const judge = new RecordJudge();
    for (const [term, primary, viewMs = 600, token = '9'] of records) {
      judge.add({ term, primary, viewMs, token });
    }
    return judge;
  };

  it('accepts a term that is revoked, and the next one', () => {
    const judge = seen([1, 'a'], [1, null], [2, 'b'], [2, 'b'], [4, 'a']);
    expect(judge.findings()).toEqual([]);
    expect([1, 2, 3, 4].map((term) => judge.primaryOf(term))).toEqual(['a', 'b', undefined, 'a']);
  });

  it('finds a term that falls, two primaries of one, and a view that is lowered', () => {
    expect(seen([2, 'b'], [1, 'b']).findings()).toEqual(['terms never fall: 1 came after 2']);
    expect(seen([2, 'b'], [2, null], [2, 'a']).findings()).toEqual([
      'one primary a term: the record of term 2 named b, then a',
    ]);
    expect(seen([2, 'b', 600], [2, 'b', 500]).findings()).toHaveLength(1);
  });

  it('finds what an older manager wrote behind a newer one, by numbers', () => {
    expect(seen([1, null, 600, '9'], [2, 'b', 600, '10']).findings()).toEqual([]);
    expect(seen([1, null, 600, '10'], [2, 'b', 600, '9']).findings()).toEqual([
      'one manager: the record was written with token 9 after 10',
    ]);
  });

  it('finds that the record is gone, once there was one', () => {
    const judge = new RecordJudge();
    judge.add(undefined);
    expect(judge.findings()).toEqual([]);
    judge.add({ term: 1, primary: 'a', viewMs: 600, token: '9' });
    judge.add(undefined);
    expect(judge.findings()).toEqual(['the record stays: it is gone']);
  });
});

describe('the judge of changes of role', () => {
  const change = (port: number, token: bigint) => {
    return { port, token, manager: `m${token}`, command: 'REPLICAOF NO ONE' };
  };

  it('accepts tokens that rise on each server, whatever those of others are', () => {
    const judge = new RoleJudge();
    for (const [port, token] of [
      [1, 5n],
      [1, 5n],
      [2, 3n],
      [1, 6n],
      [2, 6n],
    ] as const) {
      judge.add(change(port, token));
    }
    expect(judge.findings()).toEqual([]);
  });

  it('finds a change by an older manager behind one by a newer', () => {
    const judge = new RoleJudge();
    for (const token of [5n, 6n, 5n]) judge.add(change(1, token));
    expect(judge.findings()[0]).toMatch(/^one manager: on 1 .*of m5 .*behind .* of m6/);
  });
});

describe('the judge of losses', () => {
  const line = (number: number, kind: 'acknowledged' | 'refused' | 'unknown'): WriteLine => ({
    ...write({ port: 1, atUs: 1 }),
    number,
    ...(kind === 'acknowledged' ? {} : { outcome: { kind, why: '' } }),
  });

  it('finds each lost write once, and those that were done after all', () => {
    const judge = new LossJudge();
    for (const number of [0, 1, 9, 5_000]) judge.add(line(number, 'acknowledged'));
    for (const number of [2, 3]) judge.add(line(number, 'refused'));
    for (const number of [4, 5]) judge.add(line(number, 'unknown'));
    // 0, 2, 4 and 9 are there.
    const kept = Uint8Array.of(0b1010_1000, 0b0100_0000);
    expect(judge.compare('c', kept)).toEqual({ lost: [1, 5_000], doneAfterAll: [2] });
    expect(judge.compare('c', kept)).toEqual({ lost: [], doneAfterAll: [] });
    expect(judge.acknowledged).toBe(4);
    expect(judge.compare('c', Uint8Array.of(0)).lost).toEqual([0, 9]);
  });

  it('knows when Redis may lose writes', () => {
    const damage: Damage = {
      ...{ hasMinReplicas: true, primary: true, nodes: 2, ofNodes: 3, cameBackEmpty: false },
    };
    expect(mayLose(damage)).toBe(false);
    expect(mayLose({ ...damage, hasMinReplicas: false })).toBe(true);
    expect(mayLose({ ...damage, hasMinReplicas: false, primary: false })).toBe(false);
    expect(mayLose({ ...damage, nodes: 3 })).toBe(true);
    expect(mayLose({ ...damage, cameBackEmpty: true })).toBe(true);
  });
});

describe('the rounds', () => {
  const draw = (seed: number, count: number) => {
    const rounds = drawRounds(seed, seed % 2 === 0);
    return Array.from({ length: count }, () => rounds.next().value);
  };

  it('follow from the seed', () => {
    expect(draw(7, 60)).toEqual(draw(7, 60));
    expect(draw(7, 60)).not.toEqual(draw(8, 60));
  });

  it('strike somebody each, and have a move where somebody is struck at a step of one', () => {
    for (const round of draw(3, 300)) {
      const { primary, manager, client } = round.strikes;
      expect(describeRound(round)).not.toBe('');
      if (manager?.fault.endsWith(' at') || client?.fault.endsWith(' at')) {
        expect(primary).toBeDefined();
      }
    }
  });

  it('begin with those that every run needs, by what the primary asks of its replicas', () => {
    const [first, second] = [true, false].map((each) => drawRounds(1, each).next().value);
    expect(first?.strikes.replica?.fault).toBe('unlink');
    expect(second?.strikes.primary?.fault).toBe('hide');
  });
});

describe('the log of a Redis', () => {
  const line = (what: string, name: string) =>
    `1234:M 22 Nov 2026 00:00:00.000 * ${what} enabled (user request from 'id=7 ` +
    `addr=127.0.0.1:5 laddr=127.0.0.1:6 fd=8 name=${name} age=0 idle=0 db=0 cmd=replicaof')`;

  it('says which manager has changed its role', () => {
    expect(parseRoleChange(1, line('MASTER MODE', 'incumbent-redis:12:m1-2'))).toEqual({
      ...{ port: 1, token: 12n, manager: 'm1-2', command: 'MASTER MODE' },
    });
    expect(parseRoleChange(1, line('REPLICAOF h:5', 'incumbent-redis:3:a'))?.command).toBe(
      'REPLICAOF h:5',
    );
  });

  it('says nothing of a manager where somebody else did, or nothing of roles', () => {
    expect(parseRoleChange(1, line('MASTER MODE', ''))).toBeUndefined();
    expect(parseRoleChange(1, '1234:S * MASTER <-> REPLICA sync started')).toBeUndefined();
  });
});
