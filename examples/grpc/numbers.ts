/** The service. In your code this is what is generated of a .proto file. */
import type { MethodDefinition } from '@grpc/grpc-js';

const encode = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const decode = (bytes: Buffer): unknown => JSON.parse(bytes.toString());

/** The next number of a series. */
const next: MethodDefinition<unknown, unknown> = {
  path: '/invoices.Numbers/Next',
  requestStream: false,
  responseStream: false,
  requestSerialize: encode,
  requestDeserialize: decode,
  responseSerialize: encode,
  responseDeserialize: decode,
};

export const numbers: { next: typeof next } = { next };
