/** Google's client: a large package, which only those install who use it. */
import type { BucketLike, FileLike, SourceLike, StorageLike } from 'incumbent/gcs';
import { CommandError, exitCodes } from '../failure.ts';
import { requireInstalled } from '../installed.ts';

const packageName = '@google-cloud/storage';

interface SdkFile extends FileLike {
  save(data: string, options: object): Promise<unknown>;
  delete(options: object): Promise<unknown>;
  createReadStream(options: object): SourceLike & { resume(): unknown };
}

interface SdkBucket extends BucketLike {
  readonly iam: {
    testPermissions(names: readonly string[]): Promise<readonly Record<string, boolean>[]>;
  };
  file(name: string): SdkFile;
  getMetadata(): Promise<readonly unknown[]>;
}

/** A `Storage`, as far as the doctor asks it things that no election asks. */
export interface SdkClient extends StorageLike {
  bucket(name: string): SdkBucket;
}

export interface Sdk {
  readonly Storage: new (options: Readonly<Record<string, unknown>>) => SdkClient;
}

/**
 * The copy in the working directory, where it stands beside the user's program; else the one beside
 * us.
 * @throws CommandError that says how to install it
 */
export function loadSdk(cwd: string, beside: string = import.meta.url): Sdk {
  const sdk = requireInstalled(packageName, cwd, beside);
  if (sdk !== undefined) return sdk as Sdk;
  throw new CommandError(
    'DRIVER_MISSING',
    exitCodes.usage,
    `elections on Cloud Storage need Google's client, and it is neither in ${cwd} nor beside this ` +
      `command: npm install ${packageName}`,
  );
}
