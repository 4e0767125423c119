import { createRequire } from 'node:module';
import * as grpc14 from '@grpc/grpc-js';
import * as grpc13 from 'grpc-js-1.13';
import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import type { GrpcModule, LeaderResolverOptions } from '../src/following/grpc/index.ts';
import {
  carryKnownToken,
  registerLeaderResolver,
  requireLeadership,
} from '../src/following/grpc/index.ts';
import { authorityOf } from '../src/following/grpc/resolver.ts';
import { createElection } from '../src/index.ts';

const backend = memory();
const billing = createElection({ name: 'billing', backend });
const ledger = createElection({ name: 'ledger/é', backend });
const options = { election: billing, term: () => undefined };

// Compiling is half of this test: the types of both versions accept our interceptors.
test('interceptors have the types of the module that was given', () => {
  const server14: grpc14.ServerInterceptor = requireLeadership(grpc14, options);
  const server13: grpc13.ServerInterceptor = requireLeadership(grpc13, options);
  const client14: grpc14.Interceptor = carryKnownToken(grpc14, billing);
  const client13: grpc13.Interceptor = carryKnownToken(grpc13, billing);
  for (const each of [server14, server13, client14, client13]) expect(each).toBeTypeOf('function');
});

test.each<[string, unknown, RegExp]>([
  ['no options', undefined, /takes options, not undefined/],
  ['an unknown one', { elections: billing, adresses: 1 }, /no option "adresses"; it knows elec/],
  ['no election', {}, /elections is an election, or \{ name: election \}, not undefined/],
  ['none at all', { elections: {} }, /elections is an election/],
  ['a name without an election', { elections: { billing: 'x' } }, /elections\["billing"\] must/],
  ['an election without a name', { elections: { '': billing } }, /elections\[""\] must be/],
  ['no function', { elections: billing, addressesOf: 'x' }, /addressesOf must be a function/],
  ['no listener', { elections: billing, onTrouble: 1 }, /onTrouble must be a function, not 1/],
  ['a wrong word', { elections: billing, whileUnknown: 'drop' }, /"keep" or "refuse", not "drop"/],
])('registerLeaderResolver refuses %s', (_what, given, message) => {
  expect(() => registerLeaderResolver(grpc14, given as LeaderResolverOptions)).toThrow(message);
  // Nothing was registered: a good one goes through.
  registerLeaderResolver(grpc14, { elections: billing }).close();
});

test.each<[string, unknown, RegExp]>([
  ['nothing', undefined, /the first argument is the module @grpc\/grpc-js/],
  ['something else', { Metadata: 1 }, /the first argument is the module/],
  ['an older one', { ...grpc14, experimental: {} }, /no experimental\.registerResolver, .*1\.13/],
])('registerLeaderResolver refuses %s for grpc-js', (_what, module, message) => {
  expect(() => registerLeaderResolver(module as GrpcModule, { elections: billing })).toThrow(
    message,
  );
});

test('one copy of grpc-js is one, however it was loaded', () => {
  const required = createRequire(import.meta.url)('@grpc/grpc-js') as typeof grpc14;
  expect(required).not.toBe(grpc14);
  const handles = [
    registerLeaderResolver(grpc14, { elections: billing }),
    registerLeaderResolver(required, { elections: ledger }),
  ];
  const insecure = grpc14.credentials.createInsecure();
  for (const name of ['billing', 'ledger%2F%C3%A9']) {
    new grpc14.Channel(`incumbent:///${name}`, insecure, {}).close();
  }
  for (const handle of handles) handle.close();
});

describe.each([
  ['1.14', grpc14],
  ['1.13', grpc13 as unknown as typeof grpc14],
])('targets on grpc-js %s', (_version, grpc) => {
  const open = (target: string, channelOptions: grpc14.ChannelOptions = {}) =>
    new grpc.Channel(target, grpc.credentials.createInsecure(), channelOptions);
  const refused = (target: string, message: RegExp) => {
    expect(() => open(target)).toThrow(message);
  };
  const accepted = (target: string) => open(target).close();

  test('with one election its name may be left out, and leaderelection may say anything (V17)', () => {
    const handle = registerLeaderResolver(grpc, { elections: billing });
    for (const target of [
      'incumbent:///billing',
      'incumbent:billing',
      'incumbent:///',
      'leaderelection:///billing',
      'leaderelection:///ledger.internal',
      'leaderelection:x',
    ]) {
      accepted(target);
    }
    refused(
      'incumbent:///biling',
      /incumbent:\/\/\/biling names no election.*registered: "billing"/,
    );
    handle.close();
  });

  test('with several the name says which', () => {
    const handle = registerLeaderResolver(grpc, { elections: { billing, 'le dger': ledger } });
    accepted('incumbent:///billing');
    accepted('leaderelection:///le%20dger');
    accepted('incumbent:///le%20dger');
    refused('incumbent:///', /names no election.*registered: "billing", "le dger"/);
    refused('leaderelection:///x', /names no election/);
    handle.close();
    refused('incumbent:///billing', /none is registered/);
  });

  test('a name is registered once, and free again after close', () => {
    const handle = registerLeaderResolver(grpc, { elections: ledger });
    accepted('incumbent:///ledger%2F%C3%A9');
    expect(() => registerLeaderResolver(grpc, { elections: { 'ledger/é': billing } })).toThrow(
      /for election "ledger\/é" is registered already/,
    );
    const other = registerLeaderResolver(grpc, { elections: billing });
    handle.close();
    handle.close();
    const again = registerLeaderResolver(grpc, { elections: ledger });
    // A handle that was closed before takes nothing from later ones.
    handle.close();
    accepted('incumbent:///ledger%2F%C3%A9');
    again[Symbol.dispose]();
    other.close();
  });

  test('a service config of the channel that nothing can be made of is refused', () => {
    const handle = registerLeaderResolver(grpc, { elections: billing });
    const config = JSON.stringify({ methodConfig: [{ name: [{}], timeout: 5 }] });
    expect(() => open('incumbent:///', { 'grpc.service_config': config })).toThrow(/timeout/);
    handle.close();
  });
});

test.each([
  ['billing', 'billing'],
  ['ledger.internal', 'ledger.internal'],
  ['ledger.internal:443', 'ledger.internal:443'],
  ['ledger_2', 'ledger_2'],
  ['le dger/é%', 'le-dger---'],
  ['jobs.5', 'jobs-5'],
  ['5', '5'],
  ['99999999999', '99999999999-'],
  ['xn--', 'incumbent'],
  ['[::1]:5', '---1--5'],
  ['é', '-'],
])('servers see election "%s" as host "%s"', (name, host) => {
  const authority = authorityOf(name);
  expect(() => new URL(`http://${authority}`)).not.toThrow();
  expect(authority).toBe(host);
});

test.each<[string, unknown, RegExp]>([
  ['no options', null, /requireLeadership takes options, not null/],
  ['an unknown one', { ...options, terms: 1 }, /no option "terms"; it knows election, term/],
  ['no election', { term: () => undefined }, /election must be what createElection returns/],
  ['no function', { election: billing, term: {} }, /term must be a function/],
  ['no methods', { ...options, exempt: 'Health' }, /exempt is a list of methods or a function/],
  [
    'half a method',
    { ...options, repeatable: ['/Get'] },
    /repeatable: methods are written "\/pack/,
  ],
])('requireLeadership refuses %s', (_what, given, message) => {
  expect(() => requireLeadership(grpc14, given as typeof options)).toThrow(message);
});
