import type { GrpcMetadata } from './client.ts';

/** The credentials of this program, where the cluster knows users by their passwords. */
export interface EtcdAuth {
  readonly user: string;
  readonly password: string;
  /** The class `Metadata` of `@grpc/grpc-js`. No driver is imported here. */
  readonly Metadata: new () => GrpcMetadata;
}
