import * as grpc from '@grpc/grpc-js';
import { requireLeadership } from 'incumbent/grpc';
import type { Answer, Question } from '../calls.ts';
import { callDefinition } from '../calls.ts';
import type { Server, Service } from './server.ts';

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
  await new Promise<void>((resolve, reject) => {
    const credentials = grpc.ServerCredentials.createInsecure();
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return {
    async close() {
      server.forceShutdown();
    },
  };
}
