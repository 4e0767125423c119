import type { Observation } from './observe.ts';

const id = /^[0-9a-f]{40}$/;
const noId = /^0{40}$/;

/** Ids are random: those of the two sides are compared by which are the same as which. */
export class Renaming {
  readonly #toServer = new Map<string, string>();
  readonly #toModel = new Map<string, string>();

  /** @returns what differs, in words; nothing is remembered then */
  compare(model: readonly Observation[], server: readonly Observation[]): readonly string[] {
    const pairs: [string, string][] = [];
    const differences = model.flatMap((seen, index) => {
      const real = server[index] ?? {};
      const fields = new Set([...Object.keys(seen), ...Object.keys(real)]);
      return [...fields].flatMap((field) => {
        const [ours, theirs] = [seen[field] ?? 'absent', real[field] ?? 'absent'];
        if (this.#isSame(ours, theirs, pairs)) return [];
        const where = 'abc'[index] ?? 'a client that waits';
        return [`${where} ${field}: the model says ${ours}, the server ${theirs}`];
      });
    });
    if (differences.length > 0) return differences;
    for (const [ours, theirs] of pairs) {
      this.#toServer.set(ours, theirs);
      this.#toModel.set(theirs, ours);
    }
    return [];
  }

  #isSame(ours: string, theirs: string, pairs: [string, string][]): boolean {
    if (!id.test(ours) || !id.test(theirs) || noId.test(ours) || noId.test(theirs)) {
      return ours === theirs;
    }
    const known = pairs.find(([a, b]) => a === ours || b === theirs);
    const [toServer, toModel] = known ?? [this.#toServer.get(ours), this.#toModel.get(theirs)];
    if (known !== undefined) return known[0] === ours && known[1] === theirs;
    if (toServer === undefined && toModel === undefined) {
      pairs.push([ours, theirs]);
      return true;
    }
    return toServer === theirs && toModel === ours;
  }
}
