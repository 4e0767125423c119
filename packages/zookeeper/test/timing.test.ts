import { describe, expect, it } from 'vitest';
import { attemptMs, backoffMs, sessionTiming } from '../src/session/timing.ts';

describe('sessionTiming', () => {
  it('leaves a ping time to be answered before the connection counts as silent', () => {
    const { pingMs, silenceMs, expiryMs, timeoutMs } = sessionTiming(3_000);
    expect(pingMs).toBeLessThan(silenceMs);
    expect(silenceMs).toBeLessThanOrEqual((2 / 3) * timeoutMs);
    expect(silenceMs).toBeLessThan(expiryMs);
    expect(expiryMs).toBeLessThan(timeoutMs);
  });
});

describe('the parts of a timeout', () => {
  it('are a third, six tenths and 0.95 of it', () => {
    expect(sessionTiming(9_000)).toEqual({
      ...{ timeoutMs: 9_000, pingMs: 3_000, silenceMs: 5_400, expiryMs: 8_550 },
    });
  });
});

describe('attemptMs', () => {
  it('shares what is left of a session among the hosts', () => {
    const timing = sessionTiming(12_000);
    expect(attemptMs(timing, { hosts: 3, round: 9, leftMs: 6_000 })).toBe(2_000);
    expect(attemptMs(timing, { hosts: 3, round: 9, leftMs: 6_000, untried: 2 })).toBe(3_000);
    expect(attemptMs(timing, { hosts: 3, round: 9, leftMs: 1_500 })).toBe(1_000);
    expect(attemptMs(timing, { hosts: 3, round: 9, leftMs: 300 })).toBe(300);
  });

  it('shares the timeout among the hosts, and is never above the bound of silence', () => {
    const timing = sessionTiming(10_000);
    expect(attemptMs(timing, { hosts: 5, round: 9 })).toBe(2_000);
    expect(attemptMs(timing, { hosts: 1, round: 9 })).toBe(timing.silenceMs);
  });

  it('is short at first: a server that is just starting may never answer', () => {
    const timing = sessionTiming(12_000);
    expect([0, 1, 2, 3].map((round) => attemptMs(timing, { hosts: 1, round }))).toEqual([
      2_000, 4_000, 7_200, 7_200,
    ]);
    expect(attemptMs(sessionTiming(2_000), { hosts: 1 })).toBe(1_000);
  });
});

describe('backoffMs', () => {
  const timing = sessionTiming(30_000);
  const most = () => 1;
  const least = () => 0;

  it('grows to less than half a second, and is jittered', () => {
    expect(backoffMs(0, false, timing, most)).toBe(100);
    expect(backoffMs(0, false, timing, least)).toBe(75);
    expect(backoffMs(1, false, timing, most)).toBe(150);
    for (const round of [4, 10, 1_000_000]) {
      expect(backoffMs(round, false, timing, most)).toBe(450);
    }
  });

  it('asks a server that drops us at most ten times in ten seconds', () => {
    let atMs = 0;
    let attempts = 1;
    for (let round = 0; ; round += 1) {
      atMs += backoffMs(round, true, timing, () => 0.5);
      if (atMs > 10_000) break;
      attempts += 1;
    }
    expect(attempts).toBeLessThanOrEqual(10);
  });

  it('goes on to double for a server that drops us, from the fifth pause on', () => {
    const pauses = [0, 1, 2, 3, 4, 5, 6, 7, 1_000].map((round) =>
      backoffMs(round, true, sessionTiming(60_000), most),
    );
    expect(pauses).toEqual([100, 150, 225, 337.5, 506.25, 1_012.5, 2_025, 2_500, 2_500]);
    expect(backoffMs(1_000, false, sessionTiming(60_000), least)).toBe(337.5);
  });

  it('keeps well within the session timeout', () => {
    expect(backoffMs(1_000, true, sessionTiming(4_000), most)).toBe(1_000);
    expect(backoffMs(1_000, true, sessionTiming(1_000), most)).toBe(450);
  });
});
