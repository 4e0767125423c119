import { expect, test } from 'vitest';
import type { HintConnection } from '../src/backends/hint-hub.ts';
import { HintHub } from '../src/backends/hint-hub.ts';
import { settle } from '../src/testing/index.ts';

/** One connection that a test opens, loses and speaks for. */
class Wire {
  opened = 0;
  closed = 0;
  onHint: (election?: string) => void = () => {};
  onLost: (error?: unknown) => void = () => {};
  refuses = false;
  readonly troubles: unknown[] = [];

  hub(): HintHub {
    return new HintHub({
      connect: async (onHint, onLost): Promise<HintConnection> => {
        this.opened += 1;
        if (this.refuses) throw new Error('refused');
        this.onHint = onHint;
        this.onLost = onLost;
        return {
          close: async () => {
            this.closed += 1;
            throw new Error('it was closed already');
          },
        };
      },
      onTrouble: (error) => void this.troubles.push(error),
    });
  }
}

test('one connection serves all who listen, and each hears of its own election', async () => {
  const wire = new Wire();
  const hub = wire.hub();
  const heard: string[] = [];
  expect(wire.opened).toBe(0);
  const ends = ['a', 'a', 'b'].map((name) => hub.add(name, () => void heard.push(name)));
  expect(hub.isOpen).toBe(false);
  await settle();
  expect(hub.isOpen).toBe(true);
  expect(wire.opened).toBe(1);
  // Changes from before it was open were not reported.
  expect(heard.splice(0)).toEqual(['a', 'a', 'b']);
  wire.onHint('a');
  expect(heard.splice(0)).toEqual(['a', 'a']);
  wire.onHint('unknown');
  expect(heard.splice(0)).toEqual([]);
  wire.onHint();
  expect(heard.splice(0)).toEqual(['a', 'a', 'b']);
  for (const end of ends) {
    end();
    end();
  }
  await settle();
  expect(wire.closed).toBe(1);
  expect(hub.isOpen).toBe(false);
  wire.onHint('a');
  expect(heard).toEqual([]);
});

test('a lost connection wakes everybody, is reported once and opened again only when asked', async () => {
  const wire = new Wire();
  const hub = wire.hub();
  let woken = 0;
  hub.add('a', () => {
    woken += 1;
  });
  await settle();
  expect(woken).toBe(1);
  wire.onLost(new Error('reset'));
  wire.onLost(new Error('and again'));
  expect(woken).toBe(2);
  expect(hub.isOpen).toBe(false);
  await settle();
  expect(wire.opened).toBe(1);
  wire.refuses = true;
  for (let i = 0; i < 3; i += 1) {
    hub.ensure();
    await settle();
  }
  expect(wire.opened).toBe(4);
  expect(woken).toBe(2);
  expect(wire.troubles).toMatchObject([{ message: 'reset' }]);
  wire.refuses = false;
  hub.ensure();
  hub.ensure();
  await settle();
  expect(wire.opened).toBe(5);
  expect(woken).toBe(3);
  wire.onLost();
  expect(wire.troubles).toHaveLength(2);
  await hub.close();
  hub.ensure();
  expect(wire.opened).toBe(5);
});

test('a connection that opens after nobody listens any more is closed', async () => {
  const wire = new Wire();
  const hub = wire.hub();
  hub.add('a', () => {})();
  await settle();
  expect([wire.opened, wire.closed]).toEqual([1, 1]);
  expect(hub.isOpen).toBe(false);
  hub.add('a', () => {});
  await settle();
  expect([wire.opened, wire.closed]).toEqual([2, 1]);
  await hub.close();
});

test('a connection in doubt is no longer relied on, and given up if nothing comes by it', async () => {
  const wire = new Wire();
  const hub = wire.hub();
  hub.doubt();
  expect(hub.isDoubted).toBe(false);
  let woken = 0;
  hub.add('a', () => {
    woken += 1;
  });
  await settle();
  woken = 0;
  hub.doubt();
  expect([hub.isOpen, hub.isDoubted]).toEqual([false, true]);
  // A store that has asked nothing since cannot know that the hint is overdue.
  hub.ensure();
  expect([wire.opened, wire.closed]).toEqual([1, 0]);
  wire.onHint('unknown');
  expect([hub.isOpen, hub.isDoubted]).toEqual([true, false]);
  hub.ensure(true);
  expect([wire.opened, woken]).toEqual([1, 0]);
  hub.doubt();
  hub.ensure(true);
  await settle();
  expect([wire.opened, wire.closed]).toEqual([2, 1]);
  expect([hub.isOpen, hub.isDoubted]).toEqual([true, false]);
  expect(woken).toBe(2);
  expect(wire.troubles).toMatchObject([{ message: expect.stringContaining('has missed news') }]);
  await hub.close();
});

test('the last hint is another one after each, and after whatever may have lost one', async () => {
  const wire = new Wire();
  const hub = wire.hub();
  const seen: (number | undefined)[] = [];
  const look = () => void seen.push(hub.lastHint('a'));
  expect(hub.lastHint('a')).toBeUndefined();
  const end = hub.add('a', () => {});
  look();
  await settle();
  look();
  wire.onHint('a');
  look();
  wire.onHint();
  look();
  wire.onLost();
  look();
  hub.ensure();
  await settle();
  look();
  end();
  expect(hub.lastHint('a')).toBeUndefined();
  hub.add('a', () => {});
  look();
  expect(new Set(seen).size).toBe(7);
  await settle();
  const before = hub.lastHint('a');
  wire.onHint('b');
  expect(hub.lastHint('a')).toBe(before);
  expect(hub.lastHint('b')).toBeUndefined();
  await hub.close();
});
