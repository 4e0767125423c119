/** Watches as the server keeps them, by path and type (3.5). */
import type { CallOptions } from './arguments.ts';
import { checkOptions, describe } from './arguments.ts';
import type { Caller } from './caller.ts';
import { InvalidArgumentError } from './errors.ts';
import { hasWatch } from './operations.ts';
import { checkPath } from './paths.ts';
import { watcherTypes } from './protocol/constants.ts';
import type { WatcherTypeRequest } from './protocol/messages.ts';
import { requests } from './protocol/requests.ts';
import type { WatchType } from './session/watch-registry.ts';

/** Whether the server has a watch of this session on a path. */
export function checkWatches(
  caller: Caller,
  path: string,
  type: WatchType,
  options: CallOptions | undefined,
): Promise<boolean> {
  checkOptions('checkWatches', options);
  return caller.call(hasWatch, path, bodyOf(caller, path, type), options);
}

/** Removes watches of this session on a path from the server, and ends their listeners' wait. */
export function removeWatches(
  caller: Caller,
  path: string,
  type: WatchType,
  options: CallOptions | undefined,
): Promise<void> {
  checkOptions('removeWatches', options);
  const body = bodyOf(caller, path, type);
  const { watches } = caller.session;
  const listeners = watches.listenersOf(body.path);
  return caller.call(
    {
      kind: requests.removeWatches,
      complete: () => {
        watches.lose(body.path, type);
        // The server removes only one type of a persistent watch. The other type would report only
        // some of the changes.
        if (watches.forgetPersistent(body.path, listeners) && type !== 'any') {
          caller.session.removeFromServer(body.path, 'any');
        }
      },
    },
    path,
    body,
    options,
  );
}

/** @throws InvalidArgumentError, also if servers do not know such requests */
function bodyOf(caller: Caller, path: string, type: WatchType): WatcherTypeRequest {
  checkPath(path);
  if (!caller.session.removeWatches) {
    throw new InvalidArgumentError(
      'checkWatches and removeWatches need a server of 3.5; see compatibility',
    );
  }
  if (!Object.hasOwn(watcherTypes, type)) {
    throw new InvalidArgumentError(
      `the type of a watch is children, data or any, not ${describe(type)}`,
    );
  }
  return { path: caller.chroot.toServer(path), type: watcherTypes[type] };
}
