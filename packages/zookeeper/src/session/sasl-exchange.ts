import { requests } from '../protocol/requests.ts';
import { PendingRequest } from './pending-request.ts';
import type { Pipeline } from './pipeline.ts';
import { answerChallenge, checkConfirmation } from './sasl-digest-md5.ts';

/**
 * SASL with DIGEST-MD5: two round trips on a new connection, before anything else is sent. It calls
 * one of the callbacks, unless the connection ends meanwhile.
 */
export function exchangeSasl(
  pipeline: Pipeline,
  user: { readonly username: string; readonly password: string },
  onDone: () => void,
  onError: (error: unknown) => void,
): void {
  const send = (token: Uint8Array, then: (token: Uint8Array | null) => void) => {
    const request = new PendingRequest(
      {
        kind: requests.sasl,
        complete: (reply: { readonly token: Uint8Array | null }) => then(reply.token),
      },
      undefined,
      () => {},
      onError,
    );
    pipeline.sendInHandshake(request, { token });
  };
  // Empty and not null: a server closes the connection on null.
  send(new Uint8Array(0), (challenge) => {
    const answer = answerChallenge(challenge, user);
    send(answer.token, (confirmation) => {
      checkConfirmation(confirmation, answer);
      onDone();
    });
  });
}
