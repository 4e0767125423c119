// NZC 15: the receive path copied the rest of the chunk for every frame, and recursed.
import { afterEach, expect, it, vi } from 'vitest';
import { FrameSplitter } from '../src/protocol/frames.ts';

const lengthBytes = 4;

afterEach(() => void vi.restoreAllMocks());

/** The stream of `count` frames of `bytes` each. */
function streamOf(count: number, bytes: number): Uint8Array {
  const stream = new Uint8Array(count * (lengthBytes + bytes));
  const view = new DataView(stream.buffer);
  for (let i = 0; i < count; i += 1) view.setInt32(i * (lengthBytes + bytes), bytes);
  return stream;
}

/**
 * Splits a stream that arrives in chunks, and counts the bytes that are copied, by whatever method.
 */
function split(stream: Uint8Array, chunkBytes: number): { frames: number; copied: number } {
  let [frames, copied, depth] = [0, 0, 0];
  const splitter = new FrameSplitter(16 * 1024 * 1024, () => {
    depth += 1;
    expect(depth).toBe(1);
    frames += 1;
    depth -= 1;
  });
  const { set, slice } = Uint8Array.prototype;
  const { concat } = Buffer;
  vi.spyOn(Uint8Array.prototype, 'set').mockImplementation(function (this: Uint8Array, from, at) {
    copied += from.length;
    set.call(this, from, at);
  });
  vi.spyOn(Uint8Array.prototype, 'slice').mockImplementation(function (this: Uint8Array, ...range) {
    const part = slice.apply(this, range);
    copied += part.length;
    return part as Uint8Array<ArrayBuffer>;
  });
  vi.spyOn(Buffer, 'concat').mockImplementation((list, total) => {
    const all = concat(list, total);
    copied += all.length;
    return all;
  });
  for (let at = 0; at < stream.length; at += chunkBytes) {
    splitter.push(stream.subarray(at, at + chunkBytes));
  }
  vi.restoreAllMocks();
  return { frames, copied };
}

it('NZC 15: a chunk of 10,000 frames is handed out without copying a byte, one frame after the other', () => {
  const stream = streamOf(10_000, 100);
  expect(split(stream, stream.length)).toEqual({ frames: 10_000, copied: 0 });
});

it('NZC 15: of 10,000 frames in chunks of 64 KiB only those are copied that a chunk cuts', () => {
  const stream = streamOf(10_000, 100);
  const { frames, copied } = split(stream, 64 * 1024);
  expect(frames).toBe(10_000);
  expect(copied).toBeLessThanOrEqual(Math.ceil(stream.length / (64 * 1024)) * 100);
});

it('NZC 15: a frame of 1 MiB in 1,000 pieces is copied once, not once for every piece', () => {
  const stream = streamOf(1, 1024 * 1024);
  const { frames, copied } = split(stream, 1_049);
  expect(frames).toBe(1);
  expect(copied).toBeLessThanOrEqual(1024 * 1024);
});
