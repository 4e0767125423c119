/** The client of a candidate: one that tells its checks, and one that is broken on purpose. */
import type { CallOptions, ClientOptions, CommitReply, Transaction } from '@incumbent/zookeeper';
import { ZooKeeper } from '@incumbent/zookeeper';
import { monotonicMs } from '../harness/time.ts';
import type { CandidatePlan, Check } from './messages.ts';

type ClientClass = new (url: string, options?: ClientOptions) => ZooKeeper;

/**
 * @param told of every transaction, when it was answered or failed
 * @returns with `pings`, one whose confirmations are answered by the server alone, as pings are
 */
export function clientClass(
  broken: CandidatePlan['broken'],
  told: (check: Check) => void,
): ClientClass {
  return class extends ZooKeeper {
    override transaction(): Transaction {
      const transaction = super.transaction();
      const commit = transaction.commit.bind(transaction);
      const checked: string[] = [];
      let onlyChecks = true;
      const check = transaction.check.bind(transaction);
      transaction.check = (path, ...version) => {
        checked.push(path);
        check(path, ...version);
        return transaction;
      };
      transaction.commit = async (options?: CallOptions): Promise<CommitReply> => {
        onlyChecks = transaction.length === checked.length;
        const sentMs = monotonicMs();
        const settle = (ok: boolean): void => told({ sentMs, settledMs: monotonicMs(), ok });
        try {
          const answer =
            broken === 'pings' && onlyChecks
              ? await readAll(this, checked, options)
              : await commit(options);
          settle(true);
          return answer;
        } catch (error) {
          settle(false);
          throw error;
        }
      };
      return transaction;
    }
  };
}

/** A server that has lost its quorum answers reads all the same. */
async function readAll(
  client: ZooKeeper,
  paths: readonly string[],
  options: CallOptions | undefined,
): Promise<CommitReply> {
  const replies = await Promise.all(paths.map((path) => client.get(path, options)));
  const { zxid, sentAt } = replies[0] ?? (await client.get('/', options));
  return { zxid, sentAt, results: paths.map((path) => ({ type: 'check', path })) };
}
