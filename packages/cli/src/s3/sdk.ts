/** The AWS SDK: a large package, which only those install who use it. */
import type { S3ClientLike, S3Commands } from 'incumbent/s3';
import { CommandError, exitCodes } from '../failure.ts';
import { requireInstalled } from '../installed.ts';

const packageName = '@aws-sdk/client-s3';

export interface SdkClient extends S3ClientLike {
  destroy(): void;
}

type CommandClass = new (input: Readonly<Record<string, unknown>>) => object;

/** What we need of the package. */
export interface Sdk extends S3Commands {
  readonly S3Client: new (config: Readonly<Record<string, unknown>>) => SdkClient;
  readonly DeleteObjectCommand: CommandClass;
  readonly GetBucketVersioningCommand: CommandClass;
  readonly ListObjectsV2Command: CommandClass;
}

/**
 * That of the working directory, where people have it beside their program; else that beside us.
 * @throws CommandError that says how to install it
 */
export function loadSdk(cwd: string, beside: string = import.meta.url): Sdk {
  const sdk = requireInstalled(packageName, cwd, beside);
  if (sdk !== undefined) return sdk as Sdk;
  throw new CommandError(
    'DRIVER_MISSING',
    exitCodes.usage,
    `elections on S3 need the AWS SDK, which is neither in ${cwd} nor beside this command: ` +
      `npm install ${packageName}`,
  );
}

const silence = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED';

/** Without what the SDK has to say about versions of Node: that is for who installs it. */
export function makeClient(
  { S3Client }: Sdk,
  config: Readonly<Record<string, unknown>>,
): SdkClient {
  const before = process.env[silence];
  process.env[silence] = 'true';
  try {
    return new S3Client(config);
  } finally {
    if (before === undefined) delete process.env[silence];
    else process.env[silence] = before;
  }
}
