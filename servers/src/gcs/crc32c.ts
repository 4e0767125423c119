/** CRC-32C in base64, bit by bit: not the way the library computes it. */
export function crc32cOf(bytes: Uint8Array): string {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  const bigEndian = Buffer.alloc(4);
  bigEndian.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  return bigEndian.toString('base64');
}
