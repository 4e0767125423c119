import type { NodeAddress } from '../node-address.ts';

export type NodeErrorCode = 'NODE_UNREACHABLE' | 'NODE_REFUSED' | 'NODE_COMMAND';

/** Base class of errors of one Redis node. */
export class NodeError extends Error {
  override readonly name: string = 'NodeError';
  readonly code: NodeErrorCode;
  readonly address: NodeAddress;

  constructor(code: NodeErrorCode, address: NodeAddress, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.address = address;
  }
}

/**
 * Code `NODE_UNREACHABLE`. There is no connection, or no answer came in time. It is unknown whether
 * a command that was sent was executed.
 */
export class NodeUnreachableError extends NodeError {
  override readonly name: string = 'NodeUnreachableError';
  constructor(address: NodeAddress, why: string, cause?: unknown) {
    super('NODE_UNREACHABLE', address, `the Redis node ${address} ${why}`, { cause });
  }
}

/**
 * Code `NODE_REFUSED`. The node answers, but refuses us: a wrong password, missing rights,
 * protected mode, or no free connection. Or it is a Sentinel or a node of a cluster. No waiting
 * cures that. The message says what does.
 */
export class NodeRefusedError extends NodeError {
  override readonly name: string = 'NodeRefusedError';
  /**
   * @param wayOut what to do about it
   * @param said the node's answer
   */
  constructor(address: NodeAddress, wayOut: string, said: string, cause?: unknown) {
    super('NODE_REFUSED', address, `the Redis node ${address} refuses us: ${wayOut} (${said})`, {
      cause,
    });
  }
}

/**
 * Code `NODE_COMMAND`. The node answered one command with an error, such as `-LOADING`. The
 * connection can still be used.
 */
export class NodeCommandError extends NodeError {
  override readonly name: string = 'NodeCommandError';
  /** The node's answer, such as `READONLY You can't write against a read only replica.` */
  readonly reply: string;
  constructor(address: NodeAddress, command: string, reply: string, cause?: unknown) {
    super('NODE_COMMAND', address, `the Redis node ${address} answers ${command}: ${reply}`, {
      cause,
    });
    this.reply = reply;
  }
}

/** @param command without its arguments, which may hold a password */
export function errorOfReply(address: NodeAddress, command: string, reply: Error): NodeError {
  const said = reply.message;
  const wayOut = refusals.find(([pattern]) => pattern.test(said))?.[1];
  return wayOut === undefined
    ? new NodeCommandError(address, command, said, reply)
    : new NodeRefusedError(address, wayOut, said, reply);
}

/** Answers of a node that refuses us, and what to do about each. */
const refusals: readonly (readonly [RegExp, string])[] = [
  [/^NOAUTH|^ERR operation not permitted/, 'it wants a password, and none is configured here'],
  [
    /^WRONGPASS|^ERR invalid password/,
    'the user name or the password is wrong: compare them with requirepass or ACL LIST there',
  ],
  [
    /^ERR .*AUTH.*(without any password configured|no password is set)/,
    'a password is configured here, and none there: set requirepass there, or take it away here',
  ],
  [
    /^NOPERM/,
    'this user lacks rights there: it needs PING, INFO, ROLE, XREAD, CONFIG GET, CLIENT, REPLICAOF, PSYNC ' +
      'and the key incumbent-redis:watch; see ACL SETUSER',
  ],
  [/^DENIED/, 'it is in protected mode: give it a password, or bind it to a private address'],
  [/^ERR max number of clients reached/, 'it has all the clients it takes: raise maxclients there'],
];
