import { selfAddresses } from 'incumbent';
import { expect, test } from 'vitest';
import { parseEndpoint } from '../src/following/grpc/addresses.ts';

test.each<[string, object]>([
  ['10.0.0.7:50051', { host: '10.0.0.7', port: 50_051 }],
  ['[2001:db8::7]:50051', { host: '2001:db8::7', port: 50_051 }],
  ['ledger.internal:1', { host: 'ledger.internal', port: 1 }],
  ['ledger', { host: 'ledger', port: 443 }],
  ['2001:db8::7', { host: '2001:db8::7', port: 443 }],
  ['[::1]', { host: '::1', port: 443 }],
  ['unix:/run/ledger.sock', { path: '/run/ledger.sock' }],
  ['unix:///run/ledger.sock', { path: '/run/ledger.sock' }],
  ['unix:ledger.sock', { path: 'ledger.sock' }],
])('%s is an address', (text, address) => {
  expect(parseEndpoint(text)).toEqual(address);
});

test.each([
  '',
  ':50051',
  'ledger:0',
  'ledger:65536',
  'ledger:https',
  'ledger:1:2',
  '[::1',
  '[::1]x',
  'http://10.0.0.7:80',
  '10.0.0.7:80/path',
  'user@host:80',
  'unix:',
  'two words:80',
])('"%s" is none', (text) => {
  expect(parseEndpoint(text)).toBeUndefined();
});

test('every address that a host has for others is one', () => {
  for (const address of selfAddresses(50_051)) {
    expect(parseEndpoint(address)).toMatchObject({ port: 50_051 });
  }
});
