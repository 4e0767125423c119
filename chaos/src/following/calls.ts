/**
 * The question of a call, and its answer. Over gRPC it is JSON, too: nothing here is about protocol
 * buffers.
 */

/** An answer shows it again, so bodies that are forwarded arrive. */
export interface Question {
  readonly number: number;
}

export interface Answer {
  readonly number: number;
  /** Under which it was served. */
  readonly token: string;
  readonly by: string;
}

const encode = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

interface CallDefinition {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: false;
  readonly requestSerialize: (question: Question) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Question;
  readonly responseSerialize: (answer: Answer) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Answer;
}

export const callDefinition: { readonly call: CallDefinition } = {
  call: {
    path: '/incumbent.chaos.Following/Call',
    requestStream: false,
    responseStream: false,
    requestSerialize: encode,
    requestDeserialize: (bytes) => JSON.parse(bytes.toString()) as Question,
    responseSerialize: encode,
    responseDeserialize: (bytes) => JSON.parse(bytes.toString()) as Answer,
  },
};
