import type { Auditor, Seen } from '../auditor.ts';
import type { Gate } from '../gate.ts';
import { describe, isTrouble } from '../outcome.ts';

/** Nodes that come, change and go by the auditor's hand; the players watch them. */
export class WatchedTree {
  readonly root: string;
  readonly paths: readonly string[];
  /** It only counts up. */
  readonly followed: string;
  readonly #auditor: Auditor;
  #count = 0;

  constructor(root: string, size: number, auditor: Auditor) {
    this.root = root;
    this.paths = Array.from({ length: size }, (_, k) => `${root}/w-${k}`);
    this.followed = `${root}/followed`;
    this.#auditor = auditor;
  }

  async prepare(): Promise<void> {
    await this.#auditor.create(this.root);
    for (const path of [...this.paths, this.followed]) await this.#auditor.create(path, '0');
  }

  /** Most nodes change once between two inspections, so that no later event hides a lost one. */
  start(gate: Gate, random: () => number, onProblem: (what: string) => void): void {
    let next = 0;
    void gate.loop(
      () => 60 + random() * 80,
      async () => {
        const path = this.paths[next % this.paths.length] as string;
        next += 1;
        await this.#change(path, random(), onProblem);
      },
    );
    void gate.loop(
      () => 20 + random() * 60,
      async () => {
        this.#count += 1;
        await this.#try(onProblem, () =>
          this.#auditor.client.set(this.followed, String(this.#count)),
        );
      },
    );
  }

  /** Behind a sync. */
  async truth(): Promise<ReadonlyMap<string, Seen>> {
    const all = [...this.paths, this.followed];
    const seen = await Promise.all(all.map((path) => this.#auditor.see(path)));
    return new Map(all.map((path, i) => [path, seen[i] as Seen]));
  }

  async #change(path: string, dice: number, onProblem: (what: string) => void): Promise<void> {
    const { client } = this.#auditor;
    this.#count += 1;
    const data = String(this.#count);
    await this.#try(onProblem, async () => {
      const exists = await client.exists(path);
      if (!exists) await client.create(path, data);
      else if (dice < 0.2) await client.delete(path);
      else await client.set(path, data);
    });
  }

  async #try(onProblem: (what: string) => void, act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      // Nobody else writes, but what was in doubt may have happened.
      const code = (error as { code?: unknown }).code;
      if (!isTrouble(error) && code !== 'NODE_EXISTS' && code !== 'NO_NODE') {
        onProblem(`the auditor: ${describe(error)}`);
      }
    }
  }
}
