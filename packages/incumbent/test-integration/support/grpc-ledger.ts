/** A small gRPC service of ours, without a schema, on either version of grpc-js. */
import { once } from 'node:events';
import * as grpc14 from '@grpc/grpc-js';
import * as grpc13 from 'grpc-js-1.13';

export type Grpc = typeof grpc14;

/** 1.13 has the same surface as far as the tests use it. */
export const versions: readonly (readonly [string, Grpc])[] = [
  ['1.14', grpc14],
  ['1.13', grpc13 as unknown as Grpc],
];

const json = {
  requestSerialize: (value: unknown) => Buffer.from(JSON.stringify(value)),
  requestDeserialize: (bytes: Buffer): unknown => JSON.parse(bytes.toString()),
  responseSerialize: (value: unknown) => Buffer.from(JSON.stringify(value)),
  responseDeserialize: (bytes: Buffer): unknown => JSON.parse(bytes.toString()),
};

function method(name: string, requestStream: boolean, responseStream: boolean) {
  return { path: `/test.Ledger/${name}`, requestStream, responseStream, ...json };
}

export const ledger = {
  Read: method('Read', false, false),
  Follow: method('Follow', false, true),
  Collect: method('Collect', true, false),
  Talk: method('Talk', true, true),
} as const;

export interface LedgerServer {
  readonly address: string;
  readonly server: grpc14.Server;
  close(): Promise<void>;
}

/** Listens on a free port of loopback. */
export async function serve(
  grpc: Grpc,
  handlers: grpc14.UntypedServiceImplementation,
  interceptors: readonly grpc14.ServerInterceptor[] = [],
  address = '127.0.0.1:0',
): Promise<LedgerServer> {
  const server = new grpc.Server({ interceptors: [...interceptors] });
  const given = Object.entries(ledger).filter(([name]) => name in handlers);
  server.addService(Object.fromEntries(given), handlers);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    address: `127.0.0.1:${port}`,
    server,
    close: async () => server.forceShutdown(),
  };
}

export interface Answer {
  readonly value: unknown;
  /** The metadata of the response. Undefined if none came. */
  readonly metadata: grpc14.Metadata | undefined;
  /** `OK`, or why it failed. */
  readonly status: grpc14.StatusObject;
}

/** A unary call, as an answer in every case. */
export async function read(
  grpc: Grpc,
  client: grpc14.Client,
  options: {
    readonly waitForReady?: boolean;
    readonly deadlineMs?: number;
    readonly metadata?: grpc14.Metadata;
    readonly value?: unknown;
  } = {},
): Promise<Answer> {
  const metadata = options.metadata ?? new grpc.Metadata();
  if (options.waitForReady !== undefined) {
    metadata.setOptions({ waitForReady: options.waitForReady });
  }
  const { path, requestSerialize, responseDeserialize } = ledger.Read;
  let value: unknown;
  let received: grpc14.Metadata | undefined;
  const call = client.makeUnaryRequest(
    path,
    requestSerialize,
    responseDeserialize,
    options.value ?? {},
    metadata,
    { deadline: Date.now() + (options.deadlineMs ?? 60_000) },
    (_error, answer) => {
      value = answer;
    },
  );
  call.on('metadata', (arrived) => {
    received = arrived;
  });
  const [status] = (await once(call, 'status')) as [grpc14.StatusObject];
  return { value, metadata: received, status };
}
