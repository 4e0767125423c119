/**
 * SASL DIGEST-MD5 (RFC 2831) as ZooKeeper's servers use it. The server challenges with a realm and
 * a nonce, and the client answers with a digest. With `rspauth` the server proves that it knows the
 * password, too. The host part of the digest-uri is always the server's "host name", `zk-sasl-md5`.
 */
import { createHash, randomBytes } from 'node:crypto';
import { AuthError, ProtocolError } from '../errors.ts';

const digestUri = 'zookeeper/zk-sasl-md5';

export interface DigestAnswer {
  readonly token: Uint8Array;
  /** The value that the server's confirmation must have. */
  readonly expected: string;
}

/** @throws ProtocolError if the challenge is none of DIGEST-MD5 */
export function answerChallenge(
  challenge: Uint8Array | null,
  user: { readonly username: string; readonly password: string },
  cnonce: string = randomBytes(16).toString('hex'),
): DigestAnswer {
  if (challenge === null) {
    throw new ProtocolError('the server has no SASL login configured: it answers without a token');
  }
  const fields = parseFields(challenge);
  const nonce = fields.get('nonce');
  if (nonce === undefined || fields.get('algorithm') !== 'md5-sess') {
    throw new ProtocolError('the SASL challenge of the server is not one of DIGEST-MD5');
  }
  const realm = fields.get('realm') ?? '';
  const count = '00000001';
  const parts = [user.username, realm, user.password].map(hashed);
  const secret = createHash('md5').update(joinWithColons(parts)).digest();
  const a1 = createHash('md5')
    .update(Buffer.concat([secret, Buffer.from(`:${nonce}:${cnonce}`)]))
    .digest('hex');
  const responseFor = (method: string): string => {
    const a2 = md5(`${method}:${digestUri}`);
    return md5(`${a1}:${nonce}:${count}:${cnonce}:auth:${a2}`);
  };
  const answer = [
    'charset=utf-8',
    `username=${quote(user.username)}`,
    `realm=${quote(realm)}`,
    `nonce=${quote(nonce)}`,
    `nc=${count}`,
    `cnonce=${quote(cnonce)}`,
    `digest-uri=${quote(digestUri)}`,
    `response=${responseFor('AUTHENTICATE')}`,
    'qop=auth',
  ].join(',');
  return { token: Buffer.from(answer), expected: responseFor('') };
}

/** @throws AuthError unless the server has proved that it knows the password */
export function checkConfirmation(token: Uint8Array | null, answer: DigestAnswer): void {
  if (parseFields(token).get('rspauth') === answer.expected) return;
  throw new AuthError('AUTH_FAILED', 'sasl: the server does not know our password');
}

function parseFields(token: Uint8Array | null): Map<string, string> {
  const text = Buffer.from(token ?? []).toString('utf8');
  const fields = new Map<string, string>();
  for (const [, key, quoted, plain] of text.matchAll(
    /([a-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))/gi,
  )) {
    fields.set(key as string, quoted?.replace(/\\(.)/g, '$1') ?? (plain as string));
  }
  return fields;
}

/** RFC 2831, 2.1.2.1: in ISO 8859-1 if that has all the characters, otherwise in UTF-8. */
function hashed(text: string): Buffer {
  const fits = [...text].every((character) => (character.codePointAt(0) as number) <= 0xff);
  return Buffer.from(text, fits ? 'latin1' : 'utf8');
}

function joinWithColons(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part, i) => (i === 0 ? [part] : [Buffer.from(':'), part])));
}

function quote(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
