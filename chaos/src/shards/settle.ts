/** How long the work for a shard goes on after it was told to stop: up to 70 ms. */
export function settleMsOf(shard: number): number {
  return 10 * (shard % 8);
}

export const longestSettleMs = 70;
