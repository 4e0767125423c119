import type { Reader } from '../protocols.ts';
import { Pieces } from './pieces.ts';

/** Arrays of bulk strings: `*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`. */
export function redisRequests(): Reader {
  const pieces = new Pieces();
  return {
    read(chunk) {
      pieces.add(chunk);
      const requests: string[] = [];
      for (;;) {
        const found = commandAt(pieces.present);
        if (found === undefined) return { requests, speaks: true };
        requests.push(found.name);
        pieces.drop(found.end);
      }
    },
  };
}

/** The command that begins there, if all of it is. */
function commandAt(bytes: Buffer): { readonly name: string; readonly end: number } | undefined {
  const head = lineAt(bytes, 0);
  if (head === undefined) return undefined;
  if (!/^\*\d+$/.test(head.text)) throw new Error(`no command of Redis: ${head.text}`);
  let end = head.end;
  let name = '';
  for (let word = 0; word < Number(head.text.slice(1)); word += 1) {
    const length = lineAt(bytes, end);
    if (length === undefined) return undefined;
    const from = length.end;
    end = from + Number(length.text.slice(1)) + 2;
    if (end > bytes.length) return undefined;
    if (word === 0) name = bytes.toString('latin1', from, end - 2).toUpperCase();
  }
  return { name, end };
}

function lineAt(
  bytes: Buffer,
  from: number,
): { readonly text: string; readonly end: number } | undefined {
  const end = bytes.indexOf('\r\n', from);
  return end < 0 ? undefined : { text: bytes.toString('latin1', from, end), end: end + 2 };
}
