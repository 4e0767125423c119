/** A Prometheus server of the test's own, on loopback. */
import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from './run-process.ts';

/** Whether a program is installed here. */
export function isInstalled(program: 'promtool' | 'prometheus'): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export const promtoolMissing = 'needs promtool (Debian: prometheus)';

/** An alert that is firing, from when to when it was seen so. */
export interface Fired {
  readonly name: string;
  readonly election: string;
  readonly fromMs: number;
  toMs: number | undefined;
}

export class Prometheus {
  readonly url: string;
  /** Every alert that has fired, the oldest first. */
  readonly fired: Fired[] = [];
  readonly #child: ChildProcess;
  readonly #polling: NodeJS.Timeout;

  /** @param config the path of a file */
  constructor(config: string, directory: string, port: number) {
    this.url = `http://127.0.0.1:${port}`;
    this.#child = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${directory}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    );
    this.#polling = setInterval(() => void this.#poll(), 200);
  }

  async query(expr: string): Promise<readonly { metric: object; value: [number, string] }[]> {
    const { data } = (await this.#get(`query?query=${encodeURIComponent(expr)}`)) as {
      data: { result: { metric: object; value: [number, string] }[] };
    };
    return data.result;
  }

  /** Resolves when the query has a result. */
  async shows(expr: string): Promise<void> {
    await until(
      `Prometheus has ${expr}`,
      async () => (await this.query(expr).catch(() => [])).length > 0,
    );
  }

  /** Alerts that fire now. */
  get firing(): readonly Fired[] {
    return this.fired.filter(({ toMs }) => toMs === undefined);
  }

  async close(): Promise<void> {
    clearInterval(this.#polling);
    if (this.#child.exitCode !== null) return;
    this.#child.kill();
    await once(this.#child, 'exit');
  }

  async #get(path: string): Promise<unknown> {
    return (await fetch(`${this.url}/api/v1/${path}`)).json();
  }

  async #poll(): Promise<void> {
    const answer = await this.#get('alerts').catch(() => undefined);
    if (answer === undefined) return;
    const { data } = answer as {
      data: { alerts: { state: string; labels: { alertname: string; election: string } }[] };
    };
    const now = new Map(
      data.alerts
        .filter(({ state }) => state === 'firing')
        .map(({ labels: { alertname: name, election } }) => [name, { name, election }]),
    );
    for (const alert of this.firing) {
      if (!now.delete(alert.name)) alert.toMs = Date.now();
    }
    for (const alert of now.values()) {
      this.fired.push({ ...alert, fromMs: Date.now(), toMs: undefined });
    }
  }
}
