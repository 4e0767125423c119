/**
 * Servers write a character beyond U+FFFF as the two halves of its UTF-16 pair, three bytes each.
 * But they read it as UTF-8: four bytes. Paths cannot have such characters. Ids in ACLs and names
 * of users can, and an ACL that was read must be the same when it is set again.
 */

/**
 * Replaces every pair of halves in `bytes` by the four bytes of UTF-8, in place.
 * @returns the part of `bytes` that is left
 */
export function joinSurrogates(bytes: Uint8Array): Uint8Array {
  let to = 0;
  for (let from = 0; from < bytes.length; ) {
    if (isHalf(bytes, from, 0xa0) && isHalf(bytes, from + 3, 0xb0)) {
      const high = halfAt(bytes, from);
      const character = 0x10000 + (high << 10) + halfAt(bytes, from + 3);
      bytes[to] = 0xf0 | (character >> 18);
      bytes[to + 1] = 0x80 | ((character >> 12) & 0x3f);
      bytes[to + 2] = 0x80 | ((character >> 6) & 0x3f);
      bytes[to + 3] = 0x80 | (character & 0x3f);
      to += 4;
      from += 6;
    } else {
      bytes[to] = bytes[from] as number;
      to += 1;
      from += 1;
    }
  }
  return bytes.subarray(0, to);
}

/** @param second 0xa0 for the first half of a pair, 0xb0 for the second */
function isHalf(bytes: Uint8Array, at: number, second: number): boolean {
  return (
    bytes[at] === 0xed &&
    ((bytes[at + 1] ?? 0) & 0xf0) === second &&
    ((bytes[at + 2] ?? 0) & 0xc0) === 0x80
  );
}

/** The ten bits that one half carries. */
function halfAt(bytes: Uint8Array, at: number): number {
  return (((bytes[at + 1] as number) & 0x0f) << 6) | ((bytes[at + 2] as number) & 0x3f);
}
