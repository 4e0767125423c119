/** The reply of a server. Strings and statuses are the same here. */
export type Reply = string | number | null | ErrorReply | readonly Reply[];

/** Such as `READONLY You can't write against a read only replica.` */
export class ErrorReply extends Error {
  override readonly name: string = 'ErrorReply';
}

/** The fixed texts of the server's errors (`createSharedObjects` of server.c). */
export const said: Readonly<
  Record<
    'loading' | 'masterDown' | 'noAuth' | 'noReplicas' | 'readOnly' | 'unblocked' | 'wrongPass',
    ErrorReply
  >
> = {
  loading: new ErrorReply('LOADING Redis is loading the dataset in memory'),
  masterDown: new ErrorReply(
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  ),
  noAuth: new ErrorReply('NOAUTH Authentication required.'),
  noReplicas: new ErrorReply('NOREPLICAS Not enough good replicas to write.'),
  readOnly: new ErrorReply("READONLY You can't write against a read only replica."),
  unblocked: new ErrorReply(
    'UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)',
  ),
  wrongPass: new ErrorReply('WRONGPASS invalid username-password pair or user is disabled.'),
};
