// How often servers are asked whether one of them has a quorum.
import { expect, it } from 'vitest';
import { findReadWriteServer } from '../src/session/read-write-search.ts';
import { sessionTiming } from '../src/session/timing.ts';
import { TestClock } from './hostile-reading/clock.ts';
import { closeAfterEach } from './hostile-reading/closing.ts';
import { ScriptedServer } from './hostile-reading/scripted-server.ts';

const later = closeAfterEach();

/** The limit of one question. No pause is as long. */
const askMs = 5_000;

/** A clock on which pauses end at once, and questions have all the time that they need. */
class PausesAtOnce extends TestClock {
  readonly pausesMs: number[] = [];

  override setTimer(callback: () => void, delayMs: number) {
    if (delayMs === askMs) return super.setTimer(callback, delayMs);
    this.pausesMs.push(delayMs);
    const immediate = setImmediate(callback);
    return { cancel: () => clearImmediate(immediate) };
  }
}

it('the pauses between two rounds double, up to 10 s', async () => {
  let asked = 0;
  const answer = () => {
    asked += 1;
    return asked < 10 ? 'ro' : 'rw';
  };
  const server = later(await ScriptedServer.start({ isro: answer }));
  const clock = new PausesAtOnce();
  const hosts = [{ host: '127.0.0.1', port: server.port }];
  const found = await findReadWriteServer(
    { hosts, tls: undefined, clock, random: () => 1 },
    sessionTiming(6 * askMs),
    new AbortController().signal,
  );
  expect(found).toBe(true);
  expect(clock.pausesMs).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
  expect(clock.timers).toBe(0);
});

it('a search that is stopped asks no more, and leaves no timer behind', async () => {
  const stop = new AbortController();
  const answer = () => {
    stop.abort();
    return 'ro';
  };
  const server = later(await ScriptedServer.start({ isro: answer }));
  const clock = new PausesAtOnce();
  const hosts = [{ host: '127.0.0.1', port: server.port }];
  const found = await findReadWriteServer(
    { hosts, tls: undefined, clock, random: () => 1 },
    sessionTiming(6 * askMs),
    stop.signal,
  );
  expect(found).toBe(false);
  expect(clock.pausesMs).toEqual([]);
  expect(clock.timers).toBe(0);
});
