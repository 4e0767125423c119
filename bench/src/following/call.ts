/** The method that is called over gRPC: its question is empty, its answer is `Served` as JSON. */
import type { Served } from './messages.ts';

interface Definition {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: false;
  readonly requestSerialize: (question: string) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => string;
  readonly responseSerialize: (served: Served) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Served;
}

const definition = (path: string): Definition => ({
  path,
  requestStream: false,
  responseStream: false,
  requestSerialize: (question) => Buffer.from(question),
  requestDeserialize: (bytes) => bytes.toString(),
  responseSerialize: (served) => Buffer.from(JSON.stringify(served)),
  responseDeserialize: (bytes) => JSON.parse(bytes.toString()) as Served,
});

/** `open` is served by whoever is asked. */
export const calls: { readonly led: Definition; readonly open: Definition } = {
  led: definition('/incumbent.bench.Following/Led'),
  open: definition('/incumbent.bench.Following/Open'),
};
