import * as grpc14 from '@grpc/grpc-js';
import * as grpc13 from 'grpc-js-1.13';
import { expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { carryKnownToken, requireLeadership } from '../src/grpc/index.ts';
import { createElection } from '../src/index.ts';

// What is checked here is checked by the compiler: both versions' own types take what we return.
test('interceptors have the types of the module that was given', () => {
  const election = createElection({ name: 'billing', backend: memory() });
  const options = { election, term: () => undefined };
  const server14: grpc14.ServerInterceptor = requireLeadership(grpc14, options);
  const server13: grpc13.ServerInterceptor = requireLeadership(grpc13, options);
  const client14: grpc14.Interceptor = carryKnownToken(grpc14, election);
  const client13: grpc13.Interceptor = carryKnownToken(grpc13, election);
  for (const each of [server14, server13, client14, client13]) expect(each).toBeTypeOf('function');
});
