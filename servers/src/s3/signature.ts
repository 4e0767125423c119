/** Signature version 4, as a server checks it. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export interface Signed {
  readonly accessKey: string;
  readonly region: string;
  /** Of the request, as it was sent. */
  readonly sentMs: number;
  isSignedBy(secretKey: string): boolean;
}

const form =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;

/** @returns undefined when it is not signed in this way */
export function signatureOf(request: IncomingMessage): Signed | undefined {
  const match = form.exec(request.headers.authorization ?? '');
  if (match === null) return undefined;
  const [, accessKey = '', day = '', region = '', names = '', signature = ''] = match;
  const { headers } = request;
  const date = String(headers['x-amz-date'] ?? '');
  const [path = '', query = ''] = (request.url ?? '/').split('?');
  const canonical = [
    request.method ?? '',
    path,
    query.split('&').sort().join('&'),
    ...names.split(';').map((name) => `${name}:${String(headers[name] ?? '').trim()}`),
    '',
    names,
    String(headers['x-amz-content-sha256'] ?? ''),
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha256(canonical)}`;
  return {
    accessKey,
    region,
    sentMs: Date.parse(
      date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
    ),
    isSignedBy(secretKey) {
      const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
        (from, part) => createHmac('sha256', from).update(part).digest(),
        `AWS4${secretKey}`,
      );
      const expected = createHmac('sha256', key).update(text).digest();
      return timingSafeEqual(expected, Buffer.from(signature, 'hex'));
    },
  };
}

export function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}
