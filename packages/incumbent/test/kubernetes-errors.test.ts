import { describe, expect, test } from 'vitest';
import { Refusals } from '../src/backends/kubernetes/errors.ts';
import { StoreUnavailableError, StoreUnsuitableError } from '../src/base/errors.ts';

function refusal(status: number, details: object = {}) {
  return {
    status,
    body: { kind: 'Status', message: 'what the server says', code: status, details },
    text: '',
  };
}

describe('a refusal of the API server', () => {
  test.each([
    // The answers of a server that has just started, about groups that it does not know yet.
    [400, {}],
    [401, {}],
    [403, {}],
    [404, {}],
    [404, { kind: 'namespaces', name: 'default' }],
    [405, {}],
  ])('%d %j is final only where that call never was allowed', (status, details) => {
    const refusals = new Refusals('https://k8s', 'default');
    const errorOf = (verb: 'get' | 'update') => refusals.error(verb, refusal(status, details));
    expect(errorOf('get')).toBeInstanceOf(StoreUnsuitableError);
    refusals.allowed('get');
    expect(errorOf('get')).toBeInstanceOf(StoreUnavailableError);
    expect(errorOf('get').message).toContain('what the server says');
    expect(errorOf('update')).toBeInstanceOf(StoreUnsuitableError);
  });

  test('of the request itself is final at any time, and so is the end of a namespace', () => {
    const refusals = new Refusals('https://k8s', 'default');
    refusals.allowed('update');
    const ending = { causes: [{ reason: 'NamespaceTerminating' }] };
    for (const refused of [refusal(413), refusal(415), refusal(422), refusal(403, ending)]) {
      expect(refusals.error('update', refused)).toBeInstanceOf(StoreUnsuitableError);
    }
    expect(refusals.error('update', refusal(503))).toBeInstanceOf(StoreUnavailableError);
  });
});
