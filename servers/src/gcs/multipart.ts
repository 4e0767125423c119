import { invalid } from './refusal.ts';

/** Of `multipart/related`: the metadata as JSON, and the bytes. */
export interface Upload {
  readonly metadata: unknown;
  readonly bytes: Buffer;
}

export function uploadIn(contentType: string, body: Buffer): Upload {
  const boundary = /boundary="?([^";]+)"?/.exec(contentType)?.[1];
  if (boundary === undefined) throw invalid('Missing boundary of multipart/related');
  const delimiter = Buffer.from(`--${boundary}`);
  const parts: Buffer[] = [];
  let from = body.indexOf(delimiter);
  while (from >= 0) {
    const start = from + delimiter.length;
    const end = body.indexOf(delimiter, start);
    if (end < 0) break;
    // Between the line break after the delimiter and the one before the next.
    parts.push(body.subarray(start + 2, end - 2));
    from = end;
  }
  const isClosed =
    from >= 0 &&
    body
      .subarray(from + delimiter.length)
      .toString()
      .startsWith('--');
  const [metadata, bytes] = parts.map(contentOf);
  if (metadata === undefined || bytes === undefined || parts.length !== 2 || !isClosed) {
    throw invalid('Multipart must have two parts');
  }
  return { metadata: JSON.parse(metadata.toString()), bytes };
}

function contentOf(part: Buffer): Buffer {
  const end = part.indexOf('\r\n\r\n');
  if (end < 0) throw invalid('A part without an end of its header');
  return part.subarray(end + 4);
}
