import { UsageError } from './failure.ts';

const unitMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const longestSpanMs = 36_500 * 86_400_000;

const howTo =
  'write a time such as 2030-05-01T06:00 (local), 2030-05-01T06:00Z or 2030-05-01T06:00+02:00, or ' +
  'a duration such as 90m, 2h or 3d';

/**
 * Reads `--until`: a duration from now, or a time. Without a zone it is local. A day alone begins
 * at local midnight (and not, as JavaScript has it, at midnight UTC).
 * @throws UsageError
 */
export function parseUntil(text: string, nowUnixMs: number): number {
  const trimmed = text.trim();
  const spanMs = parseSpan(trimmed);
  const untilUnixMs = spanMs === undefined ? parseTime(trimmed) : nowUnixMs + spanMs;
  if (untilUnixMs === undefined) {
    const why = /^[+-]?[\d.]+$/.test(trimmed) ? 'has no unit' : 'is neither a time nor a duration';
    throw new UsageError(`--until "${text}" ${why}: ${howTo}`);
  }
  if (untilUnixMs <= nowUnixMs) {
    throw new UsageError(`--until "${text}" is not in the future; --lift ends a drain`);
  }
  // A time near the end of the range of Date is of no use; this also catches Infinity.
  if (!(untilUnixMs < Date.UTC(10_000, 0))) {
    throw new UsageError(`--until "${text}" is beyond the year 9999`);
  }
  return untilUnixMs;
}

/**
 * Reads a span of which days are the usual unit.
 * @param option its name
 * @throws UsageError
 */
export function parseSpanOf(option: string, text: string): number {
  const ms = parseSpan(text.trim());
  if (ms === undefined) {
    throw new UsageError(`${option} "${text}" is not a duration: write 90d, 12h, 30m or 45s`);
  }
  if (!(ms > 0 && ms <= longestSpanMs)) {
    throw new UsageError(`${option} "${text}" must be more than nothing, and at most 36500d`);
  }
  return ms;
}

function parseSpan(text: string): number | undefined {
  const match = /^([+-]?(?:\d+(?:\.\d+)?|\.\d+))\s*([smhd])$/.exec(text);
  const factor = unitMs[match?.[2] ?? ''];
  return match === null || factor === undefined ? undefined : Number(match[1]) * factor;
}

function parseTime(text: string): number | undefined {
  const match =
    /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3})\d*)?)?\s*([Zz]|[+-]\d\d:?\d\d)?)?$/.exec(
      text,
    );
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map((i) =>
    Number(match[i] ?? 0),
  ) as [number, number, number, number, number, number];
  const ms = Number((match[7] ?? '0').padEnd(3, '0'));
  const parts = [year, month - 1, day, hour, minute, second, ms] as const;
  // Checked as UTC, which has no gaps: 30 February would silently become a day in March.
  const asUtc = new Date(Date.UTC(...parts));
  const exists =
    asUtc.getUTCMonth() === month - 1 &&
    asUtc.getUTCDate() === day &&
    asUtc.getUTCHours() === hour &&
    asUtc.getUTCMinutes() === minute &&
    asUtc.getUTCSeconds() === second;
  if (!exists) throw new UsageError(`--until "${text}" is no day and time of the calendar`);
  const zone = match[8];
  if (zone === undefined) return new Date(...parts).getTime();
  return asUtc.getTime() - zoneOffsetMs(zone);
}

/** `Z`, `+02:00`, `-0730` */
function zoneOffsetMs(zone: string): number {
  if (/^z$/i.test(zone)) return 0;
  const sign = zone.startsWith('-') ? -1 : 1;
  return sign * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2))) * 60_000;
}
