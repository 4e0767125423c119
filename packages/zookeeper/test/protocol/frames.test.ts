import { describe, expect, test } from 'vitest';
import { FrameSplitter } from '../../src/protocol/frames.ts';
import { MalformedError } from '../../src/protocol/jute.ts';
import { exchanges, frameOf } from './golden.ts';

const maxFrameBytes = 1_000;

/** Frames of 0, 1, 3, 4 and 5 bytes, and captured ones between. */
const contents = [
  Buffer.alloc(0),
  Buffer.from([1]),
  exchanges[0]!.reply.frame.subarray(4),
  Buffer.from([2, 3, 4]),
  Buffer.alloc(0),
  Buffer.alloc(0),
  Buffer.from([0, 0, 0, 1]),
  exchanges[1]!.reply.frame.subarray(4),
  Buffer.from([255, 255, 255, 255, 255]),
];
const stream = Buffer.concat(contents.map((content) => frameOf(content)));
const expected = contents.map((content) => content.toString('hex'));

/**
 * The frames of `chunks`. Every chunk is overwritten after it was pushed, as a socket's buffer is.
 */
function split(chunks: readonly Uint8Array[]): { frames: string[]; splitter: FrameSplitter } {
  const frames: string[] = [];
  const splitter = new FrameSplitter(maxFrameBytes, (bytes, start, end) => {
    frames.push(Buffer.from(bytes.subarray(start, end)).toString('hex'));
  });
  for (const chunk of chunks) {
    const reused = Uint8Array.from(chunk);
    splitter.push(reused);
    reused.fill(0xee);
  }
  return { frames, splitter };
}

describe('a stream of frames', () => {
  test('in one piece', () => {
    expect(split([stream]).frames).toEqual(expected);
  });

  test('in two pieces, cut at every position', () => {
    for (let at = 0; at <= stream.length; at += 1) {
      const { frames, splitter } = split([stream.subarray(0, at), stream.subarray(at)]);
      expect(frames, `cut at ${at}`).toEqual(expected);
      expect(splitter.midFrame).toBe(false);
    }
  });

  test('in three pieces, cut at every pair of positions', () => {
    for (let first = 0; first <= stream.length; first += 1) {
      for (let second = first; second <= stream.length; second += 1) {
        const { frames } = split([
          stream.subarray(0, first),
          stream.subarray(first, second),
          stream.subarray(second),
        ]);
        if (frames.join() !== expected.join()) expect.fail(`cut at ${first} and ${second}`);
      }
    }
  });

  test('in single bytes, and in pieces of every size', () => {
    for (let size = 1; size <= stream.length; size += 1) {
      const chunks: Uint8Array[] = [];
      for (let at = 0; at < stream.length; at += size) chunks.push(stream.subarray(at, at + size));
      expect(split(chunks).frames, `pieces of ${size}`).toEqual(expected);
    }
  });

  test('in a chunk that begins inside its memory', () => {
    const memory = new Uint8Array(stream.length + 20).fill(0x7f);
    memory.set(stream, 13);
    const frames: string[] = [];
    const splitter = new FrameSplitter(maxFrameBytes, (bytes, start, end) => {
      frames.push(Buffer.from(bytes.subarray(start, end)).toString('hex'));
    });
    const chunk = new Uint8Array(memory.buffer, 13, stream.length);
    splitter.push(chunk.subarray(0, 30));
    splitter.push(chunk.subarray(30));
    expect(frames).toEqual(expected);
  });

  test('in a buffer of which only the beginning counts', () => {
    const frames: string[] = [];
    const splitter = new FrameSplitter(maxFrameBytes, (bytes, start, end) => {
      frames.push(Buffer.from(bytes.subarray(start, end)).toString('hex'));
    });
    const buffer = new Uint8Array(16);
    for (let at = 0; at < stream.length; at += 7) {
      const piece = stream.subarray(at, at + 7);
      buffer.fill(0xee);
      buffer.set(piece);
      splitter.push(buffer, piece.length);
    }
    expect(frames).toEqual(expected);
    expect(splitter.midFrame).toBe(false);
  });
});

describe('where a stream stands', () => {
  test('it is inside a frame from the first byte of the length to the last of the content', () => {
    const frame = frameOf(Buffer.from([1, 2]));
    for (let at = 0; at <= frame.length; at += 1) {
      const { splitter } = split([frame.subarray(0, at)]);
      expect(splitter.midFrame, `after ${at} bytes`).toBe(at > 0 && at < frame.length);
    }
  });

  test('a frame that lies whole in its chunk is given out without a copy', () => {
    const given: Uint8Array[] = [];
    const splitter = new FrameSplitter(maxFrameBytes, (bytes) => given.push(bytes));
    splitter.push(stream);
    expect(given.every((bytes) => bytes === stream)).toBe(true);
  });
});

describe('a length that cannot be', () => {
  const lengths = [-1, -2, -(2 ** 31), maxFrameBytes + 1, 2 ** 31 - 1];
  test.each(lengths)('%i is refused before there is memory for it', (length) => {
    const prefix = Buffer.alloc(4);
    prefix.writeInt32BE(length);
    for (let at = 0; at <= 4; at += 1) {
      const before = process.memoryUsage().arrayBuffers;
      const good = frameOf(Buffer.from([1]));
      const chunks = [Buffer.concat([good, prefix.subarray(0, at)]), prefix.subarray(at)];
      expect(() => split(chunks), `cut at ${at}`).toThrow(MalformedError);
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 24);
    }
  });

  test('is told with the limit', () => {
    const prefix = Buffer.from([0x7f, 0xff, 0xff, 0xff]);
    expect(() => split([prefix])).toThrow('2147483647 bytes; the limit is 1000');
  });

  test('the limit itself is a length that can be', () => {
    const content = Buffer.alloc(maxFrameBytes, 5);
    const frame = frameOf(content);
    expect(split([frame]).frames).toEqual([content.toString('hex')]);
    expect(split([frame.subarray(0, 9), frame.subarray(9)]).frames).toHaveLength(1);
  });
});

describe('after end()', () => {
  /** Ends the splitter in the handler of the frame with the number `last`. */
  function endAfter(last: number, chunks: readonly Uint8Array[]): number {
    let count = 0;
    const splitter = new FrameSplitter(maxFrameBytes, () => {
      count += 1;
      if (count === last) splitter.end();
    });
    for (const chunk of chunks) splitter.push(chunk);
    return count;
  }

  test('no frame is given out, neither of the same chunk nor of a later one', () => {
    for (let last = 1; last <= contents.length; last += 1) {
      expect(endAfter(last, [stream, stream])).toBe(last);
      const bytes = Array.from(stream, (byte) => Uint8Array.of(byte));
      expect(endAfter(last, bytes)).toBe(last);
      expect(endAfter(last, [stream.subarray(0, 7), stream.subarray(7)])).toBe(last);
    }
  });

  test('a length that cannot be is not looked at', () => {
    const broken = Buffer.concat([frameOf(Buffer.from([1])), Buffer.alloc(8, 0xff)]);
    expect(endAfter(1, [broken])).toBe(1);
  });
});

test('a handler that throws ends the push with its error', () => {
  const failure = new Error('from the handler');
  const splitter = new FrameSplitter(maxFrameBytes, () => {
    throw failure;
  });
  expect(() => splitter.push(stream)).toThrow(failure);
});
