/** What of a request and an answer of `node:http` (Express, Connect, Fastify's `raw`) is needed. */

export interface HttpRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface HttpResponse {
  readonly headersSent: boolean;
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
}

export type Next = (error?: unknown) => void;

/** Express and Connect call it so; with plain `node:http`, `next` runs your own handler. */
export type Middleware = (request: HttpRequest, response: HttpResponse, next: Next) => void;

/** Fastify's `onRequest`. */
export type FastifyHook = (
  request: { readonly raw: HttpRequest },
  reply: { readonly raw: HttpResponse; hijack(): unknown },
  done: (error?: Error) => void,
) => void;

/**
 * The hook form of a middleware.
 * @param handle calls `take` before it answers by itself, `next` to pass the request on
 */
export function asFastifyHook(
  handle: (request: HttpRequest, response: HttpResponse, next: Next, take: () => void) => void,
): FastifyHook {
  return (request, reply, done) => {
    handle(
      request.raw,
      reply.raw,
      (error) => done(error === undefined ? undefined : asError(error)),
      () => reply.hijack(),
    );
  };
}

/**
 * From within a promise: what the handlers behind `next` throw must end where it would have without
 * us, and not come back as our own.
 */
export function callLater(next: Next, error?: unknown): void {
  queueMicrotask(() => {
    if (error === undefined) next();
    else next(error);
  });
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
