import type {
  GrpcCall,
  GrpcCallOptions,
  GrpcClient,
  GrpcError,
  GrpcMetadata,
  GrpcStream,
} from '../../src/backends/etcd/index.ts';
import type { Method } from '../../src/backends/etcd/methods.ts';

type Answer = (error: GrpcError | null, response?: Uint8Array) => void;

/** A unary call that was made, and can be answered. */
export interface FakeCall {
  readonly path: string;
  readonly request: Uint8Array;
  readonly options: GrpcCallOptions;
  readonly metadata: FakeMetadata | undefined;
  readonly answer: Answer;
  isCancelled: boolean;
}

export class FakeMetadata implements GrpcMetadata {
  readonly values: Map<string, string> = new Map();

  set(key: string, value: string): void {
    this.values.set(key, value);
  }
}

/** A stream in both directions, from the side of the server. */
export class FakeStream implements GrpcStream {
  readonly path: string;
  /** That it was opened with. */
  readonly token: string | undefined;
  readonly written: Uint8Array[] = [];
  isCancelled = false;
  readonly #listeners: Map<string, (value: never) => void> = new Map();

  constructor(path: string, metadata: FakeMetadata | undefined) {
    this.path = path;
    this.token = metadata?.values.get('token');
  }

  write(message: Uint8Array): void {
    this.written.push(message);
  }

  on(event: string, listener: (value: never) => void): void {
    this.#listeners.set(event, listener);
  }

  cancel(): void {
    this.isCancelled = true;
  }

  send<Response>(method: Method<unknown, Response>, response: Partial<Response>): void {
    this.sendBytes(method.response.encode(response));
  }

  sendBytes(bytes: Uint8Array): void {
    this.#listeners.get('data')?.(bytes as never);
  }

  fail(error: GrpcError): void {
    this.#listeners.get('error')?.(error as never);
  }
}

/** A gRPC client without a network: every call waits until the test answers it. */
export class FakeGrpc implements GrpcClient {
  readonly calls: FakeCall[] = [];
  readonly streams: FakeStream[] = [];
  isClosed = false;
  /** Answers calls at once. Undefined: they wait. */
  onCall: ((call: FakeCall) => void) | undefined;

  makeUnaryRequest(
    path: string,
    serialize: (bytes: Uint8Array) => Uint8Array,
    ...rest: unknown[]
  ): GrpcCall {
    this.#requireOpen();
    const answer = rest.at(-1) as Answer;
    const metadata = rest.length === 5 ? (rest[2] as FakeMetadata) : undefined;
    const call: FakeCall = {
      path,
      request: serialize(rest[1] as Uint8Array),
      options: rest.at(-2) as GrpcCallOptions,
      metadata,
      answer,
      isCancelled: false,
    };
    this.calls.push(call);
    this.onCall?.(call);
    return {
      cancel: () => {
        call.isCancelled = true;
      },
    };
  }

  makeBidiStreamRequest(path: string, ...rest: unknown[]): GrpcStream {
    this.#requireOpen();
    const stream = new FakeStream(path, rest.length === 4 ? (rest[2] as FakeMetadata) : undefined);
    this.streams.push(stream);
    return stream;
  }

  #requireOpen(): void {
    if (this.isClosed) throw new Error('Channel has been shut down');
  }
}

export function grpcError(code: number, details: string): GrpcError {
  return Object.assign(new Error(`${code} ${details}`), { code, details });
}
