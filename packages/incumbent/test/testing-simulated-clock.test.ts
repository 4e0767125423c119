import { InvalidOptionError } from 'incumbent';
import { SimulatedClock } from 'incumbent/testing';
import { expect, test } from 'vitest';

test('a simulated clock moves by durations as the options write them', async () => {
  const clock = new SimulatedClock({ wallMs: 0 });
  const fired: number[] = [];
  clock.setTimer(() => fired.push(clock.monotonicMs()), 15_000);
  await clock.advance('15s');
  await clock.advance(500);
  expect(fired).toEqual([15_000]);
  clock.stall('2m');
  expect([clock.monotonicMs(), clock.wallMs()]).toEqual([135_500, 135_500]);
  clock.suspend('1h');
  expect([clock.monotonicMs(), clock.wallMs()]).toEqual([135_500, 3_735_500]);
  clock.stepWall('1s');
  clock.stepWall(-4_000_000);
  // Years, which no timer would take.
  clock.stepWall(2 ** 40);
  expect(clock.wallMs()).toBe(3_736_500 - 4_000_000 + 2 ** 40);
});

test.each(['15', 'soon', '', -1, Number.NaN, Number.POSITIVE_INFINITY, undefined, null, 1n])(
  'a value that is no duration (%s) is refused before anything moves',
  async (by) => {
    const clock = new SimulatedClock({ wallMs: 7 });
    clock.setTimer(() => expect.unreachable(), 0);
    const given = by as never;
    await expect(clock.advance(given)).rejects.toThrow(InvalidOptionError);
    expect(() => clock.stall(given)).toThrow(InvalidOptionError);
    expect(() => clock.suspend(given)).toThrow(InvalidOptionError);
    if (by !== -1) expect(() => clock.stepWall(given)).toThrow(InvalidOptionError);
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([0, 7]);
  },
);
