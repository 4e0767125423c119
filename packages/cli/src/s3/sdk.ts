/** The AWS SDK: a large package, which only those install who use it. */
import type { S3ClientLike, S3Commands } from 'incumbent/s3';
import { CommandError, exitCodes } from '../failure.ts';
import { requireInstalled } from '../installed.ts';

const packageName = '@aws-sdk/client-s3';

export interface SdkClient extends S3ClientLike {
  destroy(): void;
}

type CommandClass = new (input: Readonly<Record<string, unknown>>) => object;

/** The parts of the package that we use. */
export interface Sdk extends S3Commands {
  readonly S3Client: new (config: Readonly<Record<string, unknown>>) => SdkClient;
  readonly DeleteObjectCommand: CommandClass;
  readonly GetBucketVersioningCommand: CommandClass;
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
    `elections on S3 need the AWS SDK, which is neither in ${cwd} nor beside this command: ` +
      `npm install ${packageName}`,
  );
}

const silence = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED';

/** Without the SDK's warnings about versions of Node: those are for the person who installs it. */
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
