// Running programs from scripts. Uses node: modules only, because set-up runs it before anything
// is installed.
import { spawn } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** The command line of the entry file of an installed tool, run by this Node. */
export function tool(path, ...args) {
  return [process.execPath, resolve(root, 'node_modules', path), ...args];
}

export const tsc = (...args) => tool('typescript/bin/tsc', ...args);

/**
 * Runs a program and collects its output.
 *
 * @param {string[]} command the program and its arguments
 * @param {object} [options]
 * @param {string} [options.cwd] default: the repository
 * @param {NodeJS.ProcessEnv} [options.env] added to ours
 * @param {'collect' | 'inherit' | 'both'} [options.output] collect it (default), pass it through, or
 *   both; `inherit` keeps a terminal's colours and collects nothing
 * @param {AbortSignal} [options.input] its standard input ends when this is aborted; default: it has none
 * @param {number} [options.limitMs] it is killed when it runs longer; with `input`, when it runs that
 *   much longer than its input; default: no limit
 * @returns {Promise<{ code: number, output: string, stdout: string, timedOut: boolean, ms: number }>}
 *   `code` is 128 + n when signal n ended it, 127 when it could not be started; `output` is both
 *   streams as they came
 */
export function run(
  [program, ...args],
  { cwd = root, env, output = 'collect', input, limitMs } = {},
) {
  const startMs = performance.now();
  return new Promise((done) => {
    const through = output === 'inherit' ? 'inherit' : 'pipe';
    const child = spawn(program, args, {
      cwd,
      stdio: [input === undefined ? 'ignore' : 'pipe', through, through],
      env: { ...process.env, ...env },
    });
    // It may have ended before.
    child.stdin?.on('error', () => {});
    const endInput = () => {
      child.stdin.end();
      startLimit();
    };
    let collected = '';
    let stdout = '';
    let timedOut = false;
    for (const [stream, target] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        collected += text;
        if (stream === child.stdout) stdout += text;
        if (output === 'both') target.write(text);
      });
    }
    let limit;
    const startLimit = () => {
      if (limitMs === undefined) return;
      limit = setTimeout(() => {
        timedOut = true;
        child.kill('SIGTERM');
        setTimeout(() => child.kill('SIGKILL'), 10_000).unref();
      }, limitMs);
    };
    if (input === undefined) startLimit();
    else if (input.aborted) endInput();
    else input.addEventListener('abort', endInput, { once: true });
    const finish = (code, note = '') => {
      clearTimeout(limit);
      input?.removeEventListener('abort', endInput);
      const ms = performance.now() - startMs;
      done({ code, output: collected + note, stdout, timedOut, ms });
    };
    child.once('error', (error) => finish(127, `${program}: ${error.message}\n`));
    child.once('close', (code, signal) => finish(code ?? 128 + (signalNumbers[signal] ?? 0)));
  });
}

const signalNumbers = { SIGHUP: 1, SIGINT: 2, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15 };

/** Like `run`, but prints the output and ends this process when the program fails. */
export async function must(command, options) {
  const result = await run(command, options);
  if (result.code !== 0) {
    process.stdout.write(result.output);
    console.error(`failed with exit code ${result.code}: ${shown(command)}`);
    process.exit(1);
  }
  return result;
}

/** A command line for people: paths relative to the repository. */
export function shown(command) {
  return command
    .map((part) => part.replace(process.execPath, 'node').replace(`${root}/`, ''))
    .join(' ');
}

export function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}
