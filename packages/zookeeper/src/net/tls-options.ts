/** The options of node:tls that a ZooKeeper connection needs. Contents, not file names. */
export interface TlsOptions {
  /** Certificates of the authorities to trust, PEM (default: those Node trusts). */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[];
  /** Our certificate and its key, PEM: for servers that ask for one. */
  readonly cert?: string | Uint8Array;
  readonly key?: string | Uint8Array;
  readonly passphrase?: string;
  /** The name that the server's certificate must have (default: the host connected to). */
  readonly servername?: string;
  /** false accepts any certificate: for tests only (default true). */
  readonly rejectUnauthorized?: boolean;
}

/** TLS options whose keys and certificates could be read. */
export interface CheckedTls {
  /** A SecureContext of node:tls. Named only there: our declarations stand without Node's types. */
  readonly context: object;
  readonly servername: string | undefined;
  readonly rejectUnauthorized: boolean;
  /** Whether there is one of ours to show. */
  readonly hasCertificate: boolean;
}
