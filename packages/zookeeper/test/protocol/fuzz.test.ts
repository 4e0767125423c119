import { expect, test } from 'vitest';
import { defaultMaxFrameBytes } from '../../src/protocol/constants.ts';
import { FrameSplitter } from '../../src/protocol/frames.ts';
import type { Codec } from '../../src/protocol/jute.ts';
import { decode, encode, JuteReader, MalformedError } from '../../src/protocol/jute.ts';
import { replyHeader, requestHeader } from '../../src/protocol/messages.ts';
import { codecsOf, exchanges } from './golden.ts';

/** `FUZZ_SEED=7 npx vitest run --project unit packages/zookeeper/test/protocol/fuzz.test.ts` */
const seed = Number(process.env['FUZZ_SEED'] ?? 20_221);
const rounds = 20_000;
/** More than any honest use, far less than a claimed length of 2^31 - 1. */
const maxGrowthBytes = 256 * 2 ** 20;

/** mulberry32: the same numbers for the same seed on every machine. */
function randomOf(from: number): (below: number) => number {
  let state = from >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** Every read takes at least one byte. A reader that has read more often is in an endless loop. */
class CountingReader extends JuteReader {
  #left: number;

  constructor(bytes: Uint8Array) {
    super(bytes);
    // An empty vector of a string is two calls for four bytes. A failed read is one for none.
    this.#left = 2 * bytes.length + 16;
  }

  override int32(): number {
    this.#count();
    return super.int32();
  }
  override int64(): bigint {
    this.#count();
    return super.int64();
  }
  override safeInt64(): number {
    this.#count();
    return super.safeInt64();
  }
  override boolean(): boolean {
    this.#count();
    return super.boolean();
  }

  #count(): void {
    this.#left -= 1;
    if (this.#left < 0) throw new Error('reads without an end');
  }
}

interface Sample {
  readonly bytes: Uint8Array;
  readonly codec: Codec<unknown>;
}

const bodies: Sample[] = exchanges.flatMap(({ message, request, reply }) => {
  const { request: requestCodec, reply: replyCodec } = codecsOf(message);
  const found: Sample[] = [];
  if (request !== undefined) {
    const at = request.header === undefined ? 4 : 12;
    found.push({ bytes: request.frame.subarray(at), codec: requestCodec });
  }
  const at = reply.header === undefined ? 4 : 20;
  found.push({ bytes: reply.frame.subarray(at), codec: replyCodec });
  return found;
});
const frames = exchanges.flatMap(({ request, reply }) =>
  request === undefined ? [reply.frame] : [request.frame, reply.frame],
);
const codecs = [
  ...new Set([...bodies.map(({ codec }) => codec), requestHeader, replyHeader]),
] as Codec<unknown>[];

const numbers = [0, 1, -1, -2, 2 ** 31 - 1, -(2 ** 31), 2 ** 24, defaultMaxFrameBytes, 4, 22];

/** `bytes` with a few changes of the kinds that peers, proxies and attackers make. */
function mutate(bytes: Uint8Array, random: (below: number) => number): Buffer {
  let mutated = Buffer.from(bytes);
  for (let changes = random(4); changes >= 0; changes -= 1) {
    const at = random(mutated.length + 1);
    const to = at + random(mutated.length + 1 - at);
    switch (random(7)) {
      case 0:
        if (at < mutated.length) mutated[at]! ^= 1 << random(8);
        break;
      case 1:
        if (at < mutated.length) mutated[at] = random(256);
        break;
      case 2:
        if (at + 4 <= mutated.length) {
          mutated.writeInt32BE(numbers[random(numbers.length)]!, at);
        }
        break;
      case 3:
        mutated = mutated.subarray(0, at);
        break;
      case 4: // once more
        mutated = Buffer.concat([mutated.subarray(0, to), mutated.subarray(at)]);
        break;
      case 5: // left out
        mutated = Buffer.concat([mutated.subarray(0, at), mutated.subarray(to)]);
        break;
      default:
        mutated = Buffer.concat([mutated.subarray(0, at), noise(random), mutated.subarray(at)]);
    }
  }
  return mutated;
}

function noise(random: (below: number) => number): Buffer {
  return Buffer.from(Array.from({ length: random(24) }, () => random(256)));
}

/** Throws nothing but MalformedError. A value that was read can be written and read again. */
function attempt(codec: Codec<unknown>, bytes: Uint8Array): 'read' | 'refused' {
  let value: unknown;
  try {
    const reader = new CountingReader(bytes);
    value = codec.read(reader);
    reader.expectEnd('');
  } catch (error) {
    if (error instanceof MalformedError) return 'refused';
    throw error;
  }
  const written = encode(codec, value);
  const again = encode(codec, decode(codec, written, ''));
  if (Buffer.compare(written, again) !== 0) throw new Error('read differently the second time');
  return 'read';
}

/** Runs `round` many times. A failure tells how to repeat it. */
function fuzz(round: (random: (below: number) => number) => void): void {
  const random = randomOf(seed);
  const before = memoryBytes();
  for (let i = 0; i < rounds; i += 1) {
    try {
      round(random);
      if (i % 500 === 0) expect(memoryBytes() - before).toBeLessThan(maxGrowthBytes);
    } catch (error) {
      throw new Error(`FUZZ_SEED=${seed}, round ${i}: ${String(error)}`, { cause: error });
    }
  }
}

function memoryBytes(): number {
  const { arrayBuffers, external } = process.memoryUsage();
  return arrayBuffers + external;
}

test('a body that was tampered with is read or refused, whatever it is taken for', () => {
  const outcomes = { read: 0, refused: 0 };
  fuzz((random) => {
    const { bytes, codec } = bodies[random(bodies.length)]!;
    const mutated = random(10) === 0 ? noise(random) : mutate(bytes, random);
    outcomes[attempt(codec, mutated)] += 1;
    outcomes[attempt(codecs[random(codecs.length)]!, mutated)] += 1;
  });
  // If all were refused, the mutations would be too coarse to reach anything.
  expect(outcomes.read).toBeGreaterThan(rounds / 20);
  expect(outcomes.refused).toBeGreaterThan(rounds / 2);
});

test('a stream that was tampered with is split or refused, and never held beyond the limit', () => {
  const maxFrameBytes = 4_096;
  let given = 0;
  fuzz((random) => {
    const chosen = Array.from({ length: 1 + random(4) }, () => frames[random(frames.length)]!);
    const stream = mutate(Buffer.concat(chosen), random);
    let previousEnd = 0;
    const splitter = new FrameSplitter(maxFrameBytes, (bytes, start, end) => {
      if (end - start > maxFrameBytes || end > bytes.length) throw new Error('a frame too long');
      given += 1;
      previousEnd += 4 + end - start;
      if (previousEnd > stream.length) throw new Error('more frames than there were bytes');
      attempt(codecs[random(codecs.length)]!, bytes.subarray(start, end));
    });
    try {
      for (let at = 0; at < stream.length; ) {
        const size = 1 + random(random(2) === 0 ? 8 : stream.length);
        splitter.push(stream.subarray(at, at + size));
        at += size;
      }
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
    }
  });
  expect(given).toBeGreaterThan(rounds / 2);
});

test('a length of 2^31 - 1 at any place takes no memory and no time', () => {
  const before = memoryBytes();
  for (const { bytes, codec } of bodies) {
    for (let at = 0; at + 4 <= bytes.length; at += 1) {
      const claimed = Buffer.from(bytes);
      claimed.writeInt32BE(2 ** 31 - 1, at);
      attempt(codec, claimed);
    }
    expect(memoryBytes() - before).toBeLessThan(maxGrowthBytes);
  }
});
