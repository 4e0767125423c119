import { describe, expect, it } from 'vitest';
import { EventBuffer } from '../src/event-buffer.ts';

const dropOldest = (events: readonly number[]) => events.slice(1);

describe('EventBuffer', () => {
  it('gives events in order, whether they were pushed or asked for first', async () => {
    const buffer = new EventBuffer<number>(10, dropOldest);
    buffer.push(1);
    const asked = [buffer.next(), buffer.next(), buffer.next()];
    buffer.push(2);
    buffer.push(3);
    buffer.push(4);
    expect(await Promise.all(asked)).toEqual([1, 2, 3]);
    expect(await buffer.next()).toBe(4);
  });

  it('keeps what its owner says when one too many waits', async () => {
    const buffer = new EventBuffer<number>(3, dropOldest);
    for (let i = 1; i <= 5; i += 1) buffer.push(i);
    buffer.end();
    expect(await taken(buffer)).toEqual([3, 4, 5]);
  });

  it('may put one event in the place of all', async () => {
    const seen: (readonly number[])[] = [];
    const buffer = new EventBuffer<number>(2, (events) => {
      seen.push([...events]);
      return [-1];
    });
    for (let i = 1; i <= 4; i += 1) buffer.push(i);
    buffer.end();
    expect(seen).toEqual([[1, 2, 3]]);
    expect(await taken(buffer)).toEqual([-1, 4]);
  });

  it('still gives at the end what was pushed before, and nothing that is pushed after', async () => {
    const buffer = new EventBuffer<number>(10, dropOldest);
    buffer.push(1);
    buffer.end();
    buffer.push(2);
    expect(await buffer.next()).toBe(1);
    expect(await buffer.next()).toBeUndefined();
    expect(await buffer.next()).toBeUndefined();
  });

  it('ends every waiting consumer', async () => {
    const buffer = new EventBuffer<number>(10, dropOldest);
    const asked = [buffer.next(), buffer.next()];
    buffer.end();
    buffer.end();
    expect(await Promise.all(asked)).toEqual([undefined, undefined]);
  });
});

async function taken(buffer: EventBuffer<number>): Promise<number[]> {
  const events: number[] = [];
  for (let next = await buffer.next(); next !== undefined; next = await buffer.next()) {
    events.push(next);
  }
  return events;
}
