import type { Timing, TimingLimits } from 'incumbent';
import { createElection, deriveTiming, formatDuration, parseDuration } from 'incumbent';
import { bounded, leave, missingPlace, patientTiming } from '../ask.ts';
import type { Context, OpenStore } from '../context.ts';
import type { Finding, Section } from '../doctor/finding.ts';
import { levelTones, sectionOf } from '../doctor/finding.ts';
import type { Distribution } from '../doctor/measure.ts';
import { describeDistribution, sample, watchEventLoop } from '../doctor/measure.ts';
import { marginFindings, timingFindings } from '../doctor/rules.ts';
import { scratchOn } from '../doctor/scratch.ts';
import { describeFailure, exitCodes } from '../failure.ts';
import type { DoctorOptions } from '../options.ts';
import { painter } from '../terminal/style.ts';
import { padEnd, toJson, visible, wrap } from '../terminal/text.ts';
import { timingOf } from '../timing-flags.ts';
import { UnusableStoreError } from '../unusable.ts';

/** Longer than this one kind of measurement does not take. */
const enoughSamplingMs = 10_000;

export async function doctor(options: DoctorOptions, context: Context): Promise<number> {
  const timeoutMs = parseDuration('--timeout', options.timeout);
  const loopMs = parseDuration('--watch-loop', options.watchLoop);
  const report = reporter(options, context);
  const subject = await openSubject(options, timeoutMs, context);
  const { limits } = subject;
  const timing = deriveTiming(timingOf(options, limits), limits);
  if (subject.store !== undefined) checkName(options.election, subject.store);
  report({
    check: 'store',
    level: 'note',
    message: `${subject.url} (${originWords[subject.origin]})`,
    data: { url: subject.url, origin: subject.origin },
  });
  // Servers tell of their clock among the rest.
  if (subject.store !== undefined && subject.store.servers === undefined) {
    report(noClockFinding(subject.store));
  }
  let latencies: Latencies = {};
  let storeExitCode: number = exitCodes.ok;
  // The timing can be judged without the store.
  try {
    if (subject.store === undefined) throw subject.failure;
    latencies = await examineStore(options, timeoutMs, subject.store, context, timing, report);
  } catch (error) {
    context.signal.throwIfAborted();
    if (error instanceof UnusableStoreError) {
      for (const finding of error.findings()) report(finding);
    }
    const { exitCode, message, code } = describeFailure(error);
    storeExitCode = exitCode;
    report({ check: 'store', level: 'broken', message, data: { code } });
  }
  const loopDelay = await watchEventLoop(loopMs, context.signal);
  report({
    check: 'event-loop',
    level: 'note',
    message: `timers fired late, ${describeDistribution(loopDelay)}; a busy process adds its own`,
    data: { ...loopDelay },
  });
  for (const finding of timingFindings(timing, limits)) report(finding);
  for (const finding of marginFindings(timing, { ...latencies, loopDelay })) report(finding);
  return report.conclude(storeExitCode);
}

interface Latencies {
  readonly reads?: Distribution;
  readonly writes?: Distribution;
  /** Checks that a leader makes every R, where such a check is no write. */
  readonly checks?: Distribution;
}

