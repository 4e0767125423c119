import type { Fate } from '../outcome.ts';
import type { Problem } from './verdict.ts';

/**
 * Nodes with names that are used once, which one client makes and deletes. `there` must exist,
 * `in doubt` may, everything else must not.
 */
export class Names {
  readonly #there = new Set<string>();
  #doubts = new Set<string>();
  /** One look later a doubt is as good as gone, but may have been late. */
  #oldDoubts = new Set<string>();

  get there(): ReadonlySet<string> {
    return this.#there;
  }

  created(name: string, fate: Fate): void {
    if (fate === 'done') this.#there.add(name);
    else if (fate === 'in doubt') this.#doubts.add(name);
  }

  /** @param absent the server said that there is no such node */
  deleted(name: string, fate: Fate, absent = false): Problem[] {
    if (fate === 'refused' && !absent) return [];
    this.#there.delete(name);
    if (fate === 'in doubt') this.#doubts.add(name);
    if (!absent) return [];
    return [{ guarantee: 'kept', what: `${name} was made, and is gone when it is to be deleted` }];
  }

  /** It ended with its session. */
  forget(name: string): void {
    this.#there.delete(name);
  }

  /** The nodes that are there while nothing is on its way. */
  observed(listing: readonly string[]): Problem[] {
    const listed = new Set(listing);
    const problems: Problem[] = [];
    for (const name of this.#there) {
      if (!listed.has(name)) problems.push({ guarantee: 'kept', what: `${name} is not there` });
    }
    for (const name of listed) {
      if (this.#there.has(name) || this.#doubts.has(name) || this.#oldDoubts.has(name)) continue;
      problems.push({
        guarantee: 'refused',
        what: `${name} is there; nobody was told it could be`,
      });
    }
    this.#there.clear();
    for (const name of listed) this.#there.add(name);
    this.#oldDoubts = this.#doubts;
    this.#doubts = new Set([...this.#doubts].filter((name) => !listed.has(name)));
    return problems;
  }
}
