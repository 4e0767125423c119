import type { NodeAddress } from '@incumbent/redis-failover';
import type { NodeAccess, Replication } from '@incumbent/redis-failover/internal';
import { NodeConnection } from '@incumbent/redis-failover/internal';

/** A Redis' report on itself, or the reason why there is none. */
export type Answer =
  | { readonly replication: Replication; readonly error?: never }
  | { readonly error: Error; readonly replication?: never };

/**
 * Asks all at once, and waits for none longer than `timeoutMs`. Rejects only with the reason of
 * `signal`.
 */
export async function askRoles(
  addresses: readonly NodeAddress[],
  access: NodeAccess,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<NodeAddress, Answer>> {
  const answers = await Promise.all(
    addresses.map(
      async (address) => [address, await ask(address, access, timeoutMs, signal)] as const,
    ),
  );
  return new Map(answers);
}

async function ask(
  address: NodeAddress,
  access: NodeAccess,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Answer> {
  let connection: NodeConnection | undefined;
  try {
    const name = 'incumbent-redis-status';
    connection = await NodeConnection.open(address, { ...access, name, timeoutMs, signal });
    return { replication: await connection.replication() };
  } catch (error) {
    signal.throwIfAborted();
    return { error: error instanceof Error ? error : new Error(String(error)) };
  } finally {
    connection?.close();
  }
}
