export type { AclEntry, Conditions, GcsObject, GivenMetadata } from './bucket.ts';
export { GcsBucket } from './bucket.ts';
export type { FakeGcsOptions, LoggedGcsRequest } from './fake-gcs.ts';
export { FakeGcs } from './fake-gcs.ts';
