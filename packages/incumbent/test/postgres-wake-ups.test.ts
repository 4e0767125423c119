import { describe, expect, it } from 'vitest';
import type { Driver } from '../src/backends/postgres/driver.ts';
import { topicOf } from '../src/backends/postgres/statements.ts';
import { WakeUps } from '../src/backends/postgres/wake-ups.ts';

const tableOf = (name: string) => ({ name, sql: name });

describe('a wake-up from a client that spells the table differently', () => {
  it.each([
    ['incumbent_election', 'app.incumbent_election'],
    ['app.incumbent_election', 'incumbent_election'],
  ])('heard as %s, sent as %s, reaches the election of that name only', async (mine, theirs) => {
    let notify: (payload: string) => void = () => {};
    const driver: Partial<Driver> = {
      query: async () => [['7']],
      listen: async (_channel, onNotify) => {
        notify = onNotify;
        return { pid: 7, close: async () => {} };
      },
    };
    const wakeUps = new WakeUps(driver as Driver);
    const heard: string[] = [];
    for (const election of ['a', 'b/c.d']) {
      wakeUps.add(topicOf(tableOf(mine), election), () => heard.push(election));
    }
    const settled = wakeUps.settled();
    wakeUps.ensure();
    await settled;
    expect(wakeUps.work).toBe(true);
    heard.length = 0;
    notify(topicOf(tableOf(theirs), 'b/c.d'));
    expect(heard).toEqual(['b/c.d']);
    notify(topicOf(tableOf('other'), 'a'));
    expect(heard).toEqual(['b/c.d']);
  });
});
