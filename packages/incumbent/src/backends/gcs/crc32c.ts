/** CRC-32C (Castagnoli), with which Cloud Storage checks uploads. */

/** 0x1edc6f41 with its bits in reverse. */
const polynomial = 0x82f63b78;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
  return crc;
});

export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (table[(crc ^ byte) & 0xff] as number) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** As Cloud Storage writes it: base64 of four bytes, the highest first. */
export function crc32cBase64(bytes: Uint8Array): string {
  const crc = crc32c(bytes);
  const bigEndian = Uint8Array.of(crc >>> 24, crc >>> 16, crc >>> 8, crc);
  return Buffer.from(bigEndian).toString('base64');
}
