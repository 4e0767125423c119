/** Times and spans for people, by the clock of the command. */

/** `42 s`, `3 min 12 s`, `2 h 5 min`, `3 d 4 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1_440)} d ${Math.floor((minutes % 1_440) / 60)} h`;
}

/** `10,000`. */
export function grouped(count: number): string {
  return count.toLocaleString('en');
}

export function clockTime(unixMs: number): string {
  const date = new Date(unixMs);
  return Number.isNaN(date.getTime()) ? 'at no valid time' : date.toLocaleString();
}
