export type { S3Action, S3Credentials } from './accounts.ts';
export type { Conditions, Dialect, StoredObject } from './bucket.ts';
export { awsDialect, Bucket, cephDialect } from './bucket.ts';
export type { FakeS3Options, LoggedS3Request } from './fake-s3.ts';
export { FakeS3, ownerCredentials } from './fake-s3.ts';
