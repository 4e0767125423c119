import type { Codec } from './jute.ts';
import { boolean, buffer, int32, int64, record } from './jute.ts';

/**
 * The first message of a connection. It has no header, and 45 bytes with a password of 16 bytes.
 */
export interface ConnectRequest {
  /** Always 0. */
  readonly protocolVersion: number;
  /** The server closes the connection without a reply if it has not seen this transaction. */
  readonly lastZxidSeen: bigint;
  /** The session timeout that the client asks for, in ms. */
  readonly timeoutMs: number;
  /** 0 asks for a new session. */
  readonly sessionId: bigint;
  /** 16 bytes. */
  readonly password: Uint8Array | null;
  /** Whether a server without a quorum may answer. Servers before 3.4 do not know this byte. */
  readonly readOnly: boolean;
}

export const connectRequest: Codec<ConnectRequest> = withOptionalReadOnly<ConnectRequest>(
  record<Omit<ConnectRequest, 'readOnly'>>({
    protocolVersion: int32,
    lastZxidSeen: int64,
    timeoutMs: int32,
    sessionId: int64,
    password: buffer,
  }),
);

/** The answer to a ConnectRequest. It has no header. */
export interface ConnectResponse {
  readonly protocolVersion: number;
  /** The granted session timeout in ms; 0 or less: the session has expired. */
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Uint8Array | null;
  /** Whether the server has no quorum and refuses writes. */
  readonly readOnly: boolean;
}

export const connectResponse: Codec<ConnectResponse> = withOptionalReadOnly<ConnectResponse>(
  record<Omit<ConnectResponse, 'readOnly'>>({
    protocolVersion: int32,
    timeoutMs: int32,
    sessionId: int64,
    password: buffer,
  }),
);

/** The last byte came with 3.4. Either side may leave it out. */
function withOptionalReadOnly<T extends { readonly readOnly: boolean }>(
  fixed: Codec<Omit<T, 'readOnly'>>,
): Codec<T> {
  return {
    minBytes: fixed.minBytes,
    read(reader) {
      const value = fixed.read(reader);
      return { ...value, readOnly: reader.remaining > 0 ? boolean.read(reader) : false } as T;
    },
    write(writer, value) {
      fixed.write(writer, value);
      boolean.write(writer, value.readOnly);
    },
  };
}
