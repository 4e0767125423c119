import { expect, it } from 'vitest';
import { Liveness } from '../src/harness/liveness.ts';

const bounds = { leaderMs: 1_000, electionMs: 5_000 };
const neverStalled = () => 0;

function judge(): Liveness & { at(ms: number): string | undefined } {
  const liveness = new Liveness(bounds, 0);
  return Object.assign(liveness, { at: (ms: number) => liveness.look(ms, neverStalled) });
}

it('says once that nobody works, and again when somebody did meanwhile', () => {
  const liveness = judge();
  expect(liveness.at(1_000)).toBeUndefined();
  expect(liveness.at(1_001)).toMatch(/^liveness: nobody works, .* for more than 1.0 s$/);
  expect(liveness.at(2_000)).toBeUndefined();
  liveness.works(2_500);
  expect(liveness.at(3_500)).toBeUndefined();
  expect(liveness.at(3_501)).toMatch(/^liveness/);
});

it('counts from the last strike, and not from the end of a fault', () => {
  const liveness = judge();
  liveness.struck(900);
  expect(liveness.at(1_900)).toBeUndefined();
  expect(liveness.at(1_901)).toMatch(/^liveness/);
});

it('counts from when a quorum was up, and asks nothing without one', () => {
  const liveness = judge();
  liveness.quorum('down', 500);
  expect(liveness.at(100_000)).toBeUndefined();
  liveness.quorum('able', 100_000);
  expect(liveness.at(105_000)).toBeUndefined();
  liveness.quorum('up', 105_000);
  expect(liveness.electionsMs).toEqual([5_000]);
  expect(liveness.at(106_000)).toBeUndefined();
  expect(liveness.at(106_001)).toMatch(/^liveness/);
});

it('says that servers that could serve do not', () => {
  const liveness = judge();
  liveness.quorum('able', 0);
  expect(liveness.at(5_000)).toBeUndefined();
  expect(liveness.at(5_001)).toMatch(/^servers: .* for more than 5.0 s$/);
});

it('does not count the time in which it could not look', () => {
  const liveness = new Liveness(bounds, 0);
  expect(liveness.look(1_400, () => 400)).toBeUndefined();
  expect(liveness.look(1_400, () => 399)).toMatch(/^liveness/);
});

it('knows the longest silence since it was asked last', () => {
  const liveness = judge();
  for (const atMs of [10, 400, 300, 500]) liveness.works(atMs);
  expect(liveness.takeIdle()).toBe(390);
  liveness.works(510);
  expect(liveness.takeIdle()).toBe(10);
});
