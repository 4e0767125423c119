import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createElection } from 'incumbent';
import type { Context } from '../context.ts';
import { Fleet } from '../demo/fleet.ts';
import { inSeconds, leastColumns, picture, pictureRows } from '../demo/picture.ts';
import { Scene } from '../demo/scene.ts';
import { Screen } from '../demo/screen.ts';
import type { Act } from '../demo/snapshot.ts';
import { acts } from '../demo/snapshot.ts';
import type { Telling } from '../demo/story.ts';
import { candidateIds, play } from '../demo/story.ts';
import { WebStage } from '../demo/web-stage.ts';
import { CommandError, exitCodes, InterruptedError, UsageError } from '../failure.ts';
import type { DemoOptions, ListenAddress } from '../options.ts';
import { painter } from '../terminal/style.ts';
import { padStart, toJson } from '../terminal/text.ts';
import { FencedLog } from '../trial/fenced-log.ts';
import type { Violation } from '../trial/judge.ts';
import { waitUntil } from '../trial/wait-until.ts';
import { LiveValues } from '../web/live-values.ts';
import { ActionError, servePage } from '../web/page-server.ts';
import { within } from '../within.ts';

const lease = '3s';
/** The whole story takes some 15 s. */
const longestMs = 55_000;
/** In the browser. The log grows by some 1 MB a minute. */
const longestWebMs = 1_800_000;
const frameMs = 100;

export async function demo(options: DemoOptions, context: Context): Promise<number> {
  if (context.platform === 'win32') {
    throw new CommandError('UNSUPPORTED', exitCodes.usage, '`demo` needs Linux or macOS');
  }
  if (options.listen !== undefined && options.web !== true) {
    throw new UsageError('--listen says where --web is served: give --web as well');
  }
  const { stdout, env } = context;
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'incumbent-demo-')));
  const paint = painter(stdout, env);
  const scene = new Scene(candidateIds);
  const log = new FencedLog(join(directory, 'fenced.log'));
  const store = await context.openStore(`file:${encodeURI(join(directory, 'store'))}`, {
    timeoutMs: longestMs,
    signal: context.signal,
  });
  const fleet = new Fleet({ election: 'demo', store: store.url, lease }, log, scene);

  const columns = () => stdout.columns ?? 80;
  const live =
    stdout.isTTY === true &&
    options.json !== true &&
    options.web !== true &&
    env['TERM'] !== 'dumb' &&
    columns() >= leastColumns &&
    (stdout.rows ?? 24) > pictureRows;
  const screen = live ? new Screen(stdout, () => picture(scene, columns(), paint)) : undefined;
  const print = (sentence: string, fields: object) => {
    const line = options.json
      ? toJson({ elapsedMs: Math.round(scene.nowMs), ...fields })
      : `${paint('faint', padStart(inSeconds(scene.nowMs, 1), 6))}  ${sentence}`;
    stdout.write(`${line}\n`);
  };
  const tell = ({ sentence, ...fields }: Telling) => {
    if (!live) print(`${sentence.startsWith('→') ? '  ' : ''}${sentence}`, fields);
  };
  // A second Ctrl-C ends this process at once.
  const lastResort = () => {
    fleet.killNow();
    screen?.restore();
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', lastResort);

  try {
    const election = createElection({ name: fleet.election, backend: store.backend, lease });
    try {
      const vacate = () => election.vacate({ signal: context.signal });
      if (options.web === true) {
        const stage = new WebStage(scene, fleet, log, vacate);
        const show = (url: string) => print(`open ${url}`, { event: 'serving', url });
        await serve(stage, fleet, options.listen, show, context.signal);
      } else {
        log.onEffect((effect) => scene.works(effect));
        await within(longestMs, 'the demo', context.signal, (signal) =>
          Promise.race([play({ scene, fleet, log, tell, vacate }, signal), fleet.broken]),
        );
      }
    } finally {
      await election.close();
      scene.freeze();
    }
    const left = await fleet.end();
    log.read();
    const { judge } = log;
    const violations = judge.violations();
    const overlaps = judge.overlaps().length;
    const good = violations.length === 0 && left === 0;
    scene.verdict.push({ good, text: sumUp(judge.effects, judge.terms.length, overlaps) });
    scene.verdict.push(...violations.slice(0, 3).map((each) => ({ good, text: inWords(each) })));
    if (left > 0) scene.verdict.push({ good, text: `${left} processes have not ended` });
    const fields = {
      effects: judge.effects,
      terms: judge.terms.length,
      overlaps,
      violations,
      left,
    };
    if (options.json) print('', { event: 'verdict', ...fields });
    else if (!live) for (const { text } of scene.verdict) print(text, {});
    if (!good && !options.json) {
      for (const violation of violations.slice(3)) print(inWords(violation), {});
    }
    return good ? exitCodes.ok : exitCodes.no;
  } finally {
    await fleet.end();
    screen?.close();
    log.close();
    process.off('exit', lastResort);
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Until Ctrl-C, or until its time is over. */
async function serve(
  stage: WebStage,
  fleet: Fleet,
  address: ListenAddress = { host: '127.0.0.1', port: 0 },
  show: (url: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const live = new LiveValues();
  const server = await servePage({
    address,
    page: 'demo',
    live,
    act: async (action) => {
      await stage.act(...readAction(action));
      return {};
    },
  });
  const frame = setInterval(() => live.set('stage', stage.snapshot()), frameMs);
  try {
    for (const id of candidateIds) fleet.start(id);
    show(server.url);
    const isOver = waitUntil(() => false, longestWebMs, signal).catch((error: unknown) => {
      // Its usual end.
      if (!(error instanceof InterruptedError)) throw error;
    });
    await Promise.race([isOver, fleet.broken]);
  } finally {
    clearInterval(frame);
    server.close();
  }
}

/** @throws ActionError */
function readAction(action: unknown): [act: Act, candidate: string] {
  const { act, candidate } = Object(action) as Record<string, unknown>;
  const known = acts.find((each) => each === act);
  if (known === undefined || typeof candidate !== 'string') {
    throw new ActionError(`an action is one of ${acts.join(', ')}, with a candidate`);
  }
  return [known, candidate];
}

function sumUp(effects: number, terms: number, overlaps: number): string {
  const many = effects.toLocaleString('en').replaceAll(',', ' ');
  return `${many} effects of ${terms} terms in the fenced log: ${overlaps} overlap${overlaps === 1 ? '' : 's'}`;
}

function inWords({ guarantee, message }: Violation): string {
  return `${guarantee}: ${message}`;
}
