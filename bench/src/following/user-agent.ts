/** How requests of one process are told from those of another at an object store. */
export function userAgentOf(who: string): string {
  return `bench-${who}`;
}

export function nameIn(userAgent: string): string {
  return /bench-(\w+)/.exec(userAgent)?.[1] ?? 'somebody';
}
