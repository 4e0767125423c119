import { describe, expect, test } from 'vitest';
import { whyNotOurs, whyNotSteered } from '../../src/web/access.ts';

describe('the name under which a page is opened', () => {
  const refused = (host: string | undefined) =>
    whyNotOurs({ headers: host === undefined ? {} : { host } })?.status;

  test.each(['127.0.0.1:80', 'localhost:8080', 'LOCALHOST', '[::1]:9', '10.0.0.7', '[fe80::1]'])(
    '%s is ours',
    (host) => expect(refused(host)).toBeUndefined(),
  );
  test.each([
    'elsewhere.example',
    'localhost.elsewhere.example:80',
    '127.0.0.1.nip.example',
    '',
    undefined,
  ])('%s is not: somebody else may have led that name here', (host) =>
    expect(refused(host)).toBe(421),
  );
  test('a name that was given is ours', () => {
    const names = new Set(['ops.example']);
    expect(whyNotOurs({ headers: { host: 'ops.example:80' } }, names)).toBeUndefined();
  });
});

describe('a request that would change something', () => {
  const good = {
    host: '127.0.0.1:80',
    'content-type': 'application/json',
    'x-incumbent-token': 'secret',
  };
  const status = (change: object, method = 'POST') =>
    whyNotSteered({ method, headers: { ...good, ...change } }, 'http', 'secret')?.status;

  test('passes with the token, from no page or from our own', () => {
    expect(status({})).toBeUndefined();
    expect(
      status({ origin: 'http://127.0.0.1:80', 'sec-fetch-site': 'same-origin' }),
    ).toBeUndefined();
  });
  test.each([
    ['another method', {}, 'GET', 405],
    ['another origin', { origin: 'http://127.0.0.1:81' }, 'POST', 403],
    ['the same host by TLS', { origin: 'https://127.0.0.1:80' }, 'POST', 403],
    ['an origin that is hidden', { origin: 'null' }, 'POST', 403],
    ['a page beside ours', { 'sec-fetch-site': 'same-site' }, 'POST', 403],
    ['a form', { 'content-type': 'text/plain' }, 'POST', 415],
    ['no token', { 'x-incumbent-token': undefined }, 'POST', 403],
    ['a part of the token', { 'x-incumbent-token': 'secre' }, 'POST', 403],
    ['another token', { 'x-incumbent-token': 'secreT' }, 'POST', 403],
  ] as const)('is refused: %s', (_what, change, method, wanted) => {
    expect(status(change, method)).toBe(wanted);
  });
});
