import { describe, expect, test } from 'vitest';
import { classify } from '../../src/client/commands.ts';

describe('a command goes', () => {
  test.each([
    ['get', ['k']],
    ['GET', ['k']],
    ['getBuffer', ['k']],
    ['hGetAll', ['k']],
    ['zRangeWithScores', ['k', 0, -1]],
    ['xInfoStream', ['k']],
    ['xinfo', ['STREAM', 'k']],
    ['object', ['encoding', 'k']],
    ['OBJECT', ['ENCODING', 'k']],
    ['evalRo', ['return 1']],
    ['eval_ro', ['return 1', 0]],
    ['xread', ['STREAMS', 's', '0']],
  ])('to a replica, if Redis calls it read-only: %s %j', (label, args) => {
    expect(classify(label, args)).toMatchObject({ goesTo: 'any', refused: undefined });
  });

  test.each([
    ['set', ['k', 'v']],
    ['getSet', ['k', 'v']],
    ['getDel', ['k']],
    ['getEx', ['k']],
    ['zRangeStore', ['to', 'from', 0, -1]],
    ['sort', ['k']],
    ['geoRadius', ['k']],
    ['eval', ['return 1', 0]],
    ['pfAdd', ['k', 'a']],
    ['xReadGroup', ['g', 'c', { key: 'k', id: '>' }]],
    ['publish', ['c', 'm']],
    ['info', []],
    ['object', []],
    ['json.get', ['k']],
    ['ownScript', ['k']],
    // A cursor means something only to the node that gave it.
    ['scan', ['0']],
    ['hScan', ['k', '0']],
    ['wait', [1, 100]],
  ])('to the primary, if it is a write or not known: %s %j', (label, args) => {
    expect(classify(label, args, true)).toMatchObject({ goesTo: 'primary', refused: undefined });
  });

  test.each([
    ['subscribe', ['c'], 'dedicated()'],
    ['pSubscribe', ['c*'], 'dedicated()'],
    ['select', [1], 'dedicated()'],
    ['auth', ['x'], 'dedicated()'],
    ['watch', ['k'], 'dedicated()'],
    ['clientSetName', ['x'], 'dedicated()'],
    ['client', ['SETNAME', 'x'], 'dedicated()'],
    ['CLIENT', ['reply', 'OFF'], 'dedicated()'],
    ['clientTracking', [true], 'dedicated()'],
    ['blPop', ['k', 0], 'dedicated()'],
    ['bzpopmin', ['k', 0], 'dedicated()'],
    ['xread', ['BLOCK', '0', 'STREAMS', 's', '$'], 'dedicated()'],
    ['xread', [Buffer.from('block'), '0', 'STREAMS', 's', '$'], 'dedicated()'],
    ['xRead', [{ key: 's', id: '$' }, { BLOCK: 0 }], 'dedicated()'],
    ['xReadGroup', ['g', 'c', [{ key: 's', id: '>' }], { BLOCK: 5 }], 'dedicated()'],
    ['exec', [], 'multi()'],
    ['MULTI', [], 'multi()'],
    ['client', [Buffer.from('REPLY'), 'OFF'], 'dedicated()'],
    ['script', ['DEBUG', 'YES'], 'dedicated()'],
    ['clientUnpause', [], 'manualFailover()'],
    ['CLIENT', ['PAUSE', '10'], 'manualFailover()'],
    ['waitAof', [1, 1, 100], 'failover.write'],
    ['DISCARD', [], 'multi()'],
    ['wait', [1, 100], 'failover.write'],
    ['replicaOf', ['h', 1], 'manualFailover()'],
    ['SLAVEOF', ['NO', 'ONE'], 'manualFailover()'],
    ['quit', [], 'failover.close()'],
  ])('nowhere, if it needs a connection of its own: %s %j', (label, args, wayOut) => {
    expect(classify(label, args).refused).toContain(wayOut);
  });

  test('as a script of the caller to the primary, whatever it is called', () => {
    const own = new Set(['touch', 'multi']);
    const expected = { goesTo: 'primary', isScript: true, refused: undefined };
    expect(classify('touch', ['k'], false, own)).toMatchObject(expected);
    expect(classify('library.get', ['k'])).toMatchObject({ goesTo: 'primary', isScript: true });
  });

  test('without blocking, as far as options say so', () => {
    expect(classify('xRead', [{ key: 's', id: '0' }, { BLOCK: undefined }]).refused).toBe(
      undefined,
    );
  });
});
