import type { CallOptions } from './arguments.ts';
import { checkOptions, checkVersion, namesOf } from './arguments.ts';
import type { Caller } from './caller.ts';
import { InvalidArgumentError } from './errors.ts';
import { findFailure } from './multi-results.ts';
import { opcodes } from './protocol/constants.ts';
import type { MultiOperation } from './protocol/multi.ts';
import { requests } from './protocol/requests.ts';
import type { Reply } from './replies.ts';

/**
 * A node that must exist, and may have to have a version. Default -1: any. The version must not be
 * undefined.
 */
export type Confirmed = string | { readonly path: string; readonly version?: number };

const confirmed = namesOf<Exclude<Confirmed, string>>({ path: true, version: true });

/**
 * Commits a transaction that only checks that nodes exist. A server without a quorum cannot commit
 * it.
 */
export function confirm(
  caller: Caller,
  nodes: readonly Confirmed[],
  options: CallOptions | undefined,
): Promise<Reply> {
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new InvalidArgumentError('confirm takes at least one path');
  }
  checkOptions('confirm', options);
  const wanted = nodes.map((node) => {
    if (typeof node === 'string') return { path: node };
    checkOptions('a node of confirm', node ?? null, confirmed);
    return node;
  });
  const operations = wanted.map(({ path, version }): MultiOperation => {
    const body = { path: caller.serverPath(path), version: checkVersion(version, path) };
    return { opcode: opcodes.check, body };
  });
  return caller.call(
    {
      kind: requests.multi,
      complete: (results, { zxid, sentAt }) => {
        const failure = findFailure(results, (index) => ({
          path: wanted[index]?.path,
          operation: 'confirm',
          zxid,
        }));
        if (failure !== undefined) throw failure.error;
        return { zxid, sentAt };
      },
    },
    undefined,
    operations,
    options,
  );
}
