import {
  ElectionError,
  InvalidOptionError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../../base/errors.ts';
import { codeOf } from './client.ts';

/** The client's error as an error of the library, which says whether waiting can help. */
export function storeError(error: unknown, path: string): unknown {
  if (error instanceof ElectionError) return error;
  const code = codeOf(error);
  if (code === undefined) return error;
  const cause = code === 'TRANSACTION_FAILED' ? (error as Error).cause : error;
  const { message } = cause as Error;
  switch (codeOf(cause) ?? '') {
    case 'NO_AUTH':
    case 'AUTH_FAILED':
    case 'SASL_REQUIRED':
      return new StoreUnsuitableError(
        `ZooKeeper does not let this client do what an election needs at ${path} (${message}): ` +
          'authenticate it, or give it the rights to read, write, create and delete there',
      );
    case 'INVALID_ACL':
      return new StoreUnsuitableError(
        `ZooKeeper does not take the ACL for nodes at ${path} (${message}): "creator" needs a ` +
          'client that is authenticated',
      );
    case 'CLOSED':
      return new StoreUnsuitableError(
        `the ZooKeeper client is closed (${message}): make another one, and another backend from it`,
      );
    case 'PACKET_TOO_LARGE':
      return new StoreUnsuitableError(
        `what is to be stored at ${path} is more than the servers take (${message}): ` +
          'make metadata and addresses smaller',
      );
    case 'EPHEMERAL_ON_LOCAL_SESSION':
      return new StoreUnsuitableError(
        `ZooKeeper keeps this session on one server, where no place in a queue can be (${message}): ` +
          'set localSessionsUpgradingEnabled=true on the servers',
      );
    case 'NO_CHILDREN_FOR_EPHEMERALS':
      return new StoreUnsuitableError(
        `${path} cannot hold an election: a node above it is ephemeral and takes no children`,
      );
    case 'INVALID_ARGUMENT':
      return new InvalidOptionError(message);
    default:
      return new StoreUnavailableError(`ZooKeeper, ${path}: ${message}`, { cause: error });
  }
}
