import type { Reader } from '../protocols.ts';
import { Pieces } from './pieces.ts';

/** Whatever else is sent (parse, bind, describe, sync) goes with these. */
const counted = new Set(['Q', 'E']);
const smallestStartup = 8;

/** A startup message without a type, then messages of a type, a length and a body. */
export function postgresRequests(): Reader {
  const pieces = new Pieces();
  let isStarted = false;
  return {
    read(chunk) {
      pieces.add(chunk);
      const requests: string[] = [];
      for (;;) {
        const bytes = pieces.present;
        const typed = isStarted ? 1 : 0;
        if (bytes.length < typed + 4) return { requests, speaks: true };
        const length = bytes.readUInt32BE(typed);
        if (!isStarted && (length < smallestStartup || length > 10_000)) {
          throw new Error('no startup message of PostgreSQL');
        }
        if (bytes.length < typed + length) return { requests, speaks: true };
        const type = bytes.toString('latin1', 0, 1);
        if (isStarted && counted.has(type)) requests.push(type);
        isStarted = true;
        pieces.drop(typed + length);
      }
    },
  };
}
