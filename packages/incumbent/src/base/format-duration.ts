/** `1500` as `"1.5s"`, `152000` as `"2m 32s"`, for messages and tables. */
export function formatDuration(ms: number): string {
  if (trim(ms) < 1000) return `${trim(ms)}ms`;
  const seconds = trim(ms / 1000);
  const parts = [
    `${Math.floor(seconds / 86_400)}d`,
    `${Math.floor(seconds / 3_600) % 24}h`,
    `${Math.floor(seconds / 60) % 60}m`,
    `${trim(seconds % 60)}s`,
  ];
  return parts.filter((part) => !part.startsWith('0') || part.startsWith('0.')).join(' ');
}

function trim(value: number): number {
  return Math.round(value * 100) / 100;
}
