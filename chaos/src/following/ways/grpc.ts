import * as grpc from '@grpc/grpc-js';
import { carryKnownToken, registerLeaderResolver } from 'incumbent/grpc';
import { addressFor } from '../addresses.ts';
import type { Answer, Question } from '../calls.ts';
import { callDefinition } from '../calls.ts';
import type { Caller, OpenWay } from './way.ts';

/** As the documentation has it: calls that a former leader refuses are sent to the next one. */
const retrying = {
  methodConfig: [
    {
      name: [{}],
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: '0.02s',
        maxBackoff: '1s',
        backoffMultiplier: 3,
        retryableStatusCodes: ['UNAVAILABLE'],
      },
    },
  ],
};

/** By the resolver: a channel that retries and waits, and one that does neither. */
export function openGrpcWays({ election, callMs }: Caller): OpenWay[] {
  const addressOf = addressFor('grpc');
  const resolver = registerLeaderResolver(grpc, {
    elections: election,
    addressesOf: (leader) => [addressOf(leader)].filter((address) => address !== undefined),
  });
  let open = 0;
  const way = (name: string, options: grpc.ClientOptions, metadata: grpc.Metadata): OpenWay => {
    const target = `incumbent:///${election.name}`;
    const credentials = grpc.credentials.createInsecure();
    const client = new grpc.Client(target, credentials, options);
    open += 1;
    return {
      name,
      connectsTo: 'terms',
      call: (question) => callOver(client, question, metadata, callMs),
      async close() {
        client.close();
        open -= 1;
        if (open === 0) resolver.close();
      },
    };
  };
  return [
    way(
      'gRPC, retries and waits',
      {
        'grpc.service_config': JSON.stringify(retrying),
        interceptors: [carryKnownToken(grpc, election)],
      },
      new grpc.Metadata({ waitForReady: true }),
    ),
    way('gRPC, plain', { 'grpc.enable_retries': 0 }, new grpc.Metadata()),
  ];
}

function callOver(
  client: grpc.Client,
  question: Question,
  metadata: grpc.Metadata,
  callMs: number,
): Promise<Answer> {
  const { path, requestSerialize, responseDeserialize } = callDefinition.call;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      question,
      metadata,
      { deadline: Date.now() + callMs },
      (error, answer) => {
        if (error !== null) reject(error);
        else if (answer === undefined) reject(new Error('an answer without a message'));
        else resolve(answer);
      },
    );
  });
}
