import type { Effect } from '../trial/effect.ts';
import type { Condition, Mark, Note } from './snapshot.ts';

export interface Lane {
  readonly id: string;
  /** Each condition and when it began; the latest is the last. */
  readonly conditions: { readonly sinceMs: number; readonly condition: Condition }[];
  /** When its program worked. */
  readonly work: { readonly fromMs: number; toMs: number; readonly token: bigint }[];
  readonly marks: { readonly atMs: number; readonly mark: Mark }[];
}

/** All that the picture shows. Times are milliseconds since the beginning. */
export class Scene {
  readonly lanes: readonly Lane[];
  readonly notes: Note[] = [];
  /** The last lines, when everything is over. */
  readonly verdict: { readonly good: boolean; readonly text: string }[] = [];
  readonly #startNs = process.hrtime.bigint();
  #endMs: number | undefined;

  constructor(ids: readonly string[]) {
    this.lanes = ids.map((id) => ({ id, conditions: [], work: [], marks: [] }));
  }

  get nowMs(): number {
    return this.#endMs ?? this.msOf(process.hrtime.bigint());
  }

  /** @param atNs CLOCK_MONOTONIC, as in the log */
  msOf(atNs: bigint): number {
    return Number(atNs - this.#startNs) / 1e6;
  }

  /** The picture grows no more. */
  freeze(): void {
    this.#endMs ??= this.nowMs;
  }

  is(id: string, condition: Condition): void {
    this.#lane(id).conditions.push({ sinceMs: this.nowMs, condition });
  }

  mark(id: string, mark: Mark): void {
    this.#lane(id).marks.push({ atMs: this.nowMs, mark });
  }

  works({ candidate, token, kind, atNs }: Effect): void {
    const { work } = this.#lane(candidate);
    const atMs = this.msOf(atNs);
    const last = work.at(-1);
    if (kind === 'start' || last === undefined) work.push({ fromMs: atMs, toMs: atMs, token });
    else last.toMs = Math.max(last.toMs, atMs);
  }

  note(note: Omit<Note, 'atMs'>): Note {
    const noted = { atMs: this.nowMs, ...note };
    this.notes.push(noted);
    return noted;
  }

  #lane(id: string): Lane {
    const lane = this.lanes.find((each) => each.id === id);
    if (lane === undefined) throw new Error(`there is no candidate ${id}`);
    return lane;
  }
}
