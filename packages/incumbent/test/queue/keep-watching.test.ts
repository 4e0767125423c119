// A watch that is kept up: its values, its retries, and its end.
import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import type { Timer } from '../../src/base/clock.ts';
import { keepWatching } from '../../src/mechanisms/queue/keep-watching.ts';
import type { Watched } from '../../src/mechanisms/queue/store.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { timing } from './contestant.ts';

/** Notes the timers that would keep the process alive. */
class NotingClock extends SimulatedClock {
  readonly asked: (boolean | undefined)[] = [];

  override setTimer(callback: () => void, delayMs: number, background?: boolean): Timer {
    this.asked.push(background);
    return super.setTimer(callback, delayMs);
  }
}

/** Changes when a test says so. */
class Change {
  cancelled = 0;
  tell: () => void = () => {};
  readonly #changed = new Promise<void>((resolve) => {
    this.tell = resolve;
  });

  watched(value: string): Watched<string> {
    return {
      value,
      changed: this.#changed,
      cancel: () => {
        this.cancelled += 1;
      },
    };
  }
}

function stand() {
  const clock = new NotingClock();
  const troubles: string[] = [];
  const stop = new AbortController();
  const values: string[] = [];
  const scope = {
    election: 'jobs',
    clock,
    timing,
    random: () => 0,
    uniqueId: () => 'x',
    onTrouble: (what: string) => void troubles.push(what),
  };
  let isOver = false;
  const keep = (
    watch: () => Promise<Watched<string>>,
    first?: Watched<string>,
    isLast: (value: string) => boolean = () => false,
  ) => {
    const keeping = keepWatching(scope, stop.signal, {
      first,
      watch,
      onValue: (value) => {
        values.push(value);
        return !isLast(value);
      },
    });
    void keeping.then(() => {
      isOver = true;
    });
  };
  return { clock, troubles, stop, values, keep, isOver: () => isOver };
}

it('watches again after every change, and cancels each watch once', async () => {
  const { clock, stop, values, keep, isOver } = stand();
  const changes: Change[] = [];
  keep(async () => {
    changes.push(new Change());
    return changes.at(-1)!.watched(`value ${changes.length}`);
  });
  await clock.advance(0);
  expect(values).toEqual(['value 1']);
  changes[0]!.tell();
  await clock.advance(0);
  expect(values).toEqual(['value 1', 'value 2']);
  expect(changes.map(({ cancelled }) => cancelled)).toEqual([1, 0]);
  await clock.advance(3_600_000);
  expect(changes).toHaveLength(2);
  expect(isOver()).toBe(false);
  stop.abort();
  await clock.advance(0);
  expect(isOver()).toBe(true);
  expect(changes.map(({ cancelled }) => cancelled)).toEqual([1, 1]);
  // However often it has changed, nothing is left that listens.
  expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
});

it('leaves no listener behind at a change', async () => {
  const { clock, stop, keep } = stand();
  let change = new Change();
  keep(async () => {
    change = new Change();
    return change.watched('value');
  });
  for (let i = 0; i < 5; i += 1) {
    await clock.advance(0);
    change.tell();
  }
  await clock.advance(0);
  expect(getEventListeners(stop.signal, 'abort').length).toBeLessThanOrEqual(1);
  stop.abort();
});

it('does not tell the value of a watch that is set already', async () => {
  const { clock, stop, values, keep } = stand();
  const first = new Change();
  keep(async () => new Change().watched('second'), first.watched('first'));
  await clock.advance(0);
  expect(values).toEqual([]);
  first.tell();
  await clock.advance(0);
  expect(values).toEqual(['second']);
  expect(first.cancelled).toBe(1);
  stop.abort();
});

it('ends with the last value that is worth telling', async () => {
  const { clock, values, keep, isOver } = stand();
  const change = new Change();
  keep(
    async () => change.watched('last'),
    undefined,
    (value) => value === 'last',
  );
  await clock.advance(0);
  expect(values).toEqual(['last']);
  expect(change.cancelled).toBe(1);
  expect(isOver()).toBe(true);
});

it('tries again what fails after a pause, in the background', async () => {
  const { clock, troubles, stop, values, keep } = stand();
  const times: number[] = [];
  keep(async () => {
    times.push(clock.monotonicMs());
    // A bound, so that a hot loop ends.
    if (times.length <= 2 || (times.length < 1_000 && clock.monotonicMs() === 0)) {
      throw new Error('not now');
    }
    return new Change().watched('there');
  });
  await clock.advance(10 * timing.pollEveryMs);
  expect(times).toEqual([0, timing.pollEveryMs, 2 * timing.pollEveryMs]);
  expect(troubles).toEqual(['watching', 'watching']);
  expect(values).toEqual(['there']);
  // One timer for each pause. The operations themselves are awaited.
  expect(clock.asked.filter((background) => background === true)).toHaveLength(2);
  stop.abort();
});

it('ends at once when nobody wants it any more, also in a pause, and says nothing of it', async () => {
  const { clock, troubles, stop, keep, isOver } = stand();
  keep(async () => {
    throw new Error('not now');
  });
  await clock.advance(10);
  expect(troubles).toEqual(['watching']);
  stop.abort();
  await clock.advance(0);
  expect(isOver()).toBe(true);

  const other = stand();
  other.keep(() => new Promise(() => {}));
  await other.clock.advance(10);
  other.stop.abort();
  await other.clock.advance(0);
  expect(other.isOver()).toBe(true);
  expect(other.troubles).toEqual([]);
});

it('asks for nothing when it is over before it begins', async () => {
  const { clock, stop, keep, isOver } = stand();
  stop.abort();
  let asked = 0;
  keep(async () => {
    asked += 1;
    return new Change().watched('x');
  });
  await clock.advance(0);
  expect(asked).toBe(0);
  expect(isOver()).toBe(true);
});
