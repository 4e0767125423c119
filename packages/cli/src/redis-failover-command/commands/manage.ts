import type { ManagerEvent, ManagerOptions, ManagerStatus } from '@incumbent/redis-failover';
import type { ManagerHooks } from '@incumbent/redis-failover/internal';
import { readVersion } from '../../terminal/main.ts';
import { accessOf, looseFile } from '../config/access.ts';
import type { FlagValues, Settings } from '../config/collect.ts';
import { collectSettings } from '../config/collect.ts';
import { refuse } from '../config/given.ts';
import { convert, managerOptions } from '../config/manager-options.ts';
import { placeOf } from '../config/place.ts';
import type { Setting, SettingKey } from '../config/settings.ts';
import { allSettings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { readyBody, whyNotReady } from '../manage/health.ts';
import type { ListenAddress, Listener } from '../manage/listen.ts';
import { listen, parseListenAddress } from '../manage/listen.ts';
import type { LogFormat, LogLevel } from '../manage/log.ts';
import { EventLog, openLogger } from '../manage/log.ts';
import { Metrics } from '../manage/metrics.ts';

/** A `NodeManager`, or the fake of a test. */
export interface Manager {
  run(signal: AbortSignal): Promise<void>;
  readonly status: ManagerStatus;
}

export type MakeManager = (options: ManagerOptions, hooks?: ManagerHooks) => Manager;

export function manageWith(
  makeManager: MakeManager,
): (flags: FlagValues, context: Context) => Promise<number> {
  return async (flags, context) => {
    const settings = await collectSettings(allSettings, flags, context);
    const place = await placeOf(settings, context);
    const options = managerOptions(settings, place, await accessOf(settings, context.cwd));
    const address = listenAddress(settings);
    const level = (choice(settings, 'log_level') ?? 'info') as LogLevel;
    const format = choice(settings, 'log_format') as LogFormat | undefined;
    const loose = await looseFile(settings, flags['config'], context.cwd);
    let tell: (event: ManagerEvent) => void = () => {};
    const manager = makeManager({ ...options, onEvent: (event) => tell(event) });

    // From here on only the log writes to stdout.
    const sink = await context.openLog();
    const { id } = manager.status;
    const logger = openLogger(sink, {
      level,
      format: format ?? (sink.isTerminal ? 'pretty' : 'json'),
      manager: id,
    });
    const version = await readVersion();
    // Node's own metrics cost something all the time, so they are made only if they can be asked
    // for.
    const metrics = address && new Metrics(version, () => manager.status);
    const log = new EventLog(logger);
    tell = (event) => {
      metrics?.count(event);
      log.tell(event);
    };
    context.onHangUp(() => {
      logger.info({ event: 'ignored' }, 'HUP is ignored: settings are read at the start only');
    });
    let listener: Listener | undefined;
    try {
      listener = address && metrics && (await serve(address, manager, metrics));
      const { url } = listener ?? {};
      const served = url === undefined ? '' : `; health and metrics at ${url}`;
      const listening = url === undefined ? {} : { listen: url };
      logger.info({ event: 'begun', version, ...listening }, `version ${version} begins${served}`);
      if (loose !== undefined) logger.warn({ event: 'warning' }, loose);
      await manager.run(context.signal);
      return exitCodes.ok;
    } catch (error) {
      if (context.signal.aborted && error === context.signal.reason) return exitCodes.ok;
      logger.error({ event: 'failed' }, error instanceof Error ? error.message : String(error));
      throw error;
    } finally {
      listener?.close();
      await sink.end();
    }
  };
}

function serve(address: ListenAddress, manager: Manager, metrics: Metrics): Promise<Listener> {
  return listen(address, {
    ready() {
      const { status } = manager;
      return { ready: whyNotReady(status) === undefined, body: readyBody(status) };
    },
    metrics: async () => ({ type: metrics.contentType, text: await metrics.text() }),
  });
}

function listenAddress(settings: Settings): ListenAddress | undefined {
  const given = settings.get('listen');
  if (given === undefined) return undefined;
  return (
    parseListenAddress(String(given.value)) ??
    refuse(given, 'is HOST:PORT, such as 127.0.0.1:9121, [::1]:9121, or :9121 for every address')
  );
}

function choice(settings: Settings, key: SettingKey): string | undefined {
  const given = settings.get(key);
  const setting = allSettings.find((each) => each.key === key) as Setting;
  return given === undefined ? undefined : String(convert(setting, given));
}
