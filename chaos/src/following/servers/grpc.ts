import * as grpc from '@grpc/grpc-js';
import { requireLeadership } from 'incumbent/grpc';
import type { Answer, Question } from '../calls.ts';
import { callDefinition } from '../calls.ts';
import type { Server, Service } from './server.ts';

/** @param port 0: any that is free */
export async function serveGrpc(
  { election, term, serve, checks }: Service,
  port: number,
): Promise<Server> {
  const server = new grpc.Server({
    interceptors: checks ? [requireLeadership(grpc, { election, term })] : [],
  });
  server.addService(callDefinition, {
    call: (
      { request }: grpc.ServerUnaryCall<Question, Answer>,
      callback: grpc.sendUnaryData<Answer>,
    ) => callback(null, { ...serve(), number: request.number }),
  });
  const bound = await new Promise<number>((resolve, reject) => {
    const credentials = grpc.ServerCredentials.createInsecure();
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, taken) =>
      error === null ? resolve(taken) : reject(error),
    );
  });
  return {
    port: bound,
    async close() {
      server.forceShutdown();
    },
  };
}
