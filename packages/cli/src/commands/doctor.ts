import { randomBytes } from 'node:crypto';
import { createElection, deriveTiming, formatDuration, parseDuration } from 'incumbent';
import { leave, missingDirectory, patientTiming, within } from '../ask.ts';
import type { Context, OpenStore } from '../context.ts';
import {
  fileStoreFindings,
  firstMissing,
  removeElection,
  removeEmpty,
} from '../doctor/file-store.ts';
import type { Finding } from '../doctor/finding.ts';
import { levelTones } from '../doctor/finding.ts';
import type { Distribution } from '../doctor/measure.ts';
import { describeDistribution, sample, watchEventLoop } from '../doctor/measure.ts';
import { marginFindings, timingFindings } from '../doctor/rules.ts';
import { describeFailure, exitCodes } from '../failure.ts';
import type { DoctorOptions } from '../options.ts';
import { painter } from '../output/style.ts';
import { padEnd, toJson, visible } from '../output/text.ts';
import { timingOf } from '../timing-flags.ts';

/** Longer than this one kind of measurement does not take. */
const enoughSamplingMs = 10_000;

export async function doctor(options: DoctorOptions, context: Context): Promise<number> {
  const timeoutMs = parseDuration('--timeout', options.timeout);
  const loopMs = parseDuration('--watch-loop', options.watchLoop);
  const store = await context.openStore(options.store);
  const { limits } = store.backend;
  const timing = deriveTiming(timingOf(options), limits);
  checkName(options.election, store);

  const report = reporter(options, context);
  report({
    check: 'store',
    level: 'note',
    message: `${store.url} (${originWords[store.origin]})`,
    data: { url: store.url, origin: store.origin },
  });
  const bound = <T>(job: (signal: AbortSignal) => Promise<T>) =>
    within(timeoutMs, store.url, context.signal, job);
  let latencies: Latencies = {};
  let storeExitCode: number = exitCodes.ok;
  // The timing can be judged without the store.
  try {
    latencies = await examineStore(options, timeoutMs, store, bound, report);
  } catch (error) {
    context.signal.throwIfAborted();
    const { exitCode, message, code } = describeFailure(error);
    storeExitCode = exitCode;
    report({ check: 'store', level: 'broken', message, data: { code } });
  }
  report(clockFinding(store));
  const loopDelay = await watchEventLoop(loopMs, context.signal);
  report({
    check: 'event-loop',
    level: 'note',
    message: `timers of this idle process fire late by: ${describeDistribution(loopDelay)}; a busy one adds its own`,
    data: { ...loopDelay },
  });
  for (const finding of timingFindings(timing, limits)) report(finding);
  for (const finding of marginFindings(timing, { ...latencies, loopDelay })) report(finding);
  return report.conclude(storeExitCode);
}

interface Latencies {
  readonly reads?: Distribution;
  readonly writes?: Distribution;
}

type Bound = <T>(job: (signal: AbortSignal) => Promise<T>) => Promise<T>;
type Report = (finding: Finding) => void;

const originWords: Readonly<Record<OpenStore['origin'], string>> = {
  '--store': 'from --store',
  INCUMBENT_STORE: 'from INCUMBENT_STORE',
  default: 'the default',
};

/** Measures the store on an election that is nobody's. */
async function examineStore(
  options: DoctorOptions,
  timeoutMs: number,
  store: OpenStore,
  bound: Bound,
  report: Report,
): Promise<Latencies> {
  const { directory, backend } = store;
  // A name of its own can be removed again. Where it cannot, it is always the same.
  const name =
    directory === undefined
      ? 'incumbent-doctor'
      : `incumbent-doctor-${randomBytes(6).toString('hex')}`;
  const election = createElection({
    name,
    backend,
    candidate: { id: 'incumbent-doctor' },
    ...patientTiming(timeoutMs),
  });
  // Also after an interruption; and what fails here has failed before.
  const cleanUp = (job: () => Promise<void>) =>
    within(timeoutMs, store.url, new AbortController().signal, job).catch(() => {});
  const made = directory === undefined ? undefined : await firstMissing(directory);
  try {
    await bound((signal) => election.init({ signal }));
    if (made !== undefined) {
      report({
        check: 'store',
        level: 'warn',
        message: `the directory ${directory} did not exist: nobody has used it, or another one is meant`,
        data: { directory },
      });
    }
    const found =
      directory === undefined
        ? []
        : await bound(() => fileStoreFindings(directory, options.election));
    for (const finding of found) report(finding);
    // Not said twice.
    const isDamaged = found.some(({ level }) => level === 'broken');
    const isMissing =
      options.election !== undefined &&
      (await missingDirectory(store, options.election)) !== undefined;
    if (options.election !== undefined && !isDamaged && !isMissing) {
      report(await electionFinding(options.election, timeoutMs, store, bound));
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
      return { reads, writes };
    } finally {
      await cleanUp(() => term[Symbol.asyncDispose]());
    }
  } finally {
    await cleanUp(() => election.close());
    if (directory === undefined) {
      report({
        check: 'scratch',
        level: 'note',
        message: `the record of the election "${name}", on which writes were measured, stays there`,
        data: { election: name },
      });
    } else {
      await cleanUp(() => removeElection(directory, name));
      if (made !== undefined) await cleanUp(() => removeEmpty(directory, made));
    }
  }
}

/** What the election itself is like: a damaged record is not the store's fault. */
async function electionFinding(
  name: string,
  timeoutMs: number,
  { backend }: OpenStore,
  bound: Bound,
): Promise<Finding> {
  const election = createElection({ name, backend, ...patientTiming(timeoutMs) });
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

function latencyFinding(check: 'reads' | 'writes', measured: Distribution): Finding {
  const message = describeDistribution(measured);
  return { check, level: 'note', message, data: { ...measured } };
}

function clockFinding({ backend }: OpenStore): Finding {
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

function reporter({ json, verbose }: DoctorOptions, { stdout, env }: Context): Reporter {
  const paint = painter(stdout, env);
  const repeated: string[] = [];
  const counts = { ok: 0, note: 0, warn: 0, broken: 0 };
  const report = (finding: Finding): void => {
    counts[finding.level] += 1;
    const { check, level, message, data, onlyVerbose } = finding;
    if (onlyVerbose && !verbose) return;
    const line = json
      ? toJson({ check, level, message, ...(data === undefined ? {} : { data }) })
      : `${paint(levelTones[level], padEnd(level, 6))}  ${padEnd(check, 13)}  ${visible(message)}`;
    stdout.write(`${line}\n`);
    if (level === 'broken' && !json) repeated.push(line);
  };
  return Object.assign(report, {
    conclude(storeExitCode: number): number {
      const { warn, broken } = counts;
      const exitCode = storeExitCode === exitCodes.ok && broken > 0 ? exitCodes.no : storeExitCode;
      const warnings = `${warn} ${warn === 1 ? 'warning' : 'warnings'}`;
      const message = `${broken === 0 ? 'nothing' : broken} broken, ${warnings}`;
      const level = broken > 0 ? 'broken' : warn > 0 ? 'warn' : 'ok';
      // Of twenty lines these are the ones to read.
      if (repeated.length > 0) stdout.write(`\n${repeated.join('\n')}\n`);
      stdout.write(
        json
          ? `${toJson({ check: 'result', level, message, data: { broken, warnings: warn } })}\n`
          : `${paint(levelTones[level], message)}\n`,
      );
      return exitCode;
    },
  });
}
