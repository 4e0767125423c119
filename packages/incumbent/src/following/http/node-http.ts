import { MisuseError } from '../../base/errors.ts';
import { asError } from '../../base/thrown.ts';

/**
 * The parts of a request and an answer of `node:http` (Express, Connect, Fastify's `raw`)
 * that are needed.
 */

export interface HttpRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The part of an answer of `node:http` that is needed. */
export interface HttpResponse {
  readonly headersSent: boolean;
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
}

/** Passes a request on to the next handler, or an error to the error handlers. */
export type Next = (error?: unknown) => void;

/** The middleware of Express and Connect. With plain `node:http`, `next` runs your own handler. */
export type Middleware = (request: HttpRequest, response: HttpResponse, next: Next) => void;

/** Fastify's `onRequest` hook. */
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
 * The middleware itself. Given to Fastify as a hook, it does the same as its `fastify`.
 * @param name the name of the middleware, for errors
 */
export function asMiddleware(
  name: string,
  handle: (request: HttpRequest, response: HttpResponse, next: Next, take: () => void) => void,
): Middleware {
  const hook = asFastifyHook(handle);
  return (request, response, next) => {
    const reply: object = response;
    if (isRequestOfFastify(request) && isReplyOfFastify(reply)) {
      hook(request, reply, next);
      return;
    }
    if (typeof response?.setHeader !== 'function' || typeof next !== 'function') {
      throw new MisuseError(
        `${name} is called with a request and a response of node:http and a function: ` +
          'app.use(it) in Express and Connect, addHook("onRequest", it.fastify) in Fastify, ' +
          'it(request, response, next) elsewhere',
      );
    }
    handle(request, response, next, () => {});
  };
}

type FastifyRequest = Parameters<FastifyHook>[0];
type FastifyReply = Parameters<FastifyHook>[1];

function isRequestOfFastify(request: object | undefined): request is FastifyRequest {
  return typeof (request as Partial<FastifyRequest> | undefined)?.raw === 'object';
}

function isReplyOfFastify(reply: object | undefined): reply is FastifyReply {
  const like = reply as Partial<FastifyReply> | undefined;
  return typeof like?.raw === 'object' && typeof like.hijack === 'function';
}

/**
 * Calls `next` from within a promise. An error of the handlers behind it must end where it would
 * have ended without us. It must not come back as our own.
 */
export function callLater(next: Next, error?: unknown): void {
  queueMicrotask(() => {
    if (error === undefined) next();
    else next(error);
  });
}
