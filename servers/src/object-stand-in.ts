/**
 * The common part of stand-ins for object stores: buckets, a clock of their own, the requests so
 * far, and faults.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerOptions } from 'node:https';
import { HttpStandIn } from './http-stand-in.ts';
import { Faults } from './kubernetes/faults.ts';

/** A request as it came, and how it was answered; 0: not at all. */
export interface LoggedObjectRequest {
  readonly verb: string;
  readonly bucket: string;
  readonly name: string | undefined;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
}

export abstract class ObjectStandIn<Bucket, Logged extends LoggedObjectRequest>
  implements AsyncDisposable
{
  readonly buckets: Map<string, Bucket> = new Map();
  readonly faults: Faults = new Faults();
  readonly requests: Logged[] = [];
  /** How far the server's clock is ahead. */
  clockAheadMs = 0;
  /** Tells no `Date`, as some proxies have it. */
  hidesDate = false;
  readonly #http: HttpStandIn;

  /** @param tls undefined: in clear text */
  protected constructor(tls?: ServerOptions) {
    this.#http = new HttpStandIn((request, response) => void this.serve(request, response), tls);
  }

  protected abstract serve(request: IncomingMessage, response: ServerResponse): Promise<void>;

  get port(): number {
    return this.#http.port;
  }

  /** For a client, as where its store is. */
  get url(): string {
    return this.#http.url;
  }

  /** The default one. */
  get bucket(): Bucket {
    return this.buckets.values().next().value as Bucket;
  }

  get nowMs(): number {
    return Date.now() + this.clockAheadMs;
  }

  count(verb: string): number {
    return this.requests.filter((each) => each.verb === verb).length;
  }

  /** After `stop`: on the same port, with the same objects. */
  listen(): Promise<void> {
    return this.#http.listen();
  }

  /** As if killed: connections are reset, the objects stay. */
  stop(): Promise<void> {
    return this.#http.stop();
  }

  close(): Promise<void> {
    return this.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** The note that is kept of every request, when its answer is over. */
export function exchangeOf(
  { method = '', url = '', headers }: IncomingMessage,
  response: ServerResponse,
): Pick<LoggedObjectRequest, 'method' | 'url' | 'headers' | 'status'> {
  return {
    method,
    url,
    headers: headers as Record<string, string>,
    status: response.headersSent ? response.statusCode : 0,
  };
}
