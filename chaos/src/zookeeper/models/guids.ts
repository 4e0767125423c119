import type { Problem } from './verdict.ts';

/** The nodes of protected creates: one for each guid at most, and exactly the one that was told. */
export class Guids {
  readonly #told = new Map<string, string>();
  readonly #before = new Set<string>();
  readonly #open = new Set<string>();

  began(guid: string): void {
    this.#open.add(guid);
  }

  /** @param name undefined when the call failed: the node may be there or not */
  ended(guid: string, name: string | undefined): void {
    if (name !== undefined) this.#told.set(guid, name);
  }

  /** Its session is gone, and an ephemeral node with it: now or soon. */
  forget(guid: string): void {
    this.#told.delete(guid);
  }

  /** The nodes that are there while nothing is on its way. All of it is deleted afterwards. */
  observed(listing: readonly string[]): Problem[] {
    const problems: Problem[] = [];
    const found = new Map<string, string[]>();
    for (const name of listing) {
      const guid = /^_c_([0-9A-Za-z-]+)-node/.exec(name)?.[1] ?? name;
      found.set(guid, [...(found.get(guid) ?? []), name]);
    }
    for (const [guid, names] of found) {
      if (names.length > 1) {
        problems.push({ guarantee: 'once', what: `${names.length} nodes: ${names.join(', ')}` });
      } else if (!this.#open.has(guid)) {
        const when = this.#before.has(guid) ? 'after it was deleted' : 'of no attempt';
        problems.push({ guarantee: 'once', what: `${names.join()} is there ${when}` });
      }
    }
    for (const [guid, name] of this.#told) {
      if (found.get(guid)?.includes(name) === true) continue;
      problems.push({ guarantee: 'kept', what: `${name} was made and is not there` });
    }
    this.#before.clear();
    for (const guid of this.#told.keys()) this.#before.add(guid);
    // Those that failed may be late.
    for (const guid of this.#open) if (found.has(guid)) this.#open.delete(guid);
    for (const guid of this.#before) this.#open.delete(guid);
    if (this.#open.size > 1_000) this.#open.clear();
    this.#told.clear();
    return problems;
  }
}
