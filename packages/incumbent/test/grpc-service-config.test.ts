import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { parseServiceConfig } from '../src/following/grpc/service-config.ts';

// grpc-js's own reading of a channel's service config. It is not part of its public API.
const { validateServiceConfig } = createRequire(import.meta.url)(
  '@grpc/grpc-js/build/src/service-config.js',
) as { validateServiceConfig(json: unknown): unknown };

const retryPolicy = {
  maxAttempts: 4,
  initialBackoff: '0.1s',
  maxBackoff: '1s',
  backoffMultiplier: 2,
  retryableStatusCodes: ['UNAVAILABLE', 'aborted', 14],
};
const name = [{ service: 'test.Ledger' }];

function method(fields: object): object {
  return { methodConfig: [{ name, ...fields }] };
}

const good: readonly (readonly [string, object])[] = [
  ['nothing', {}],
  ['a retry policy', method({ retryPolicy })],
  ['a hedging policy', method({ hedgingPolicy: { maxAttempts: 2, hedgingDelay: '1s' } })],
  ['waiting for ready', method({ waitForReady: true })],
  ['a timeout', method({ timeout: '5s' })],
  ['sizes', method({ maxRequestBytes: 0, maxResponseBytes: 1000 })],
  ['names', { methodConfig: [{ name: [{}, { service: 'a' }, { service: 'a', method: 'b' }] }] }],
  ['balancing', { loadBalancingConfig: [{ round_robin: {} }, { pick_first: {} }] }],
  ['throttling', { retryThrottling: { maxTokens: 10, tokenRatio: 0.1 } }],
];

const bad: readonly (readonly [string, unknown, RegExp])[] = [
  ['two policies in one', { loadBalancingConfig: [{ a: {}, b: {} }] }, /exactly one policy/],
  ['a policy without a name', { loadBalancingConfig: [{}] }, /exactly one policy/],
  ['no list of policies', { loadBalancingConfig: {} }, /loadBalancingConfig must be a list/],
  ['no names', { methodConfig: [{}] }, /name must be a list/],
  ['a number for a service', { methodConfig: [{ name: [{ service: 1 }] }] }, /are strings/],
  ['a method of no service', { methodConfig: [{ name: [{ method: 'a' }] }] }, /needs a service/],
  ['a name twice', { methodConfig: [{ name: [{}, {}] }] }, /"\/" is configured twice/],
  ['waiting as text', method({ waitForReady: 'yes' }), /true or false/],
  ['a timeout as a number', method({ timeout: 5 }), /timeout is a duration/],
  ['a timeout in ms', method({ timeout: '5ms' }), /timeout is a duration/],
  ['a size as text', method({ maxRequestBytes: '1' }), /maxRequestBytes cannot be "1"/],
  ['both policies', method({ retryPolicy, hedgingPolicy: { maxAttempts: 2 } }), /not both/],
  ['one attempt', method({ retryPolicy: { ...retryPolicy, maxAttempts: 1 } }), /maxAttempts/],
  ['no back-off', method({ retryPolicy: { ...retryPolicy, initialBackoff: 1 } }), /initialBackoff/],
  [
    'no code',
    method({ retryPolicy: { ...retryPolicy, retryableStatusCodes: [] } }),
    /not be empty/,
  ],
  [
    'a code that is none',
    method({ retryPolicy: { ...retryPolicy, retryableStatusCodes: ['GONE'] } }),
    /"GONE" is no status code/,
  ],
  ['too many tokens', { retryThrottling: { maxTokens: 1001, tokenRatio: 1 } }, /maxTokens cannot/],
];

describe('a service config', () => {
  test.each(good)('with %s is what grpc-js makes of it', (_what, config) => {
    expect(parseServiceConfig(JSON.stringify(config))).toEqual(validateServiceConfig(config));
  });

  test.each(bad)('with %s is refused, as grpc-js does', (_what, config, message) => {
    expect(() => parseServiceConfig(JSON.stringify(config))).toThrow(message);
    expect(() => validateServiceConfig(config)).toThrow();
  });

  test.each(['', 'null', '[]', '"x"', '{"methodConfig":1}', '{'])('is not %s', (text) => {
    expect(() => parseServiceConfig(text)).toThrow();
  });

  test('may have fractions of seconds', () => {
    const parsed = parseServiceConfig(JSON.stringify(method({ timeout: '0.25s' })));
    expect(parsed.methodConfig).toEqual([{ name, timeout: { seconds: 0, nanos: 250_000_000 } }]);
  });
});
