import { monotonicMs } from '../../harness/time.ts';
import { slackMs } from '../judges.ts';
import type { Player } from '../player.ts';

/** Reads that nobody waits for, calls that are given up, and confirmations. */
export function startReads(player: Player): void {
  const { client, calls, base, random } = player;
  const { findings, stalls, timeoutMs } = player.arena;
  const path = `${base}/open`;

  // They never stop: so what was acknowledged last is known, and no ping is needed.
  player.act(40, () => {
    if (calls.outstanding > 200) return;
    void calls.call({
      what: 'get',
      boundMs: timeoutMs,
      ordered: true,
      start: () => client.get(path),
    });
  });

  player.act(120, async () => {
    const abort = new AbortController();
    const afterMs = random() * 60;
    const timer = setTimeout(() => abort.abort(), afterMs);
    await calls.call({
      what: 'aborted get',
      boundMs: afterMs,
      start: () => client.get(path, { signal: abort.signal }),
      mayFail: (error) => error === abort.signal.reason,
    });
    clearTimeout(timer);
  });

  player.act(120, async () => {
    const boundMs = 1 + random() * 200;
    await calls.call({
      what: 'getChildren with a timeout',
      boundMs,
      start: () => client.getChildren(base, { timeoutMs: boundMs }),
    });
  });

  player.act(200, async () => {
    const startMs = monotonicMs();
    const { sessionId } = player;
    const outcome = await calls.call({
      what: 'confirm',
      boundMs: timeoutMs,
      ordered: true,
      start: () => client.confirm([path, { path: base }]),
    });
    if (!outcome.ok) return;
    const sentMs = outcome.value.sentAt.monotonicMs;
    // The clock is read once for all that is written in one turn of the event loop: a little early.
    const honest =
      sentMs >= startMs - slackMs - stalls.ms(startMs - slackMs, startMs) &&
      sentMs <= monotonicMs() &&
      outcome.value.zxid > 0n;
    findings.judge(
      'confirmed',
      honest ? undefined : `${player.name}: asked at ${startMs}, it says sent at ${sentMs}`,
    );
    // A later session may not answer a question to an earlier one.
    const now = player.client.session?.id;
    findings.judge(
      'confirmed',
      sessionId === undefined || now === sessionId
        ? undefined
        : `${player.name}: asked in session ${sessionId}, answered in ${now}`,
    );
  });
}
