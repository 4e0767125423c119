/**
 * The timing as it was resolved, each of its rules with the numbers, and the verdict of
 * measurements.
 */
import type { Timing, TimingLimits } from 'incumbent';
import { formatDuration, timingViolations } from 'incumbent';
import { killMarginMs, shortestRunLeaseMs } from '../timing-flags.ts';
import type { Finding } from './finding.ts';
import type { Distribution } from './measure.ts';

const show = formatDuration;

export function timingFindings(timing: Timing, limits: TimingLimits = {}): Finding[] {
  const {
    leaseMs: d,
    beliefMs: h,
    stopMarginMs: g,
    renewEveryMs: r,
    operationTimeoutMs: x,
    retryBackoffMs: b,
    clockDrift: rho,
  } = timing;
  const k = killMarginMs(timing);
  const violations = timingViolations(timing, limits.minLeaseMs);
  const broken = (rule: string) => violations.some((sentence) => sentence.startsWith(`${rule} `));
  const rule = (name: string, sentence: string, isBroken = broken(name)): Finding => ({
    check: name,
    level: isBroken ? 'broken' : 'ok',
    message: sentence,
    detail: true,
  });
  const kept = (name: string, sentence: string): Finding => ({
    check: name,
    level: 'ok',
    message: sentence,
    onlyVerbose: true,
  });
  const neededMs = (h * (1 + rho)) / (1 - rho);
  const longestMs = Math.max(d, timing.stopTimeoutMs, timing.pollEveryMs);
  const findings: Finding[] = [
    {
      check: 'timing',
      level: 'note',
      message:
        `lease D ${show(d)}, belief H ${show(h)}, stop margin G ${show(g)}, renew every R ` +
        `${show(r)}, operation timeout X ${show(x)}, kill margin K ${show(k)}, clock drift ρ ` +
        `${rho * 100} %`,
      data: { ...timing, killMarginMs: k },
    },
    // Faults outside the numbered rules: a lease out of its range, a duration of zero.
    ...violations
      .filter((sentence) => !/^P\d /.test(sentence))
      .map((message): Finding => ({ check: 'timing', level: 'broken', message })),
  ];
  if (d < shortestRunLeaseMs) {
    findings.push({
      check: 'timing',
      level: 'warn',
      message: `a lease of ${show(d)} is too short for \`incumbent run\`, which takes ${show(shortestRunLeaseMs)} or more`,
    });
  }
  findings.push(
    rule(
      'P1',
      `H·(1+ρ)/(1−ρ) ≤ D: ${show(h)}·${round((1 + rho) / (1 - rho))} = ${show(neededMs)} ` +
        (broken('P1')
          ? `is more than ${show(d)}: with clocks of different rates an old leader could still believe when the next one begins`
          : `≤ ${show(d)}, so that an old leader has stopped believing before the next one begins, at whatever rates their clocks run`),
    ),
    rule(
      'P2',
      `0 < G < H − R: ${show(g)} ${broken('P2') ? 'is not between 0 and' : '<'} ${show(h)} − ` +
        `${show(r)} = ${show(h - r)}` +
        (broken('P2')
          ? ': work would be stopped before the first renewal could come'
          : ', so that a renewal comes before the stop'),
    ),
    rule(
      'P3',
      `R + 2·X + backoff ≤ H − G: ${show(r)} + 2·${show(x)} + ${show(b)} = ` +
        `${show(r + 2 * x + b)} ${broken('P3') ? 'is more than' : '≤'} ${show(h - g)}` +
        (broken('P3')
          ? ': one lost renewal would stop the work'
          : ', so that two full attempts fit before the stop'),
    ),
    kept('P4', 'one renewal at a time: kept by the library'),
    kept('P5', 'takeover delay and hooks run within our own belief, renewing: kept by the library'),
    kept(
      'P6',
      'takeover delay ≥ how long work may outlive its belief: 0 for `run`, which kills it; yours ' +
        'to set for work that no token fences',
    ),
    rule(
      'P7',
      `TERM → KILL within G: TERM ${show(g)} and KILL ${show(k)} before the belief ends, so a ` +
        `program has ${g > k && k > 0 ? show(g - k) : 'no time'} to stop`,
      !(g > k && k > 0),
    ),
    rule(
      'P8',
      `no delay of 2^31 ms or more: the longest is ${show(longestMs)}`,
      longestMs >= 2 ** 31,
    ),
    kept(
      'P9',
      `jitter is added to waits only (at most ${show(0.1 * r)}), never to H: kept by the library`,
    ),
  );
  if (findings.every(({ level }) => level !== 'broken')) {
    findings.push({
      check: 'rules',
      level: 'ok',
      message:
        'all hold: an old leader stops before the next one begins, and one lost renewal does not end ' +
        'a term (--verbose shows each rule with its numbers)',
      onlyPeople: true,
    });
  }
  return findings;
}

/** Whether what was measured leaves the timing its room. */
export function marginFindings(
  timing: Timing,
  measured: {
    readonly reads?: Distribution;
    readonly writes?: Distribution;
    readonly checks?: Distribution;
    readonly loopDelay?: Distribution;
  },
): Finding[] {
  const { operationTimeoutMs: x, stopMarginMs: g } = timing;
  const findings: Finding[] = [];
  for (const [what, samples] of [
    ['reads', measured.reads],
    ['writes', measured.writes],
    ['checks', measured.checks],
  ] as const) {
    if (samples === undefined) continue;
    findings.push(
      judge(`${what}-margin`, samples, {
        subject: `the store answers ${what}`,
        limit: 'the operation timeout X',
        limitMs: x,
        cure: 'lengthen the lease (or --operation-timeout), or use a nearer store',
      }),
    );
  }
  if (measured.loopDelay !== undefined) {
    findings.push(
      judge('loop-margin', measured.loopDelay, {
        subject: 'this process is on time',
        limit: 'the stop margin G',
        limitMs: g,
        cure: 'lengthen the lease (or --stop-margin), or give this machine less to do',
      }),
    );
  }
  return findings;
}

function judge(
  check: string,
  { p99Ms, maxMs }: Distribution,
  {
    subject,
    limit,
    limitMs,
    cure,
  }: {
    readonly subject: string;
    readonly limit: string;
    readonly limitMs: number;
    readonly cure: string;
  },
): Finding {
  const data = { ...(p99Ms === undefined ? {} : { p99Ms }), maxMs, limitMs };
  const of = `${limit} = ${show(limitMs)}`;
  // Of a few samples only the largest says anything.
  const typicalMs = p99Ms ?? maxMs;
  const typical = `${p99Ms === undefined ? 'max' : 'p99'} ${show(typicalMs)}`;
  if (typicalMs > limitMs) {
    const message = `${typical} is more than ${of}: ${cure}`;
    return { check, level: 'broken', message, data };
  }
  if (typicalMs > limitMs / 2) {
    const message = `${typical} is more than half of ${of}: ${cure}`;
    return { check, level: 'warn', message, data };
  }
  if (maxMs > limitMs) {
    const message = `once it took ${show(maxMs)}, more than ${of}; ${typical} is well below`;
    return { check, level: 'warn', message, data };
  }
  return {
    check,
    level: 'ok',
    message: `${subject} well within ${of}: ${p99Ms === undefined ? '' : `${typical}, `}max ${show(maxMs)}`,
    data,
    detail: true,
  };
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
