import type { CallOptions } from './arguments.ts';
import { checkOptions, describe } from './arguments.ts';
import type { Caller } from './caller.ts';
import type { ZooKeeperError } from './errors.ts';
import { errorForCode, InvalidArgumentError, ProtocolError } from './errors.ts';
import { opcodes } from './protocol/constants.ts';
import type { MultiOperation, MultiResult } from './protocol/multi.ts';
import { requests } from './protocol/requests.ts';
import type { Reply } from './replies.ts';
import { GetReply } from './replies.ts';

/** One read of a multiRead: the data of a node, or the names of its children. */
export type MultiReadOperation = { readonly get: string } | { readonly children: string };

/** The result of one read, with the path that was read. */
export type MultiReadResult =
  | { readonly type: 'get'; readonly path: string; readonly value: GetReply }
  | { readonly type: 'children'; readonly path: string; readonly children: readonly string[] }
  | { readonly type: 'error'; readonly path: string; readonly error: ZooKeeperError };

export interface MultiReadReply extends Reply {
  /** In the order of the reads. A read that failed does not disturb the others. */
  readonly results: readonly MultiReadResult[];
}

/** Several reads in one request (3.6), all of the same state of the tree. */
export function multiRead(
  caller: Caller,
  reads: readonly MultiReadOperation[],
  options: CallOptions | undefined,
): Promise<MultiReadReply> {
  if (!Array.isArray(reads) || reads.length === 0) {
    throw new InvalidArgumentError('multiRead takes at least one {get: path} or {children: path}');
  }
  checkOptions('multiRead', options);
  for (const read of reads) {
    const names = typeof read === 'object' && read !== null ? Object.keys(read) : [];
    if (names.length !== 1 || (names[0] !== 'get' && names[0] !== 'children')) {
      const what = names.length > 0 ? `{${names.join(', ')}}` : describe(read);
      throw new InvalidArgumentError(
        `a read of multiRead is {get: path} or {children: path}, not ${what}`,
      );
    }
  }
  const paths = reads.map((read) => ('get' in read ? read.get : read.children));
  const operations = reads.map((read): MultiOperation => {
    const path = 'get' in read ? read.get : read.children;
    const body = { path: caller.serverPath(path), watch: false };
    return 'get' in read
      ? { opcode: opcodes.getData, body }
      : { opcode: opcodes.getChildren, body };
  });
  return caller.call(
    {
      kind: requests.multiRead,
      complete(results, reply) {
        if (results.length !== paths.length) {
          throw new ProtocolError(`${results.length} results for ${paths.length} reads`);
        }
        return {
          results: results.map((result, i) => toResult(result, paths[i] as string, reply)),
          zxid: reply.zxid,
          sentAt: reply.sentAt,
        };
      },
    },
    undefined,
    operations,
    options,
  );
}

function toResult(result: MultiResult, path: string, reply: Reply): MultiReadResult {
  if (result.opcode === opcodes.getData) {
    const { data, stat } = result.body;
    return { type: 'get', path, value: new GetReply(data, stat, reply) };
  }
  if (result.opcode === opcodes.getChildren) {
    return { type: 'children', path, children: result.body.children };
  }
  if (result.opcode === opcodes.error) {
    const context = { path, operation: 'multiRead', zxid: reply.zxid };
    return { type: 'error', path, error: errorForCode(result.error, context) };
  }
  throw new ProtocolError(`a result of type ${result.opcode} for a read`);
}
