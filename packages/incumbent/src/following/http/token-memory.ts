/** Where a resource keeps the highest token it has seen of each election. */
export interface TokenMemory {
  /**
   * Keeps `token` unless a higher one is kept, and gives the one that is kept then. In one step:
   * of any number of calls at once, in any number of processes, none may lower what another has
   * raised. In SQL: `insert into seen (election, token) values ($1, $2) on conflict (election) do
   * update set token = greatest(seen.token, excluded.token) returning token`.
   */
  raise(election: string, token: bigint): bigint | Promise<bigint>;
}

/**
 * Kept in this process: forgotten when it ends, so that until a newer token has come again an old
 * one passes. For one process whose effects do not outlive it, and for tests.
 */
export function memoryOfTokens(): TokenMemory {
  const highest = new Map<string, bigint>();
  return {
    raise(election, token) {
      const kept = highest.get(election);
      if (kept !== undefined && kept >= token) return kept;
      highest.set(election, token);
      return token;
    },
  };
}
