import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Stage } from './session.ts';

const boundMs = 60_000;

interface Line {
  /** The connection that the line is about, if that matters. */
  readonly by?: string;
  readonly ask?: 'cut' | 'heal' | 'expire';
}

/**
 * Runs a program that holds the session. It is called with the three addresses of the stage, and
 * writes lines of JSON. With `ask` it wants a fault, and waits for a line when that has come. All
 * other lines are the transcript. Rejects if the program fails or writes to stderr.
 */
export async function runProgram(
  command: string,
  args: readonly string[],
  stage: Stage,
): Promise<void> {
  const child = spawn(command, [...args, stage.main, stage.other, stage.passers], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  const timer = setTimeout(kill, boundMs);
  const ended = new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(String(code ?? signal)));
  });
  let complaints = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  let last = '';
  try {
    for await (const line of createInterface(child.stdout)) {
      const { ask, by } = JSON.parse(line) as Line;
      if (ask === undefined) {
        stage.say(line, by);
        last = line;
      } else {
        await stage.ask(ask);
        child.stdin.write('\n');
      }
    }
    const how = await ended;
    if (how !== '0' || complaints !== '') {
      throw new Error(`the session ended with ${how} after ${last}\n${complaints}`);
    }
  } finally {
    kill();
    clearTimeout(timer);
    process.off('exit', kill);
  }
}
