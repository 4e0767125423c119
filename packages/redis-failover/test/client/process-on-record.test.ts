/** The check of a node before a client writes to it. */
import { describe, expect, test } from 'vitest';
import { Connection } from '../../src/client/connection.ts';
import type { Driver } from '../../src/client/driver.ts';
import { WrongRoleError } from '../../src/client/errors.ts';
import { systemClock } from '../../src/clock.ts';

/** A primary in the process `runs`. */
function primary(runs: string): Driver<object> {
  return {
    name: 'node-redis',
    model: {},
    own: new Set(),
    open: () => ({
      client: {},
      isOpen: true,
      connect: async () => {},
      command: async ([word]) => (word === 'ROLE' ? ['master', 0, []] : `run_id:${runs}\r\n`),
      close: () => {},
      onClose: () => {},
    }),
  };
}

function open(runs: string, isGemLeading?: () => Promise<boolean>) {
  return Connection.open(primary(runs), 'r1:6379', {
    ...{ connectTimeoutMs: 1_000, commandTimeoutMs: 1_000, clock: systemClock },
    ...{ role: 'primary', runId: () => 'aaa', isGemLeading },
  });
}

describe('a primary in another process than the one on record', () => {
  test('is not written to: a manager of ours has to look at it first', async () => {
    await expect(open('bbb')).rejects.toThrow(WrongRoleError);
    await expect(open('bbb', async () => false)).rejects.toThrow('started anew');
  });

  test('is written to while managers of the gem lead, which keep no record', async () => {
    const connection = await open('bbb', async () => true);
    expect(connection.address).toBe('r1:6379');
  });

  test('in the process on record needs no look for managers of the gem', async () => {
    const look = async () => {
      throw new Error('looked');
    };
    await expect(open('aaa', look)).resolves.toBeDefined();
  });
});
