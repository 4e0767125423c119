import { dirname } from 'node:path';
import type { FileOperations } from '../../src/backends/file/file-operations.ts';

export type Operation = keyof FileOperations;

export function systemError(code: string, syscall: string, path: string): Error {
  return Object.assign(new Error(`${code}: injected, ${syscall} '${path}'`), {
    code,
    syscall,
    path,
  });
}

interface File {
  readonly content: Buffer;
  readonly modifiedMs: number;
}

/** A disk in memory that knows what a power cut would leave. */
export class MemoryDisk implements FileOperations {
  nowMs = 0;
  #files = new Map<string, File>();
  #directories = new Map<string, { inode: number; durable: Map<string, File> }>();
  #inodes = 0;

  /** The disk after a power cut at this moment. */
  afterPowerCut(): MemoryDisk {
    const disk = new MemoryDisk();
    for (const [path, { inode, durable }] of this.#directories) {
      disk.#directories.set(path, { inode, durable: new Map(durable) });
      for (const [name, file] of durable) disk.#files.set(name, file);
    }
    return disk;
  }

  get paths(): readonly string[] {
    return [...this.#files.keys()].sort();
  }

  put(path: string, content: Buffer | string): void {
    this.#files.set(path, { content: Buffer.from(content), modifiedMs: this.nowMs });
  }

  delete(path: string): void {
    this.#files.delete(path);
  }

  contentOf(path: string): Buffer | undefined {
    return this.#files.get(path)?.content;
  }

  deleteDirectory(path: string): void {
    this.#directories.delete(path);
    for (const name of this.#namesIn(path)) this.#files.delete(name);
  }

  makeDirectoryNow(path: string): void {
    this.#inodes += 1;
    this.#directories.set(path, { inode: this.#inodes, durable: new Map() });
  }

  async makeDirectory(path: string, parents: boolean): Promise<void> {
    if (parents && dirname(path) !== path) await this.makeDirectory(dirname(path), true);
    if (!this.#directories.has(path)) this.makeDirectoryNow(path);
  }

  async identify(path: string): Promise<{ device: number; inode: number }> {
    return { device: 1, inode: this.#directory(path, 'stat').inode };
  }

  list(path: string): Promise<readonly string[]> {
    return this.listSlowly(
      path,
      async () => {},
      () => false,
    );
  }

  /** A listing that takes two steps. `chance`: whether a name that came or went is in it. */
  async listSlowly(
    path: string,
    between: () => Promise<void>,
    chance: () => boolean,
  ): Promise<readonly string[]> {
    this.#directory(path, 'scandir');
    const early = new Set(this.#namesIn(path));
    await between();
    const late = new Set(this.#namesIn(path));
    return [...new Set([...early, ...late])]
      .filter((name) => (early.has(name) && late.has(name)) || chance())
      .map((name) => name.slice(path.length + 1))
      .filter((name) => !name.includes('/'));
  }

  async read(path: string): Promise<Buffer | undefined> {
    return this.#files.get(path)?.content;
  }

  async exists(path: string): Promise<boolean> {
    return this.#files.has(path) || this.#directories.has(path);
  }

  async modifiedMs(path: string): Promise<number | undefined> {
    return this.#files.get(path)?.modifiedMs;
  }

  async create(path: string, content: Buffer): Promise<void> {
    this.#directory(dirname(path), 'open');
    if (this.#files.has(path)) throw systemError('EEXIST', 'open', path);
    this.put(path, content);
  }

  async link(existing: string, path: string): Promise<boolean> {
    this.#directory(dirname(path), 'link');
    const file = this.#files.get(existing);
    if (file === undefined) throw systemError('ENOENT', 'link', existing);
    if (this.#files.has(path)) return false;
    this.#files.set(path, file);
    return true;
  }

  async rename(from: string, to: string): Promise<void> {
    const file = this.#files.get(from);
    if (file === undefined) throw systemError('ENOENT', 'rename', from);
    this.#files.delete(from);
    this.#files.set(to, file);
  }

  async remove(path: string): Promise<void> {
    this.#files.delete(path);
  }

  async syncDirectory(path: string): Promise<void> {
    const directory = this.#directory(path, 'open');
    directory.durable.clear();
    for (const name of this.#namesIn(path)) directory.durable.set(name, this.#files.get(name)!);
  }

  #namesIn(path: string): string[] {
    return [...this.#files.keys()].filter((name) => name.startsWith(`${path}/`));
  }

  #directory(path: string, syscall: string): { inode: number; durable: Map<string, File> } {
    const directory = this.#directories.get(path);
    if (directory === undefined) throw systemError('ENOENT', syscall, path);
    return directory;
  }
}

export interface Interception {
  /** Runs before each step, which does not happen if this rejects. */
  readonly before?: (operation: Operation, path: string) => Promise<void> | void;
  /** Runs after each step, which fails although it happened if this rejects. */
  readonly after?: (operation: Operation, path: string) => Promise<void> | void;
}

/** The same operations, with something between any two steps. `path` is the one that is changed. */
export function intercept(files: FileOperations, { before, after }: Interception): FileOperations {
  const around = async <T>(operation: Operation, path: string, run: () => Promise<T>) => {
    await before?.(operation, path);
    const result = await run();
    await after?.(operation, path);
    return result;
  };
  return {
    makeDirectory: (path, parents) =>
      around('makeDirectory', path, () => files.makeDirectory(path, parents)),
    identify: (path) => around('identify', path, () => files.identify(path)),
    list: (path) => around('list', path, () => files.list(path)),
    read: (path) => around('read', path, () => files.read(path)),
    exists: (path) => around('exists', path, () => files.exists(path)),
    modifiedMs: (path) => around('modifiedMs', path, () => files.modifiedMs(path)),
    create: (path, content) => around('create', path, () => files.create(path, content)),
    link: (existing, path) => around('link', path, () => files.link(existing, path)),
    rename: (from, to) => around('rename', to, () => files.rename(from, to)),
    remove: (path) => around('remove', path, () => files.remove(path)),
    syncDirectory: (path) => around('syncDirectory', path, () => files.syncDirectory(path)),
  };
}

/** Stops one process at the moments a test names, until the test lets it go on. */
export class Stops {
  readonly files: FileOperations;
  #armed:
    | { operation: Operation; path: string; reached: () => void; go: Promise<void> }
    | undefined;

  constructor(files: FileOperations) {
    this.files = intercept(files, {
      before: async (operation, path) => {
        const armed = this.#armed;
        if (armed?.operation !== operation || armed.path !== path) return;
        this.#armed = undefined;
        armed.reached();
        await armed.go;
      },
    });
  }

  /**
   * Starts `run` and waits until it is about to do that step.
   * @returns a function that lets it go on and gives its result
   */
  async stopBefore<T>(
    operation: Operation,
    path: string,
    run: () => Promise<T>,
  ): Promise<() => Promise<T>> {
    let release = () => {};
    const go = new Promise<void>((resolve) => {
      release = resolve;
    });
    let result: Promise<T> | undefined;
    await new Promise<void>((resolve, reject) => {
      this.#armed = { operation, path, reached: resolve, go };
      result = run();
      result.then(() => reject(new Error(`ended without ${operation} of ${path}`)), reject);
    });
    return () => {
      release();
      return result!;
    };
  }
}
