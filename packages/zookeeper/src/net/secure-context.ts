import { isIP } from 'node:net';
import type { ConnectionOptions, SecureContext } from 'node:tls';
import { createSecureContext } from 'node:tls';
import { checkOptions, describe, namesOf } from '../arguments.ts';
import { InvalidArgumentError } from '../errors.ts';
import type { CheckedTls, TlsOptions } from './tls-options.ts';

const names = namesOf<TlsOptions>({
  ...{ ca: true, cert: true, key: true, passphrase: true, servername: true },
  ...{ rejectUnauthorized: true },
});

/** @throws InvalidArgumentError when a key or certificate cannot be used */
export function checkTls(tls: TlsOptions): CheckedTls {
  checkOptions('tls', tls ?? null, names);
  const { ca, cert, key, passphrase, servername, rejectUnauthorized = true } = tls;
  if (servername !== undefined && (typeof servername !== 'string' || servername === '')) {
    throw new InvalidArgumentError(`tls.servername is a host name, not ${describe(servername)}`);
  }
  if (typeof rejectUnauthorized !== 'boolean') {
    throw new InvalidArgumentError(
      `tls.rejectUnauthorized is true or false, not ${describe(rejectUnauthorized)}`,
    );
  }
  try {
    const context = createSecureContext({
      ca: ca === undefined ? undefined : [ca].flat().map((pem) => toPem(pem)),
      cert: cert === undefined ? undefined : toPem(cert),
      key: key === undefined ? undefined : toPem(key),
      passphrase,
    });
    return { context, servername, rejectUnauthorized, hasCertificate: cert !== undefined };
  } catch (error) {
    const why = (error as Error).message;
    throw new InvalidArgumentError(
      `tls: the ca, cert or key cannot be used (${why}); they are the contents of PEM files`,
      { cause: error },
    );
  }
}

/** @param name under which the host was named: what its certificate must be made out to */
export function connectionOptions(
  { context, servername, rejectUnauthorized }: CheckedTls,
  name: string,
): ConnectionOptions {
  // An address is not allowed as a name in the handshake, but certificates may be made out to it.
  const serverName = servername ?? (isIP(name) === 0 ? name : undefined);
  return {
    secureContext: context as SecureContext,
    rejectUnauthorized,
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}

function toPem(content: string | Uint8Array): string {
  return typeof content === 'string' ? content : Buffer.from(content).toString('utf8');
}
