import type { CandidateInfo } from '../../base/candidate.ts';
import { RecordDamagedError, StoreUnavailableError } from '../../base/errors.ts';
import type { ActorProcess } from '../../core/contest.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { decodeLeaseRecord, encodeLeaseRecord } from '../../record/lease-record.ts';
import type { Actor } from '../../record/record.ts';
import { DirectoryWatch } from './directory-watch.ts';
import { ElectionDirectory, electionPath } from './election-directory.ts';
import { Enlistment } from './enlistment.ts';
import type { FileOperations } from './file-operations.ts';
import { nodeFileOperations } from './file-operations.ts';
import type { FileSystemProbe } from './filesystem-check.ts';
import { systemProbe } from './filesystem-check.ts';
import type { Entry } from './numbered-records.ts';
import { NumberedRecords, parseVersion, versionOf } from './numbered-records.ts';
import { ProcessProof } from './process-proof.ts';
import { prune, pruneEvery, removeTemporaries } from './pruning.ts';
import { recordNumber } from './record-file.ts';
import { asStoreError } from './store-error.ts';

export { checkElectionDirectoryName } from './election-directory.ts';

export interface FileLeaseStoreOptions {
  /**
   * Uses the directory on any file system. Right only if processes of one machine alone write
   * there. Default false.
   */
  readonly trustFileSystem?: boolean;
  /** Trouble that no caller waits for: no watch, no pruning. Both cost only speed or space. */
  readonly onTrouble?: (what: string, error: unknown) => void;
  /** For tests. */
  readonly operations?: FileOperations;
  /** For tests. */
  readonly probe?: FileSystemProbe;
  /** For tests. */
  readonly proof?: ProcessProof;
}

/**
 * The record of an election in numbered files under `<directory>/<election>`, for processes of one
 * machine. The directory is made at the first use.
 *
 * A swap that resolved with `ok` has survived a power cut, if the disk keeps the data that it was
 * told to sync. A file system that several machines write is refused at the first use
 * (StoreUnsuitableError). After a full disk, missing rights or a lost directory the call rejects
 * with StoreUnavailableError. Later calls work again once the cause is gone.
 *
 * Not promised: anything once files are changed, removed or copied back by hand while candidates
 * run. On tmpfs the record, and with it the tokens, begins anew with every boot.
 *
 * @throws InvalidOptionError for an election name that no directory can have
 */
export function openFileLeaseStore(
  directory: string,
  election: string,
  options: FileLeaseStoreOptions = {},
  pathOf: (directory: string, election: string) => string = electionPath,
): LeaseStore {
  return new FileLeaseStore(pathOf(directory, election), election, options);
}

class FileLeaseStore implements LeaseStore {
  readonly #election: string;
  readonly #files: FileOperations;
  readonly #onTrouble: (what: string, error: unknown) => void;
  readonly #directory: ElectionDirectory;
  readonly #records: NumberedRecords;
  readonly #watch: DirectoryWatch;
  readonly #proof: ProcessProof;
  readonly #enlistment: Enlistment;
  #lastTurn: Promise<unknown> = Promise.resolve();
  #decoded: { readonly entry: Entry; readonly record: LeaseRecord } | undefined;

  constructor(path: string, election: string, options: FileLeaseStoreOptions) {
    const trusted = options.trustFileSystem === true;
    this.#election = election;
    this.#files = options.operations ?? nodeFileOperations;
    this.#onTrouble = options.onTrouble ?? (() => {});
    this.#proof = options.proof ?? new ProcessProof();
    this.#directory = new ElectionDirectory(
      path,
      this.#files,
      trusted ? undefined : (options.probe ?? systemProbe),
    );
    this.#records = new NumberedRecords(this.#directory, this.#files);
    this.#enlistment = new Enlistment(path, this.#files, this.#proof, !trusted);
    this.#watch = new DirectoryWatch(
      path,
      (name) => (recordNumber(name) ?? 0) > this.#records.newestNumber,
      this.#onTrouble,
    );
  }

  read(signal: AbortSignal): Promise<Reading> {
    return this.#inTurn(signal, async () => {
      const entry = await this.#records.read();
      return { record: this.#recordOf(entry), version: versionOf(entry) };
    });
  }

  swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    return this.#inTurn(signal, async () => {
      const body = encodeLeaseRecord(next);
      const entry = await this.#records.append(parseVersion(expected), body, signal);
      if (entry === undefined) return { outcome: 'conflict' };
      if (entry.number % pruneEvery === 0) this.#pruneInTurn(entry.number);
      return { outcome: 'ok', version: versionOf(entry) };
    });
  }

  watch(onHint: () => void): () => void {
    const end = this.#watch.add(onHint);
    if (this.#directory.isOpen) this.#watch.ensure();
    return end;
  }

  async describe(process: ActorProcess): Promise<Actor> {
    return this.#proof.describe(process);
  }

  provesGone(actors: readonly Actor[]): boolean {
    return this.#proof.provesGone(actors);
  }

  async enlist(candidate: CandidateInfo): Promise<() => Promise<void>> {
    const delist = await this.#inTurn(undefined, () => this.#enlistment.enlist(candidate));
    return () => this.#inTurn(undefined, delist);
  }

  list(signal: AbortSignal): Promise<readonly CandidateInfo[]> {
    return this.#inTurn(signal, () => this.#enlistment.list());
  }

  init(signal: AbortSignal): Promise<void> {
    return this.#inTurn(signal, () => this.#directory.verify());
  }

  /** Resolves when nothing of this store runs any more. */
  async close(): Promise<void> {
    this.#watch.close();
    await this.#lastTurn;
  }

  /**
   * Runs one job after the other. A disk that hangs then holds one thread of Node's pool and not
   * all. And a read that follows an unknown write of ours learns the outcome of that write.
   */
  #inTurn<T>(signal: AbortSignal | undefined, job: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(async () => {
      signal?.throwIfAborted();
      try {
        await this.#directory.open();
        const result = await job();
        this.#watch.ensure();
        return result;
      } catch (error) {
        const shown = asStoreError(error, this.#directory.path);
        // The directory may be another one when it works again. Watch that one then.
        if (shown instanceof StoreUnavailableError) this.#watch.stop();
        throw shown;
      }
    });
    this.#lastTurn = turn.catch(() => {});
    return turn;
  }

  /** Runs behind the swap that won, and not within it: the outcome of that swap is known. */
  #pruneInTurn(newest: number): void {
    const { path } = this.#directory;
    this.#inTurn(undefined, async () => {
      await prune(path, this.#files, newest);
      await removeTemporaries(path, this.#files, newest, (pid) => this.#proof.isAbsent(pid));
    }).catch((error: unknown) => this.#onTrouble(`removing old records in ${path}`, error));
  }

  /** Decoded once: nearly every read finds the same entry as the last one. */
  #recordOf(entry: Entry | undefined): LeaseRecord | undefined {
    if (entry === undefined) return undefined;
    if (this.#decoded?.entry !== entry) {
      const record = decodeEntry(this.#election, entry);
      this.#decoded = { entry, record };
    }
    return this.#decoded.record;
  }
}

/** @throws RecordDamagedError, RecordTooNewError */
export function decodeEntry(election: string, { body, path }: Entry): LeaseRecord {
  const record = decodeLeaseRecord(body, path);
  if (record.election === election) return record;
  // Happens on a file system that does not tell "a" from "A", or takes two spellings of "ä" for one.
  throw new RecordDamagedError(
    path,
    `it belongs to the election ${JSON.stringify(record.election)}, which shares its ` +
      `directory with ${JSON.stringify(election)} on this file system`,
  );
}
