/**
 * `etcdctl elect` as a member that obeys lines, and works while it is elected:
 *
 *     node etcdctl-member.js ADDRESS PATH ID SESSION_MS LOG
 *
 * The lines are those of README.md in packages/incumbent/test-integration/zookeeper-interop. It is
 * elected from when it prints its key until it ends. It looks at its key for as long. `etcdctl`
 * would notice only at its next keep-alive, up to 20 s later, that its lease is gone.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, writeSync } from 'node:fs';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

const [address = '', path = '', id = '', , logPath = ''] = process.argv.slice(2);
const beatMs = 5;
const lookEveryMs = 100;

const log = openSync(logPath, 'a');
let isIn = false;
let child: ChildProcess | undefined;
let candidacy: Promise<void> | undefined;

interface KeyValue {
  readonly key: string;
  readonly value: string;
  readonly create_revision: string | number;
}

function say(...words: readonly unknown[]): void {
  console.log(words.join(' '));
}

/** One `etcdctl elect` after the other, until it resigns. */
async function campaign(): Promise<void> {
  while (isIn) {
    const words = ['--write-out=json', `--endpoints=http://${address}`, 'elect', path, id];
    // It ends with this process, however that ends.
    child = spawn('setpriv', ['--pdeathsig', 'KILL', 'etcdctl', ...words], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, ETCDCTL_API: '3' },
    });
    const own = child;
    const ended = once(own, 'close');
    createInterface({ input: own.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const [elected] = (JSON.parse(line) as { readonly kvs: readonly KeyValue[] }).kvs;
      if (elected !== undefined) void work(own, String(elected.create_revision), ended);
    });
    await ended;
    if (isIn) await pause(lookEveryMs);
  }
}

async function work(own: ChildProcess, token: string, ended: Promise<unknown>): Promise<void> {
  const { pid } = process;
  say('leading', token);
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  void lookAfter(own, token, () => isOver);
  let kind = 'start';
  while (!isOver && isIn) {
    writeSync(log, `${token} ${id} ${pid} ${pid} ${process.hrtime.bigint()} ${kind}\n`);
    kind = 'beat';
    await pause(beatMs);
  }
  say('ended');
}

async function lookAfter(own: ChildProcess, token: string, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await pause(lookEveryMs);
    const places = await list().catch(() => undefined);
    if (places?.every((each) => String(each.create_revision) !== token)) own.kill('SIGKILL');
  }
}

/** All members in order. */
async function list(): Promise<readonly KeyValue[]> {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const response = await fetch(`http://${address}/v3/kv/range`, {
    method: 'POST',
    body: JSON.stringify({
      key: base64(`${path}/`),
      range_end: base64(`${path}0`),
      sort_order: 'ASCEND',
      sort_target: 'CREATE',
    }),
    signal: AbortSignal.timeout(1_000),
  });
  return ((await response.json()) as { readonly kvs?: readonly KeyValue[] }).kvs ?? [];
}

/** Ours say it in JSON, theirs is what they propose. */
function idOf({ value }: KeyValue): string {
  const text = Buffer.from(value, 'base64').toString();
  return text.startsWith('{') ? (JSON.parse(text) as { readonly id: string }).id : text;
}

const commands: Readonly<Record<string, () => Promise<void>>> = {
  async join() {
    isIn = true;
    candidacy = campaign();
    for (;;) {
      const places = await list().catch(() => []);
      const own = places.find((each) => idOf(each) === id);
      if (own !== undefined) {
        say('joined', Buffer.from(own.key, 'base64').toString());
        return;
      }
      await pause(10);
    }
  },
  async resign() {
    isIn = false;
    child?.kill('SIGINT');
    await candidacy;
    say('resigned');
  },
  async contenders() {
    for (;;) {
      const places = await list().catch(() => undefined);
      if (places !== undefined) {
        const ids = places.map(idOf);
        say('contenders', ids[0] ?? '-', ids.join(','));
        return;
      }
      await pause(10);
    }
  },
};

say('ready');
for await (const line of createInterface({ input: process.stdin })) await commands[line]?.();
process.exit();
