/** Keeps the highest token that a resource has seen of each election. */
export interface TokenMemory {
  /**
   * Keeps `token` unless a higher one is kept, and returns the one that is kept then. In one
   * step: of any number of calls at once, in any number of processes, none may lower another's
   * token. In SQL:
   *
   * ```sql
   * insert into seen (election, token) values ($1, $2) on conflict (election)
   * do update set token = greatest(seen.token, excluded.token) returning token
   * ```
   */
  raise(election: string, token: bigint): bigint | Promise<bigint>;
}

/**
 * Tokens that are kept in this process, and forgotten when it ends. After that an old token passes
 * until a newer one has come. For one process whose effects do not outlive it, and for tests.
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
