/** The three ways to put a middleware of ours before a handler. */
import express from 'express';
import fastify from 'fastify';
import type { FastifyHook, Middleware } from '../../src/following/http/index.ts';
import type { Handler, HttpStage, Listening } from './http-stage.ts';

export interface Guard extends Middleware {
  readonly fastify: FastifyHook;
}

type Serve = (stage: HttpStage, guard: Guard, handler: Handler) => Promise<{ origin: string }>;

export const servers: Readonly<Record<string, Serve>> = {
  'node:http': serveBehind,
  async express(stage, guard, handler) {
    const app = express();
    // Below a path Express shortens `url`.
    app.use('/mounted', guard);
    app.use(guard);
    app.use((incoming, response) => void handler(incoming, response));
    return stage.listen(app as unknown as Handler);
  },
  async fastify(stage, guard, handler) {
    const app = fastify({ forceCloseConnections: true });
    app.addHook('onRequest', guard.fastify);
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    app.all('/*', (incoming, reply) => {
      reply.hijack();
      void handler(incoming.raw, reply.raw);
    });
    stage.keep(() => app.close());
    return { origin: await app.listen({ port: 0, host: '127.0.0.1' }) };
  },
};

/** On `node:http`. An error that the middleware hands on is answered with 599. */
export function serveBehind(
  stage: HttpStage,
  guard: Middleware,
  handler: Handler,
): Promise<Listening> {
  return stage.listen((incoming, response) => {
    guard(incoming, response, (error) => {
      if (error === undefined) void handler(incoming, response);
      else response.writeHead(599).end(String(error));
    });
  });
}
