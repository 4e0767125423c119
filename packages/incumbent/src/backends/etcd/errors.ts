import { ElectionError, StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import { codeOf, detailsOf, grpcCode } from './client.ts';

/** The caller has closed all clients. */
export class ClientClosedError extends StoreUnsuitableError {
  constructor() {
    super(
      'the gRPC client of this backend is closed: make another one, and another backend from it',
    );
  }
}

/**
 * Words of OpenSSL and Node about a certificate or a handshake. gRPC hides them in the
 * text of UNAVAILABLE.
 */
const tlsTrouble =
  /certificate|self.signed|altnames|wrong version number|unknown ca|bad_certificate|CERT_|DEPTH_ZERO|tlsv1|ssl3|SSL routines/i;

/**
 * The error of a call as an error of the library, which says whether waiting can help.
 * @param wasReached true: a server has answered this backend before. If a handshake fails from now
 * on, an operator is changing something, and that can end
 */
export function storeError(error: unknown, what: string, wasReached: boolean): unknown {
  if (error instanceof ElectionError) return error;
  const code = codeOf(error);
  if (code === undefined) return error;
  const details = detailsOf(error);
  switch (code) {
    case grpcCode.permissionDenied:
      return new StoreUnsuitableError(
        `etcd does not let this user do what an election needs (${details}; ${what}): grant it ` +
          'read and write on the election’s prefix and on its record (docs/stores/etcd.md)',
      );
    case grpcCode.unauthenticated:
      return new StoreUnsuitableError(
        `etcd does not know who this client is (${details}; ${what}): give \`auth\` to etcd()`,
      );
    case grpcCode.unimplemented:
      return new StoreUnsuitableError(
        `what answers there does not speak etcd’s API v3 (${details}; ${what})`,
      );
    case grpcCode.invalidArgument:
      return new StoreUnsuitableError(`etcd refuses ${what}: ${adviceFor(details)}`);
    case grpcCode.unavailable:
      if (!wasReached && tlsTrouble.test(details)) {
        return new StoreUnsuitableError(
          `no TLS connection to etcd comes about (${details}): look at the credentials of the gRPC ` +
            'client, at the certificates, and whether the server speaks TLS at all',
        );
      }
      break;
    default:
  }
  return new StoreUnavailableError(`etcd, ${what}: ${details}`, { cause: error });
}

function adviceFor(details: string): string {
  if (/user name is empty/.test(details)) {
    return `${details}: this cluster wants to know users, give \`auth\` to etcd() or a client certificate to the gRPC client`;
  }
  if (/authentication failed/.test(details)) return `${details}: see \`auth\``;
  if (/too large/.test(details)) return `${details}: make metadata and addresses smaller`;
  if (/too many operations/.test(details)) {
    return `${details}: start the servers with --max-txn-ops=128 or more`;
  }
  return details;
}
