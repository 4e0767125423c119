import { join } from 'node:path';
import type { CandidateInfo } from '../../base/candidate.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { byId, candidateIn, isObject, objectIn } from '../../record/candidate-entry.ts';
import type { Actor } from '../../record/record.ts';
import type { FileOperations } from './file-operations.ts';
import type { ProcessProof } from './process-proof.ts';
import { temporaryPath } from './record-file.ts';

const format = 1;
const suffix = '.json';

/**
 * The waiting candidates, for people: `<election>/candidates/<incarnation>.json`. Nothing is
 * decided by it. A candidate that died is left out where its death can be proved, or after a
 * reboot. One that died in another container stays listed until its file is removed by hand.
 */
export class Enlistment {
  readonly #directory: string;
  readonly #files: FileOperations;
  readonly #proof: ProcessProof;
  /** True: no other machine writes here. */
  readonly #isLocal: boolean;

  constructor(directory: string, files: FileOperations, proof: ProcessProof, isLocal: boolean) {
    this.#directory = directory;
    this.#files = files;
    this.#proof = proof;
    this.#isLocal = isLocal;
  }

  /** @returns a function that takes the candidate off the list */
  async enlist(candidate: CandidateInfo): Promise<() => Promise<void>> {
    if (!/^[A-Za-z0-9_-]{1,128}$/.test(candidate.incarnation)) {
      throw new InvalidOptionError(
        `the incarnation ${JSON.stringify(candidate.incarnation)} cannot be a file name: use 1 to ` +
          '128 letters, digits, "_" and "-"',
      );
    }
    const { id, incarnation, addresses, metadata } = candidate;
    const content = JSON.stringify({
      format,
      candidate: { id, incarnation, addresses, metadata },
      actor: this.#proof.describe({ pid: process.pid }),
    });
    const path = join(this.#candidates, incarnation + suffix);
    const temporary = temporaryPath(this.#directory);
    try {
      await this.#files.create(temporary, Buffer.from(content));
      // Not the directories above it: an election directory that is gone is not made again.
      await this.#files.makeDirectory(this.#candidates, false);
      await this.#files.rename(temporary, path);
    } catch (error) {
      await this.#files.remove(temporary).catch(() => {});
      throw error;
    }
    return () => this.#files.remove(path);
  }

  /**
   * Sorted by id. Files that are not ours are skipped.
   * @param tidies removes the files of candidates that died
   */
  async list(tidies: boolean = true): Promise<readonly CandidateInfo[]> {
    const found: CandidateInfo[] = [];
    if (!(await this.#files.exists(this.#candidates))) return found;
    for (const name of await this.#files.list(this.#candidates)) {
      if (!name.endsWith(suffix)) continue;
      const path = join(this.#candidates, name);
      const entry = readEntry(await this.#files.read(path).catch(() => undefined));
      if (entry === undefined || entry.candidate.incarnation + suffix !== name) continue;
      if (this.#isGone(entry.actor)) {
        // The file may not be ours to remove.
        if (tidies) await this.#files.remove(path).catch(() => {});
      } else {
        found.push(entry.candidate);
      }
    }
    return found.sort(byId);
  }

  get #candidates(): string {
    return join(this.#directory, 'candidates');
  }

  #isGone(actor: Actor): boolean {
    return this.#proof.provesGone([actor]) || (this.#isLocal && this.#proof.isOfEarlierBoot(actor));
  }
}

interface ListEntry {
  readonly candidate: CandidateInfo;
  readonly actor: Actor;
}

function readEntry(bytes: Buffer | undefined): ListEntry | undefined {
  const entry = bytes && objectIn(bytes.toString('utf8'));
  const candidate = candidateIn(entry?.['candidate']);
  const actor = entry?.['actor'];
  if (entry?.['format'] !== format || candidate === undefined) return undefined;
  return isObject(actor) ? { candidate, actor: actor as Actor } : undefined;
}
