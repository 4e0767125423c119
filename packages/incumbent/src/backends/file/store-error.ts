import { StoreUnavailableError } from '../../base/errors.ts';
import { errorCode } from './file-operations.ts';

const waysOut: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space on that file system',
  EDQUOT: 'free some space, or raise the quota',
  EROFS: 'mount that file system writable, or choose another directory',
  EACCES: 'every candidate needs to read, write and search that directory',
  EPERM: 'every candidate needs to read, write and search that directory',
  ENOENT:
    'the directory is gone: put the same one back (is its file system mounted?), or restart all ' +
    'candidates if it was removed on purpose',
  ENOTDIR:
    'something that is no directory has that name: move it away, or choose another directory',
  EEXIST: 'something that is no directory has that name: move it away, or choose another directory',
  EMFILE: 'too many files are open: raise the limit (ulimit -n)',
  ENFILE: 'too many files are open on this machine',
  EIO: 'the disk does not work as it should: look at the kernel log',
};

/** A system error as one that says where, what and what to do. Any other error as it is. */
export function asStoreError(error: unknown, directory: string): unknown {
  const code = errorCode(error);
  // Only system errors have both. Our own errors have a code as well.
  if (!(error instanceof Error) || code === undefined || !('syscall' in error)) return error;
  const where = error.message.includes(directory) ? '' : ` (in ${directory})`;
  const wayOut = waysOut[code];
  return new StoreUnavailableError(
    `the file store cannot be used: ${error.message}${where}${wayOut ? `; ${wayOut}` : ''}`,
    { cause: error },
  );
}
