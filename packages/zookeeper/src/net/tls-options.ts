/** The options of node:tls that a ZooKeeper connection needs. Pass contents, not file names. */
export interface TlsOptions {
  /** Certificates of the authorities to trust, PEM. Default: those that Node trusts. */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[];
  /** The client's certificate, PEM, for servers that ask for one. */
  readonly cert?: string | Uint8Array;
  /** The key of `cert`, PEM. */
  readonly key?: string | Uint8Array;
  /** The passphrase of `key`. */
  readonly passphrase?: string;
  /** The name that the server's certificate must have. Default: the host connected to. */
  readonly servername?: string;
  /** `false` accepts any certificate. For tests only. Default true. */
  readonly rejectUnauthorized?: boolean;
}

/** TLS options whose keys and certificates could be read. */
export interface CheckedTls {
  /**
   * A SecureContext of node:tls. It is an `object` here, so that our type declarations do not need
   * Node's.
   */
  readonly context: object;
  readonly servername: string | undefined;
  readonly rejectUnauthorized: boolean;
  /** Whether this client has a certificate to show. */
  readonly hasCertificate: boolean;
}
