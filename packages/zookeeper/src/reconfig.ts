import type { CallOptions } from './arguments.ts';
import { checkOptions, describe, namesOf } from './arguments.ts';
import type { Caller } from './caller.ts';
import { InvalidArgumentError } from './errors.ts';
import { reconfigure } from './operations.ts';
import type { GetReply } from './replies.ts';

/** A change of the ensemble: either `members`, or `joining` and `leaving`. */
export interface Reconfiguration {
  /** Servers to add or change, such as `server.5=host:2888:3888;2181`. */
  readonly joining?: readonly string[] | undefined;
  /** The ids of servers to remove. */
  readonly leaving?: readonly (string | number)[] | undefined;
  /** The complete new membership. */
  readonly members?: readonly string[] | undefined;
}

/** The options of `reconfig`. */
export interface ReconfigOptions extends CallOptions {
  /** The configuration that must be in force. Default -1n: any. It must not be undefined. */
  readonly configId?: bigint;
}

const reconfiguration = namesOf<Reconfiguration>({ joining: true, leaving: true, members: true });
const reconfigOptions = namesOf<ReconfigOptions>({
  ...{ signal: true, timeoutMs: true, configId: true },
});
/** Changes the members of the ensemble. @throws InvalidArgumentError */
export function reconfig(
  caller: Caller,
  change: Reconfiguration,
  options: ReconfigOptions,
): Promise<GetReply> {
  checkOptions('a change of reconfig', change ?? null, reconfiguration);
  checkOptions('reconfig', options, reconfigOptions);
  const { configId = -1n } = options;
  if (typeof configId !== 'bigint' || BigInt.asIntN(64, configId) !== configId) {
    throw new InvalidArgumentError(
      `configId is a signed 64-bit bigint (-1n: any), not ${describe(configId)}`,
    );
  }
  const { joining = [], leaving = [], members } = change;
  for (const list of [joining, leaving, members ?? []]) {
    if (!Array.isArray(list)) {
      throw new InvalidArgumentError(
        `reconfig takes lists of servers, such as ['server.5=h:2888:3888;2181'], not ${describe(list)}`,
      );
    }
  }
  if (members !== undefined && (joining.length > 0 || leaving.length > 0)) {
    throw new InvalidArgumentError('reconfig takes members, or joining and leaving, not both');
  }
  if (members === undefined && joining.length + leaving.length === 0) {
    throw new InvalidArgumentError('reconfig changes nothing: give joining, leaving or members');
  }
  const list = (items: readonly (string | number)[]) =>
    items.length === 0 ? null : items.join(',');
  const body = {
    joiningServers: list(joining),
    leavingServers: list(leaving),
    newMembers: members === undefined ? null : list(members),
    curConfigId: configId,
  };
  return caller.call(reconfigure, undefined, body, options);
}
