import { createReadStream } from 'node:fs';
import { defaultMaxFrameBytes } from '@incumbent/zookeeper/internal';
import type { Arguments } from './arguments.ts';
import type { Context } from './context.ts';
import { CommandError, exitCodes, UsageError } from './failure.ts';
import { fileError } from './session.ts';

/**
 * The data that a command line gives: as an operand, from stdin (`-`) or from `--file`. Read before
 * there is a session, which would not outlast a slow pipe.
 * @returns undefined when none is given
 */
export async function readData(
  args: Arguments,
  context: Context,
): Promise<string | Uint8Array | undefined> {
  const operand = args.operands[1];
  const file = args.value('file');
  if (operand !== undefined && file !== undefined) {
    throw new UsageError('give the data as an operand or with --file, not both');
  }
  if (operand === '-' || file === '-') return readAll(context.stdin(), context.signal);
  if (file === undefined) return operand;
  try {
    return await readAll(createReadStream(file), context.signal);
  } catch (error) {
    context.signal.throwIfAborted();
    throw error instanceof CommandError ? error : fileError('file', file, error);
  }
}

async function readAll(
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<Uint8Array> {
  // The interruption may have come while the command was being loaded. Then no event follows.
  signal.throwIfAborted();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const read = async () => {
    for await (const chunk of source) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > defaultMaxFrameBytes) {
        throw new CommandError(
          'PACKET_TOO_LARGE',
          exitCodes.no,
          `the data is longer than the ${defaultMaxFrameBytes} bytes that a request may have`,
        );
      }
    }
  };
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
  await Promise.race([read(), aborted]);
  return Buffer.concat(chunks);
}
