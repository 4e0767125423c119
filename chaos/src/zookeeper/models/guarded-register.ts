import type { Fate } from '../outcome.ts';
import type { Problem } from './verdict.ts';

/** A value, the number of the attempt that wrote it, and the version it has in the store. */
interface Written {
  readonly n: number;
  readonly version: number;
}

/**
 * A node that one client writes with numbers that rise, each write demanding the version that it
 * knows. So an attempt in doubt can only land as the next version, and never after another one has.
 */
export class GuardedRegister {
  #certain: Written = { n: 0, version: 0 };
  /** Attempts that may have taken the version after the certain one, or still may. */
  #inDoubt: number[] = [];
  #attempts = 0;

  /** The next write: its number, and the version to demand. */
  next(): Written {
    this.#attempts += 1;
    return { n: this.#attempts, version: this.#certain.version };
  }

  get certain(): Written {
    return this.#certain;
  }

  /**
   * @param version of the node after the write, where it is done
   * @param badVersion the server refused the version demanded
   */
  settled(n: number, fate: Fate, version?: number, badVersion = false): Problem[] {
    if (fate === 'in doubt') this.#inDoubt.push(n);
    if (fate === 'refused' && badVersion && this.#inDoubt.length === 0) {
      const { n: last, version: known } = this.#certain;
      return [
        {
          guarantee: 'refused',
          what: `write ${n} found another version than ${known} (of write ${last}), and none is in doubt`,
        },
      ];
    }
    if (fate !== 'done') return [];
    const wanted = this.#certain.version + 1;
    this.#certain = { n, version: version ?? wanted };
    this.#inDoubt = [];
    if (version === undefined || version === wanted) return [];
    return [{ guarantee: 'kept', what: `write ${n} gave version ${version} and not ${wanted}` }];
  }

  /** A value that was read behind a sync while nothing was on its way. */
  observed(n: number, version: number): Problem[] {
    const { n: last, version: known } = this.#certain;
    if (n === last && version === known) return [];
    if (this.#inDoubt.includes(n) && version === known + 1) {
      this.#certain = { n, version };
      this.#inDoubt = [];
      return [];
    }
    const doubts = this.#inDoubt.length === 0 ? 'none' : this.#inDoubt.join(', ');
    const what = `write ${n} is there with version ${version}; acknowledged: ${last} with ${known}; in doubt: ${doubts}`;
    this.#certain = { n, version };
    this.#inDoubt = [];
    return [{ guarantee: n > last ? 'refused' : 'kept', what }];
  }
}