type Report = (finding: Finding) => void;
type Bound = <T>(job: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** The store; or the failure to open it, with the facts that are known all the same. */
type Subject = Pick<OpenStore, 'url' | 'origin'> & {
  readonly limits: TimingLimits | undefined;
} & (
    | { readonly store: OpenStore; readonly failure?: undefined }
    | { readonly store?: undefined; readonly failure: UnusableStoreError }
  );

async function openSubject(
  { store: url, lease }: DoctorOptions,
  timeoutMs: number,
  context: Context,
): Promise<Subject> {
  const { signal } = context;
  try {
    const needs = { timeoutMs, timeoutName: '--timeout', signal, lease };
    const store = await context.openStore(url, needs);
    return { url: store.url, origin: store.origin, limits: store.backend.limits, store };
  } catch (error) {
    if (!(error instanceof UnusableStoreError)) throw error;
    const { url: shown, origin, limits } = error.known;
    return { url: shown, origin, limits, failure: error };
  }
}

const originWords: Readonly<Record<OpenStore['origin'], string>> = {
  '--store': 'from --store',
  INCUMBENT_STORE: 'from INCUMBENT_STORE',
  default: 'the default',
};

/** Measures the store on an election that no candidate uses. */
async function examineStore(
  options: DoctorOptions,
  timeoutMs: number,
  store: OpenStore,
  context: Context,
  timing: Timing,
  report: Report,
): Promise<Latencies> {
  const bound = <T>(job: (signal: AbortSignal) => Promise<T>) =>
    bounded(timeoutMs, store.url, context.signal, job);
  const reportAll = (findings: readonly Finding[]) => {
    for (const finding of findings) report(finding);
  };
  const { servers } = store;
  if (servers !== undefined) {
    const { election } = options;
    reportAll(await bound((signal) => servers.examine({ timing, timeoutMs, signal, election })));
  }
  const scratch = await bound((signal) => scratchOn(store, signal));
  const { election: named } = options;
  if ('unmeasured' in scratch) {
    const { unmeasured: message, mayLook } = scratch;
    report({ check: 'scratch', level: 'note', message: `nothing is measured: ${message}` });
    if (named !== undefined && mayLook)
      report(await electionFinding(named, timeoutMs, store, bound));
    return {};
  }
  const { name } = scratch;
  const election = createElection({
    name,
    backend: scratch.backend,
    candidate: { id: 'incumbent-doctor' },
    ...patientTiming(timeoutMs, scratch.backend.limits),
  });
  // Also after an interruption. An error here repeats one that was reported before.
  const cleanUp = (job: (signal: AbortSignal) => Promise<void>) =>
    bounded(timeoutMs, store.url, new AbortController().signal, job).catch(() => {});
  try {
    reportAll(await bound(async (signal) => (await scratch.lookFirst?.(named, signal)) ?? []));
    await bound((signal) => election.init({ signal }));
    const found = await bound((signal) => scratch.look(named, signal));
    reportAll(found);
    // Not said twice.
    const isDamaged = found.some(({ level }) => level === 'broken');
    const isMissing =
      named !== undefined &&
      (await bound((signal) => missingPlace(store, named, signal))) !== undefined;
    if (named !== undefined && !isDamaged && !isMissing) {
      report(await electionFinding(named, timeoutMs, store, bound));
    }
    const term = await bound((signal) => election.campaign({ signal, wait: timeoutMs }));
    try {
      const writes = await sample(options.samples, enoughSamplingMs, (i) =>
        bound((signal) => term.proclaim({ metadata: { sample: String(i) } }, { signal })),
      );
      const reads = await sample(options.samples, enoughSamplingMs, () =>
        bound((signal) => election.inspect({ signal })),
      );
      report(latencyFinding('reads', reads));
      report(latencyFinding('writes', writes));
      if (servers?.check === undefined) return { reads, writes };
      const checks = await sample(options.samples, enoughSamplingMs, () =>
        bound(async (signal) => servers.check?.(signal)),
      );
      report(latencyFinding('checks', checks));
      return { reads, writes, checks };
    } finally {
      await cleanUp(() => term[Symbol.asyncDispose]());
    }
  } finally {
    await cleanUp(() => election.close());
    const { remove } = scratch;
    if (remove !== undefined) await cleanUp(remove);
    else {
      report({
        check: 'scratch',
        level: 'note',
        message: `the record of the election "${name}", on which writes were measured, stays there`,
        data: { election: name },
      });
    }
  }
}

/** The state of the election itself: a damaged record is not the store's fault. */
async function electionFinding(
  name: string,
  timeoutMs: number,
  { backend }: OpenStore,
  bound: Bound,
): Promise<Finding> {
  const election = createElection({ name, backend, ...patientTiming(timeoutMs, backend.limits) });
  try {
    const { view, leaseMs } = await bound((signal) => election.inspect({ signal }));
    const lease = leaseMs === undefined ? '' : `, held with a lease of ${formatDuration(leaseMs)}`;
    return {
      check: 'election',
      level: 'note',
      message: `"${name}" is ${view.state}${lease}`,
      data: { election: name, state: view.state, leaseMs: leaseMs ?? null },
    };
  } catch (error) {
    const { code, message } = describeFailure(error);
    if (code !== 'RECORD_DAMAGED' && code !== 'RECORD_TOO_NEW') throw error;
    return { check: 'election', level: 'broken', message, data: { election: name, code } };
  } finally {
    leave(election);
  }
}

function latencyFinding(check: 'reads' | 'writes' | 'checks', measured: Distribution): Finding {
  const message = describeDistribution(measured);
  return { check, level: 'note', message, data: { ...measured } };
}

function noClockFinding({ backend }: OpenStore): Finding {
  const one = backend.kind === 'file' || backend.kind === 'memory';
  return {
    check: 'clock',
    level: 'note',
    message: one
      ? 'not applicable: all candidates of this store share the clocks of this machine'
      : `not applicable: the ${backend.kind} store has no clock that this version can ask`,
  };
}

/** Fails on a name that the store cannot take, before anything is measured. */
function checkName(name: string | undefined, { backend }: OpenStore): void {
  if (name === undefined) return;
  leave(createElection({ name, backend }));
}

interface Reporter extends Report {
  /** Says how it went. @returns the exit code */
  conclude(storeExitCode: number): number;
}

/** Columns before a message. */
const messageAt = 23;

function reporter({ json, verbose }: DoctorOptions, { stdout, env }: Context): Reporter {
  const paint = painter(stdout, env);
  const width = stdout.isTTY === true ? stdout.columns : undefined;
  const counts = { ok: 0, note: 0, warn: 0, broken: 0 };
  /** Of many lines these are the ones to read. */
  const toRead: string[] = [];
  let section: Section | undefined;
  const lineOf = ({ check, level, message }: Finding): string => {
    const lines = wrap(visible(message), width === undefined ? undefined : width - messageAt);
    const text = lines.join(`\n${' '.repeat(messageAt)}`);
    return `${paint(levelTones[level], padEnd(level, 6))}  ${padEnd(check, 13)}  ${text}`;
  };
  const tellPeople = (finding: Finding): void => {
    if (finding.detail && finding.level === 'ok' && !verbose) return;
    const next = sectionOf(finding);
    if (next !== section) {
      stdout.write(`${section === undefined ? '' : '\n'}${paint('strong', next)}\n`);
      section = next;
    }
    const line = lineOf(finding);
    stdout.write(`${line}\n`);
    if (finding.level === 'broken' || finding.level === 'warn') toRead.push(line);
  };
  const report = (finding: Finding): void => {
    if (finding.onlyPeople && (json || verbose)) return;
    counts[finding.level] += 1;
    if (finding.onlyVerbose && !verbose) return;
    const { check, level, message, data } = finding;
    if (!json) tellPeople(finding);
    else stdout.write(`${toJson({ check, level, message, ...(data && { data }) })}\n`);
  };
  return Object.assign(report, {
    conclude(storeExitCode: number): number {
      const { warn, broken } = counts;
      const exitCode = storeExitCode === exitCodes.ok && broken > 0 ? exitCodes.no : storeExitCode;
      const warnings = `${warn} ${warn === 1 ? 'warning' : 'warnings'}`;
      const message = `${broken === 0 ? 'nothing' : broken} broken, ${warnings}`;
      const level = broken > 0 ? 'broken' : warn > 0 ? 'warn' : 'ok';
      if (json) {
        const data = { broken, warnings: warn };
        stdout.write(`${toJson({ check: 'result', level, message, data })}\n`);
        return exitCode;
      }
      const again = toRead.length === 0 ? '' : `${toRead.join('\n')}\n`;
      stdout.write(`\n${again}${paint(levelTones[level], message)}\n`);
      return exitCode;
    },
  });
}
