/** The parts of a connection to an API server that this backend needs, and the shape of a Lease. */

/** One call. The body is sent as JSON. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** From `/api` or `/apis` on, with the query. */
  readonly path: string;
  readonly body?: unknown;
  /** The type of the body. Default `application/json`. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

/** Any answer at all, also a refusal. */
export interface ApiResponse {
  readonly status: number;
  /** The body if it is JSON. Undefined if it is not, such as a proxy's page. */
  readonly body: unknown;
  /** The beginning of a body that is not JSON. */
  readonly text: string;
  /** The server's header about trying again, in seconds. */
  readonly retryAfter?: string | undefined;
}

/** One line of a watch. */
export interface WatchEvent {
  /** `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR` (then `object` is a Status). */
  readonly type: string;
  readonly object: unknown;
}

/** A watch request, and its listener. */
export interface ApiWatch {
  /** With `watch=1` in its query. */
  readonly path: string;
  readonly signal: AbortSignal;
  /** The server has agreed: changes from now on are reported. */
  onOpen(): void;
  onEvent(event: WatchEvent): void;
}

/**
 * A connection to an API server: `inCluster()`, `apiServer()`, `fromKubeConfig()`, or the caller's
 * own. It retries only a request that was certainly not carried out (its token had been replaced).
 */
export interface KubernetesApi {
  /** The address of the server for messages, without secrets. */
  readonly url: string;
  /** The namespace of the service account or the context. Undefined if it names none. */
  readonly namespace: string | undefined;
  /** Rejects if there was no answer. A refusal is an answer. */
  request(request: ApiRequest): Promise<ApiResponse>;
  /**
   * Rejects when the stream broke.
   * @returns the refusal. Undefined when the server has ended the stream
   */
  watch(request: ApiWatch): Promise<ApiResponse | undefined>;
  /** Closes idle connections. Calls under way go on. */
  close(): void;
}

/**
 * A `KubeConfig` of `@kubernetes/client-node`, 1.4 or 2.x. Only its knowledge of the server and of
 * credentials is used, not its generated API classes. Those drop fields that they do not know. They
 * also keep times in milliseconds, where a Lease has microseconds.
 */
export interface KubeConfigLike {
  getCurrentContext(): string;
  getContextObject(name: string): { readonly namespace?: string } | null;
  getCurrentCluster(): { readonly server: string; readonly proxyUrl?: string } | null;
  applyToHTTPSOptions(options: object): Promise<void>;
}

export interface LeaseMetadata {
  readonly name?: string;
  readonly resourceVersion?: string;
  readonly uid?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** `coordination.k8s.io/v1` Lease, as far as we look into it. All other fields in it are kept. */
export interface Lease {
  readonly metadata: LeaseMetadata;
  readonly spec?: {
    readonly holderIdentity?: string | null;
    readonly leaseDurationSeconds?: number | null;
    readonly acquireTime?: string | null;
    readonly renewTime?: string | null;
    readonly leaseTransitions?: number | null;
  };
}

/** The body of a refusal. */
export interface ApiStatus {
  readonly kind: 'Status';
  readonly reason?: string;
  readonly message?: string;
  readonly code?: number;
  readonly details?: {
    readonly name?: string;
    readonly kind?: string;
    readonly causes?: readonly { readonly reason?: string }[];
  };
}

export function asLease(body: unknown): Lease | undefined {
  const lease = body as { readonly kind?: unknown; readonly metadata?: LeaseMetadata } | undefined;
  const version = lease?.metadata?.resourceVersion;
  // The kind is missing within a watch, and from some proxies.
  if (lease?.kind !== undefined && lease.kind !== 'Lease') return undefined;
  return typeof version === 'string' && version !== '' ? (lease as Lease) : undefined;
}

export function asStatus(body: unknown): ApiStatus | undefined {
  return (body as { readonly kind?: unknown } | undefined)?.kind === 'Status'
    ? (body as ApiStatus)
    : undefined;
}
