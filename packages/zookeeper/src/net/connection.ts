/**
 * One connection to one server: bytes out, frames in. It knows nothing of sessions.
 *
 * A plain socket reads into one buffer that is used again and again. So a frame is valid only while
 * its handler runs.
 */
import type { Socket } from 'node:net';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { HostAndPort } from '../connection-string.ts';
import { ProtocolError } from '../errors.ts';
import { FrameSplitter } from '../protocol/frames.ts';
import { MalformedError } from '../protocol/jute.ts';
import { resetSocket } from './reset.ts';
import { connectionOptions } from './secure-context.ts';
import type { CheckedTls } from './tls-options.ts';

/** An address to connect to, and the name that it was found under. */
export interface Address extends HostAndPort {
  /** The name or address in the connection string. */
  readonly name: string;
}

export interface ConnectionHandlers {
  /** Bytes may be written from now on. */
  onOpen(): void;
  /** A chunk has arrived. Its frames follow. */
  onReceive(bytes: number): void;
  /** One frame, valid during the call. May throw ProtocolError or MalformedError. */
  onFrame(bytes: Uint8Array, start: number, end: number): void;
  /** The socket takes bytes again. */
  onDrain(): void;
  /** The connection is over. Called once. */
  onClose(error: Error | undefined): void;
}

/** With so many unsent bytes the socket gets no more. */
const maxUnsentBytes = 1024 * 1024;
const readBufferBytes = 64 * 1024;

export class Connection {
  readonly #handlers: ConnectionHandlers;
  readonly #splitter: FrameSplitter;
  readonly #socket: Socket;
  /** The same socket, or the TCP socket below a TLS one. */
  readonly #tcp: Socket;
  #error: Error | undefined;
  #closed = false;

  constructor(
    address: Address,
    options: { readonly tls: CheckedTls | undefined; readonly maxFrameBytes: number },
    handlers: ConnectionHandlers,
  ) {
    this.#handlers = handlers;
    this.#splitter = new FrameSplitter(options.maxFrameBytes, (bytes, start, end) =>
      handlers.onFrame(bytes, start, end),
    );
    if (options.tls === undefined) {
      const buffer = new Uint8Array(readBufferBytes);
      this.#tcp = connectTcp({
        host: address.host,
        port: address.port,
        noDelay: true,
        keepAlive: true,
        onread: {
          buffer,
          callback: (length) => {
            this.#receive(buffer, length);
            return true;
          },
        },
      });
      this.#socket = this.#tcp;
      this.#socket.on('connect', () => this.#opened());
    } else {
      [this.#socket, this.#tcp] = openSocket(address, options.tls, () => this.#opened());
      this.#socket.on('data', (chunk: Uint8Array) => this.#receive(chunk, chunk.length));
    }
    this.#socket.on('drain', () => {
      if (!this.#closed) handlers.onDrain();
    });
    this.#socket.on('error', (error) => this.destroy(explainTls(error, options.tls)));
    // A server that ends its side has closed the connection for good.
    this.#socket.on('end', () => this.destroy(undefined));
    this.#socket.on('close', () => this.destroy(undefined));
  }

  /** @returns false if no more should follow before `onDrain` */
  write(bytes: Uint8Array, done: () => void): boolean {
    this.#socket.write(bytes, done);
    return this.#socket.writableLength < maxUnsentBytes;
  }

  /**
   * Ends the connection at once; `onClose` is called before this returns. Idempotent. The
   * connection is reset. Otherwise bytes that the kernel has not sent yet would arrive when the
   * network is back, after this client has given the session up.
   */
  destroy(error: Error | undefined): void {
    if (this.#closed) return;
    this.#close(error);
    resetSocket(this.#tcp);
    this.#socket.destroy();
    this.#handlers.onClose(this.#error);
  }

  /** Ends the connection after the server has closed the session: there is nothing left to send. */
  end(): void {
    if (this.#closed) return;
    this.#close(undefined);
    this.#socket.destroy();
    this.#handlers.onClose(undefined);
  }

  #close(error: Error | undefined): void {
    this.#closed = true;
    this.#error ??= error;
    this.#splitter.end();
  }

  #opened(): void {
    if (!this.#closed) this.#handlers.onOpen();
  }

  #receive(bytes: Uint8Array, length: number): void {
    if (this.#closed) return;
    this.#handlers.onReceive(length);
    try {
      this.#splitter.push(bytes, length);
    } catch (error) {
      this.destroy(
        error instanceof MalformedError ? new ProtocolError(error.message) : (error as Error),
      );
    }
  }
}

/**
 * @param onOpen called when bytes may be written: with TLS, after its handshake
 * @returns the socket to use, and its TCP socket, which differs with TLS
 */
export function openSocket(
  { host, port, name }: Address,
  tls: CheckedTls | undefined,
  onOpen: () => void,
): [socket: Socket, tcp: Socket] {
  const tcp = connectTcp({ host, port, noDelay: true, keepAlive: true });
  if (tls === undefined) {
    tcp.on('connect', onOpen);
    return [tcp, tcp];
  }
  // Its errors come out of the TLS socket, too.
  tcp.on('error', () => {});
  try {
    return [connectTls({ socket: tcp, ...connectionOptions(tls, name) }, onOpen), tcp];
  } catch (error) {
    tcp.destroy();
    throw error;
  }
}

/** A TLS alert is the server's verdict on this client. OpenSSL's text does not say so. */
function explainTls(
  error: Error & { readonly code?: string; readonly reason?: string },
  tls: CheckedTls | undefined,
): Error {
  const { code, reason } = error;
  if (code?.startsWith('ERR_SSL_') !== true || reason?.includes('alert') !== true) return error;
  // Servers name the reason in many ways. If they ask for a certificate, it is mostly this one.
  const lacking = tls?.hasCertificate === false ? ' (we have shown no certificate: tls.cert)' : '';
  return new Error(`the server refuses our side of TLS: ${reason}${lacking}`, { cause: error });
}
