import type { EtcdAuth } from './auth.ts';
import { EtcdCalls } from './calls.ts';
import { checkClients } from './check-options.ts';
import type { GrpcClient } from './client.ts';
import { storeError } from './errors.ts';
import { status } from './methods.ts';

/** The state of one member, by its own account. */
export interface EtcdStatus {
  /** The version of the server, such as `3.5.16`. */
  readonly version: string;
  readonly memberId: bigint;
  /** The member that leads the cluster. 0: this one knows none. */
  readonly leader: bigint;
  readonly raftTerm: bigint;
  readonly revision: bigint;
  /** Bytes on disk. */
  readonly dbSize: bigint;
  /** True: this member does not vote. */
  readonly isLearner: boolean;
  /** Alarms and the like. */
  readonly errors: readonly string[];
}

/**
 * Asks one member for its state, for operators.
 * @param options credentials, where the cluster wants them, and a signal
 * @throws StoreUnsuitableError, StoreUnavailableError
 */
export async function etcdStatus(
  client: GrpcClient,
  options: { readonly auth?: EtcdAuth; readonly signal?: AbortSignal } = {},
): Promise<EtcdStatus> {
  const calls = new EtcdCalls(checkClients(client), options.auth);
  const signal = options.signal ?? new AbortController().signal;
  try {
    const { header, version, leader, raftTerm, dbSize, isLearner, errors } = await calls.call(
      status,
      {},
      signal,
    );
    const { memberId, revision } = header;
    return { version, memberId, leader, raftTerm, revision, dbSize, isLearner, errors };
  } catch (error) {
    throw storeError(error, 'asking for the status', calls.wasReached);
  }
}
