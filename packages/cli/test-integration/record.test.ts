// `incumbent record` on a file store, killed again and again while leaders change quickly.
import { join } from 'node:path';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { expect, test } from 'vitest';
import { incumbent, jsonLines, scratch, start } from './support/bin.ts';

const kills = Number(process.env['INCUMBENT_RECORDER_KILLS'] ?? 5);
const names = ['one', 'two', 'three', 'four', 'five', 'six'];
/** The store keeps 50: a recorder that has not read it after so many terms is waited for. */
const mostTermsUnread = 40;

/** An election whose leader resigns at once, again and again. */
class Restless {
  readonly name: string;
  readonly led: string[] = [];
  readonly #over: Promise<void>;
  #unread = 0;
  #isOver = false;
  #goOn = () => {};
  #changed = () => {};

  constructor(name: string, directory: string) {
    this.name = name;
    this.#over = this.#lead(directory);
  }

  /** A recorder says that it has read all. */
  wasRead(): void {
    this.#unread = 0;
    this.#goOn();
  }

  nextTerm(): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = resolve;
    });
  }

  end(): Promise<void> {
    this.#isOver = true;
    this.#goOn();
    return this.#over;
  }

  async #lead(directory: string): Promise<void> {
    const { name } = this;
    const backend = file(directory);
    const candidates = ['a', 'b'].map((id) => createElection({ name, backend, candidate: { id } }));
    for (let at = 0; !this.#isOver; at += 1) {
      const term = await candidates[at % candidates.length]!.campaign();
      this.led.push(String(term.token));
      await term[Symbol.asyncDispose]();
      this.#unread += 1;
      this.#changed();
      if (this.#unread < mostTermsUnread || this.#isOver) continue;
      await new Promise<void>((resolve) => {
        this.#goOn = resolve;
      });
    }
    await Promise.all(candidates.map((candidate) => candidate.close()));
  }
}

test(`a recorder that is killed ${kills} times loses no term, and writes none twice`, async () => {
  const place = scratch();
  const directory = join(place, 'store');
  const path = join(place, 'history.db');
  const record = () => start(['record', '--store', `file:${directory}`, '--to', path, '--json']);
  const elections = names.map((name) => new Restless(name, directory));

  for (let kill = 0; kill < kills; kill += 1) {
    const recorder = record();
    // While it reads what the store keeps, when it has read that, and 1 to 3 terms later.
    const isEarly = kill % 5 === 1;
    await recorder.printed(isEarly ? /"recording"/ : /"read"/);
    if (!isEarly) {
      for (const election of elections) election.wasRead();
      for (let terms = kill % 4; terms > 0; terms -= 1) await elections[0]!.nextTerm();
    }
    recorder.child.kill('SIGKILL');
    expect((await recorder.result).stderr).toBe('');
  }
  await Promise.all(elections.map((election) => election.end()));
  const last = record();
  await last.printed(/"read"/);
  last.child.kill('SIGTERM');
  await last.result;

  for (const { name, led } of elections) {
    const history = ['history', '-e', name, '--json'];
    const kept = await incumbent([...history, '--store', `file:${directory}`]);
    const recorded = await incumbent([...history, '--from', path]);
    const rows = jsonLines(recorded.stdout);
    expect(rows.map(({ token }) => token)).toEqual(led);
    // The store cannot tell the gap before the first one that it keeps.
    const [, ...known] = jsonLines(kept.stdout);
    expect(rows.slice(-known.length)).toEqual(known);
  }
});
