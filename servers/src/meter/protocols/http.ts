import type { Reader } from '../protocols.ts';
import { Pieces } from './pieces.ts';

const endOfHead = '\r\n\r\n';

/** HTTP/1.1 with a `content-length`. */
export function httpRequests(): Reader {
  const pieces = new Pieces();
  return {
    read(chunk) {
      pieces.add(chunk);
      const requests: string[] = [];
      for (;;) {
        const bytes = pieces.present;
        const end = bytes.indexOf(endOfHead);
        if (end < 0) return { requests, speaks: true };
        const head = bytes.toString('latin1', 0, end);
        const [, method, path] = /^([A-Z]+) (\S+) HTTP\/1\.1\r\n/.exec(`${head}\r\n`) ?? [];
        if (method === undefined || path === undefined) throw new Error('no request of HTTP/1.1');
        const body = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
        const size = end + endOfHead.length + body;
        if (bytes.length < size) return { requests, speaks: true };
        requests.push(/[?&]watch=(1|true)\b/.test(path) ? 'WATCH' : method);
        pieces.drop(size);
      }
    },
  };
}
