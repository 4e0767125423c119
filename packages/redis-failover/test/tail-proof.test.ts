import { describe, expect, it } from 'vitest';
import { lackedOf, meaningOf } from '../src/manager/tail-proof.ts';
import { decodeCommands } from '../src/redis/tail.ts';

const encoded = (...commands: readonly (readonly (string | Buffer)[])[]) =>
  Buffer.concat(
    commands.flatMap((parts) => [
      Buffer.from(`*${parts.length}\r\n`),
      ...parts.flatMap((part) => [
        Buffer.from(`$${Buffer.byteLength(part)}\r\n`),
        Buffer.from(part as string),
        Buffer.from('\r\n'),
      ]),
    ]),
  );

const idle = [['SELECT', '2'], ['ping'], ['PUBLISH', 'a', 'b'], ['REPLCONF', 'GETACK', '*']];

describe('the end of a stream', () => {
  it('is read as the commands that the primary sent', () => {
    const bytes = encoded(['SET', 'k', 'a\r\nb'], ['ping']);
    expect(decodeCommands(bytes).map((parts) => parts.map(String))).toEqual([
      ['SET', 'k', 'a\r\nb'],
      ['ping'],
    ]);
  });

  it('is refused wherever it is cut, or is something else', () => {
    const bytes = encoded(['SET', 'k', 'v'], ['ping']);
    const first = encoded(['SET', 'k', 'v']).length;
    for (let length = 1; length < bytes.length; length += 1) {
      if (length === first) continue;
      expect(() => decodeCommands(bytes.subarray(0, length))).toThrow('stream');
      expect(() => decodeCommands(bytes.subarray(length))).toThrow('stream');
    }
    expect(() => decodeCommands(Buffer.from('PING\r\n'))).toThrow('stream');
  });
});

describe('what a primary that was cut off has more', () => {
  const never = async (): Promise<boolean> => {
    throw new Error('nobody is to be asked');
  };

  it('is nothing where it has only sent PINGs and messages', async () => {
    expect(await lackedOf(meaningOf(decodeCommands(encoded(...idle))), never)).toBe(undefined);
  });

  it('is every other command, even an unknown one', async () => {
    const lacked = (...parts: string[]) =>
      lackedOf(meaningOf(decodeCommands(encoded(...idle, parts))), never);
    expect(await lacked('SET', 'k', 'v')).toBe('1 writes (SET)');
    expect(await lacked('FLUSHALL')).toBe('1 writes (FLUSHALL)');
    expect(await lacked('somenew.command', 'k')).toBe('1 writes (SOMENEW.COMMAND)');
  });

  it('is a deletion where the new primary has the key, in the database of the stream', async () => {
    const has = (where: number | undefined, key: string) => {
      return async (db: number | undefined, keys: readonly string[]) =>
        keys.includes(key) && (db === where || db === undefined);
    };
    const meaning = meaningOf(
      decodeCommands(encoded(['DEL', 'first'], ...idle, ['UNLINK', 'a', 'b'])),
    );
    expect(await lackedOf(meaning, has(9, 'b'))).toBe(undefined);
    expect(await lackedOf(meaning, has(2, 'b'))).toMatch('a deletion');
    // The stream had named the database before.
    expect(await lackedOf(meaning, has(9, 'first'))).toMatch('a deletion');
  });

  it('is a deletion of a key that is no text: it cannot be asked for', async () => {
    const meaning = meaningOf(decodeCommands(encoded(['DEL', Buffer.from([0xff, 0xfe])])));
    expect(await lackedOf(meaning, never)).toBe('1 writes (DEL)');
  });
});
