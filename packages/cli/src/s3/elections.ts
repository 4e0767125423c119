import { namesBelow } from '../url/bucket.ts';
import type { S3Connection } from './connect.ts';

/** Nobody reads more names than this. */
const mostNames = 1_000;

/** Names of elections; undefined: we may not list objects, as elections need not. */
export async function electionsIn(
  { client, sdk, location: { bucket, prefix } }: S3Connection,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  try {
    const input = { Bucket: bucket, Prefix: prefix, MaxKeys: mostNames };
    const command = new sdk.ListObjectsV2Command(input);
    const { Contents = [] } = (await client.send(command as never, { abortSignal: signal })) as {
      readonly Contents?: readonly { readonly Key?: string }[];
    };
    return namesBelow(
      prefix,
      Contents.flatMap(({ Key }) => Key ?? []),
    );
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}
