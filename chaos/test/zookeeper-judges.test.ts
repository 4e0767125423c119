import { ConnectionLossError, NoNodeError, RequestTimeoutError } from '@incumbent/zookeeper';
import { describe, expect, it } from 'vitest';
import { Findings, guarantees } from '../src/zookeeper/findings.ts';
import { judgeCounters, judgeExpiry, judgeMemory, leftBehind } from '../src/zookeeper/judges.ts';
import { fateOf } from '../src/zookeeper/outcome.ts';
import type { Round } from '../src/zookeeper/plan.ts';
import { planRounds } from '../src/zookeeper/plan.ts';
import { readSettings } from '../src/zookeeper/settings.ts';

const MiB = 2 ** 20;

describe('judges of a soak', () => {
  it('allow the timeout for `expired`, and what the process stood still', () => {
    const expiry = { lastAcknowledgedMs: 1_000, timeoutMs: 3_000, toldAtMs: 4_000, stalledMs: 0 };
    expect(judgeExpiry(expiry)).toBeUndefined();
    expect(judgeExpiry({ ...expiry, toldAtMs: 4_010 })).toMatch(/3010 ms/);
    expect(judgeExpiry({ ...expiry, toldAtMs: 4_010, stalledMs: 20 })).toBeUndefined();
  });

  it('find memory that grows when it is warm', () => {
    const warmingUp = [5, 8, 10, 10.1, 10, 10.2, 10.1, 10.1, 10.2];
    expect(judgeMemory(warmingUp, 1)).toBeUndefined();
    const growing = Array.from({ length: 30 }, (_, i) => (10 + i * 0.2) * MiB);
    expect(judgeMemory(growing, MiB)).toMatch(/from 12.90 MiB to 14.90 MiB/);
    expect(judgeMemory([1], MiB)).toMatch(/too few/);
  });

  it('find kinds of resources of which there are more', () => {
    expect(leftBehind(['Timeout', 'TCPSocketWrap'], ['TCPSocketWrap'])).toEqual([]);
    expect(leftBehind(['Timeout'], ['Timeout', 'Timeout'])).toEqual(['2 of Timeout, 1 before']);
  });

  it('add counters up', () => {
    const idle = { outstanding: 0, queued: 0, queuedBytes: 0, inFlight: 0 };
    expect(judgeCounters({ requests: 3, succeeded: 2, failed: 1, ...idle })).toEqual([]);
    expect(judgeCounters({ requests: 3, succeeded: 3, failed: 1, ...idle })).toHaveLength(1);
    const stuck = { requests: 4, succeeded: 2, failed: 1, ...idle, outstanding: 1, inFlight: 1 };
    expect(judgeCounters(stuck)).toHaveLength(2);
  });

  it('tell the knowledge of a writer', () => {
    expect(fateOf({ ok: true, value: 1 })).toBe('done');
    const fate = (error: unknown) => fateOf({ ok: false, error });
    expect(fate(new ConnectionLossError(true, {}))).toBe('in doubt');
    expect(fate(new ConnectionLossError(false, {}))).toBe('refused');
    expect(fate(new RequestTimeoutError(1, true, {}))).toBe('in doubt');
    expect(fate(new RequestTimeoutError(1, false, {}))).toBe('refused');
    expect(fate(new NoNodeError({}))).toBe('refused');
    expect(fate(new DOMException('aborted', 'AbortError'))).toBe('in doubt');
  });

  it('pass nothing that was never put to the test', () => {
    const lines: string[] = [];
    const findings = new Findings((line) => lines.push(line));
    const all = Object.keys(guarantees).length;
    expect(findings.failed).toHaveLength(all);
    findings.judge('kept', undefined);
    expect(findings.passed).toBe(1);
    findings.judge('kept', ['one', 'two']);
    expect(findings.passed).toBe(0);
    expect(lines).toEqual([
      '  FAILED no acknowledged write is lost: one',
      '  FAILED no acknowledged write is lost: two',
    ]);
  });
});

describe('the plan of a soak', () => {
  const rounds = (seed: number, count: number): Round[] => {
    const all = planRounds(seed, 4, 3_000);
    return Array.from({ length: count }, () => all.next().value as Round);
  };

  it('follows from the seed alone', () => {
    expect(rounds(7, 50)).toEqual(rounds(7, 50));
    expect(rounds(7, 50)).not.toEqual(rounds(8, 50));
  });

  it('begins with the end of a session and the death of a leader', () => {
    for (let seed = 0; seed < 50; seed += 1) {
      const [first, second] = rounds(seed, 2);
      expect(first?.clients[0]?.fault).toBe('expire');
      expect(first?.clients[0]?.forMs).toBeGreaterThan(3_000);
      expect(second?.server?.fault).toBe('kill leader');
    }
  });

  it('strikes each client once a round at most, and knows all faults', () => {
    const many = rounds(7, 200);
    for (const { clients } of many) {
      expect(new Set(clients.map(({ client }) => client)).size).toBe(clients.length);
    }
    expect(new Set(many.flatMap(({ clients }) => clients.map(({ fault }) => fault))).size).toBe(7);
    expect(new Set(many.flatMap(({ server }) => server?.fault ?? [])).size).toBe(8);
  });
});

describe('the settings of a soak', () => {
  it('are half an hour, or a minute', () => {
    expect(readSettings([])).toMatchObject({ minutes: 30, clients: 4, broken: undefined });
    expect(readSettings(['--short', '--seed', '7'])).toMatchObject({ minutes: 1, seed: 7 });
    expect(readSettings(['--help'])).toBe('help');
  });

  it('are refused with what was wrong', () => {
    expect(() => readSettings(['--minutes', '0'])).toThrow('--minutes');
    expect(() => readSettings(['--clients', 'x'])).toThrow('--clients');
    expect(() => readSettings(['--broken', 'none'])).toThrow('--broken knows deaf');
  });
});
