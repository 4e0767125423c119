import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { AuthError, ProtocolError } from '../src/errors.ts';
import { answerChallenge, checkConfirmation } from '../src/session/sasl-digest-md5.ts';

const chris = { username: 'chris', password: 'secret' };
const realm = 'elwood.innosoft.com';
const nonce = 'OA6MG9tEQGm2hh';
const cnonce = 'OA6MHXh6VqTrRk';
const bytes = (text: string) => Buffer.from(text);
const challenge = bytes(
  `realm="${realm}",nonce="${nonce}",qop="auth",algorithm=md5-sess,charset=utf-8`,
);

/** The response of RFC 2831, 2.1.2.1, implemented a second time. */
function responseOf(user: { username: string; password: string }, where: string, method: string) {
  const hash = (data: string | Buffer) => createHash('md5').update(data);
  const secret = hash(`${user.username}:${realm}:${user.password}`).digest();
  const a1 = Buffer.concat([secret, bytes(`:${nonce}:${cnonce}`)]);
  const a2 = hash(`${method}:${where}`).digest('hex');
  return hash(`${hash(a1).digest('hex')}:${nonce}:00000001:${cnonce}:auth:${a2}`).digest('hex');
}

function fieldsOf(token: Uint8Array): Record<string, string> {
  const pairs = Buffer.from(token)
    .toString()
    .split(/,(?=[a-z-]+=)/);
  return Object.fromEntries(
    pairs.map((pair) => [pair.split('=')[0], pair.slice(pair.indexOf('=') + 1)]),
  );
}

describe('DIGEST-MD5', () => {
  it('is computed as in the example of RFC 2831, which has another digest-uri', () => {
    const imap = 'imap/elwood.innosoft.com';
    expect(responseOf(chris, imap, 'AUTHENTICATE')).toBe('d388dad90d4bbd760a152321f2143af7');
    expect(responseOf(chris, imap, '')).toBe('ea40f60335c427b5527b84dbabcdfffd');
    // The same computation for ours, and the result of an independent program.
    const ours = 'zookeeper/zk-sasl-md5';
    const answer = answerChallenge(challenge, chris, cnonce);
    expect(fieldsOf(answer.token)['response']).toBe(responseOf(chris, ours, 'AUTHENTICATE'));
    expect(fieldsOf(answer.token)['response']).toBe('3d53f3e841d45c8a4dcf0f37c4725582');
    expect(answer.expected).toBe('8c55a82deadfa98cf2a60488be40c74d');
  });

  it('answers with what a server needs to compute the same', () => {
    expect(fieldsOf(answerChallenge(challenge, chris, cnonce).token)).toMatchObject({
      charset: 'utf-8',
      username: '"chris"',
      realm: `"${realm}"`,
      nonce: `"${nonce}"`,
      nc: '00000001',
      cnonce: `"${cnonce}"`,
      'digest-uri': '"zookeeper/zk-sasl-md5"',
      qop: 'auth',
    });
  });

  it('hashes as ISO 8859-1 what that has, and as UTF-8 the rest (RFC 2831, 2.1.2.1)', () => {
    const cyrillic = { username: 'jo "q" \\ ж', password: 'пароль' };
    const answer = answerChallenge(bytes('nonce="n",algorithm=md5-sess'), cyrillic, 'c');
    expect(fieldsOf(answer.token)['response']).toBe('7742062ac7ad41ea17099729705bc693');
    expect(answer.expected).toBe('6cef93a52cc472468a95ce74fe0d3839');
  });

  it('takes ÿ, the last character of ISO 8859-1, as one byte', () => {
    const bytesOf = (text: string) => createHash('md5').update(text, 'latin1').digest();
    const answer = answerChallenge(
      bytes('nonce="n",algorithm=md5-sess'),
      { username: 'ÿ', password: 'ÿ' },
      'c',
    );
    const secret = Buffer.concat([bytesOf('ÿ::ÿ'), Buffer.from(':n:c')]);
    const hash = (data: Buffer | string) => createHash('md5').update(data).digest('hex');
    const expected = hash(`${hash(secret)}:n:00000001:c:auth:${hash(':zookeeper/zk-sasl-md5')}`);
    expect(answer.expected).toBe(expected);
  });

  it('quotes what a name has of quotes and backslashes, and sends it as UTF-8', () => {
    const odd = { username: 'jo "q" \\ é', password: 'pässword' };
    const answer = answerChallenge(bytes('nonce="n",algorithm=md5-sess'), odd, 'c');
    expect(Buffer.from(answer.token).toString()).toContain('username="jo \\"q\\" \\\\ é",realm=""');
    expect(fieldsOf(answer.token)['response']).toBe('cc0cf540c2e7fb7f74c2e138e4646acc');
    expect(answer.expected).toBe('65909300b5bfb93520f3035df4f0ba37');
  });

  it('reads a challenge whose values are quoted or plain, with commas and escapes in them', () => {
    const strange = bytes('nonce="a,b\\"c",realm="x=y",algorithm="md5-sess"');
    const { token } = answerChallenge(strange, chris, cnonce);
    expect(Buffer.from(token).toString()).toContain('realm="x=y",nonce="a,b\\"c"');
  });

  it('uses a number of its own for every answer', () => {
    const [a, b] = [1, 2].map(() => fieldsOf(answerChallenge(challenge, chris).token)['cnonce']);
    expect(a).not.toBe(b);
  });

  it('says that the server has no login configured when it answers without a token', () => {
    expect(() => answerChallenge(null, chris)).toThrow(/no SASL login configured/);
  });

  it.each([
    ['null', null],
    ['nothing', bytes('')],
    ['no nonce', bytes('realm="r",algorithm=md5-sess')],
    ['another algorithm', bytes('nonce="n",algorithm=md5')],
    ['no algorithm', bytes('nonce="n"')],
    ['noise', Uint8Array.of(0xff, 0, 0x80)],
  ])('refuses a challenge with %s', (_, token) => {
    expect(() => answerChallenge(token, chris)).toThrow(ProtocolError);
  });
});

describe('the confirmation of a server', () => {
  const answer = answerChallenge(challenge, chris, cnonce);

  it('is taken when it shows that the server knows the password', () => {
    expect(() => checkConfirmation(bytes(`rspauth=${answer.expected}`), answer)).not.toThrow();
  });

  it.each([
    ['null', null],
    ['nothing', bytes('')],
    ['our own response', bytes(`rspauth=${fieldsOf(answer.token)['response']}`)],
    ['another one', bytes(`rspauth=${'0'.repeat(32)}`)],
    ['the beginning of the right one', bytes(`rspauth=${answer.expected.slice(0, 31)}`)],
    ['another field', bytes(`response=${answer.expected}`)],
  ])('is refused when it is %s', (_, token) => {
    expect(() => checkConfirmation(token, answer)).toThrow(AuthError);
  });
});
