/** `1.25 s`. */
export function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}
