/** Clients that are broken on purpose: a soak that does not find them proves nothing. */
import type {
  CallOptions,
  ClientOptions,
  CreateOptions,
  CreateReply,
  Data,
  GetReply,
  NodeWatch,
  StatReply,
  VersionOptions,
} from '@incumbent/zookeeper';
import { ConnectionLossError, ZooKeeper } from '@incumbent/zookeeper';

export type Broken = 'deaf' | 'boastful' | 'naive' | 'patient' | 'hoarder';

/** Keeps what it should not: memory, and a timer. */
const hoard: unknown[] = [];

class Deaf extends ZooKeeper {
  #watches = 0;

  override async watch(
    path: string,
    options?: CallOptions,
  ): Promise<NodeWatch<GetReply | undefined>> {
    const watch = await super.watch(path, options);
    this.#watches += 1;
    if (this.#watches % 50 !== 0) return watch;
    const never = new Promise<never>(() => {});
    return Object.create(watch, {
      changed: { value: never },
      value: { value: watch.value },
      cancel: { value: () => watch.cancel() },
    }) as NodeWatch<GetReply | undefined>;
  }
}

class Boastful extends ZooKeeper {
  override async set(path: string, data: Data, options?: VersionOptions): Promise<StatReply> {
    try {
      return await super.set(path, data, options);
    } catch (error) {
      if (!(error instanceof ConnectionLossError)) throw error;
      // "It will have arrived."
      const { stat, zxid, sentAt } = await super.get(path);
      return { stat: { ...stat, version: stat.version + 1 }, zxid, sentAt };
    }
  }
}

class Naive extends ZooKeeper {
  override create(path: string, data?: Data, options?: CreateOptions): Promise<CreateReply> {
    if (options?.protected === undefined) return super.create(path, data, options);
    return this.#createAgain(path, data, options);
  }

  async #createAgain(
    path: string,
    data: Data = null,
    options: CreateOptions,
  ): Promise<CreateReply> {
    const { protected: guid, ...rest } = options;
    const own = path.replace(/\/([^/]*)$/, `/_c_${guid}-$1`);
    for (;;) {
      try {
        return await super.create(own, data, rest);
      } catch (error) {
        if (!(error instanceof ConnectionLossError)) throw error;
      }
    }
  }
}

/** Believes in its session for half a timeout more than it may. */
class Patient extends ZooKeeper {
  override onState(listener: Parameters<ZooKeeper['onState']>[0]): () => void {
    return super.onState((change) => {
      const lateMs = change.state === 'expired' ? (change.session?.timeoutMs ?? 3_000) / 2 : 0;
      if (lateMs === 0) listener(change);
      else setTimeout(() => listener(change), lateMs);
    });
  }
}

class Hoarder extends ZooKeeper {
  override get(path: string, options?: CallOptions): Promise<GetReply> {
    if (hoard.length === 0) hoard.push(setInterval(() => {}, 1_000));
    const reply = super.get(path, options);
    // The caller hears of a failure.
    reply.then(
      (kept) => hoard.push(kept, new Array(300).fill(path)),
      () => {},
    );
    return reply;
  }
}

type ClientClass = new (url: string, options?: ClientOptions) => ZooKeeper;

export const brokenClients: Readonly<
  Record<Broken, { readonly about: string; readonly client: ClientClass }>
> = {
  deaf: { about: 'one watch in fifty is never told', client: Deaf },
  boastful: { about: 'a write whose reply is lost counts as done', client: Boastful },
  naive: { about: 'a protected create whose reply is lost is made again', client: Naive },
  patient: { about: 'expired is told half a timeout too late', client: Patient },
  hoarder: { about: 'replies and a timer are kept', client: Hoarder },
};

export function clientClass(broken: Broken | undefined): ClientClass {
  return broken === undefined ? ZooKeeper : brokenClients[broken].client;
}
