import type { Reader } from '../protocols.ts';
import { Pieces } from './pieces.ts';

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const headBytes = 9;
const data = 0;
const headers = 1;

/** Frames of HTTP/2, without TLS: a head with length, type, flags and stream, then the payload. */
export function grpcRequests(from: 'client' | 'server'): Reader {
  const pieces = new Pieces();
  const streams = new Set<number>();
  let isBegun = from === 'server';
  return {
    read(chunk) {
      pieces.add(chunk);
      const requests: string[] = [];
      let speaks = false;
      for (;;) {
        const bytes = pieces.present;
        if (!isBegun) {
          if (bytes.length < preface.length) return { requests, speaks };
          if (!bytes.toString('latin1').startsWith(preface)) throw new Error('no HTTP/2');
          isBegun = true;
          pieces.drop(preface.length);
          continue;
        }
        if (bytes.length < headBytes) return { requests, speaks };
        const length = bytes.readUIntBE(0, 3);
        if (bytes.length < headBytes + length) return { requests, speaks };
        const type = bytes[3];
        const stream = bytes.readUInt32BE(5) & 0x7fff_ffff;
        // Settings, pings and windows are between the libraries: nobody waits for them.
        if (type === data || type === headers) speaks = true;
        if (from === 'client' && type === data && length > 0) {
          requests.push(streams.has(stream) ? 'message' : 'call');
          streams.add(stream);
        }
        pieces.drop(headBytes + length);
      }
    },
  };
}
