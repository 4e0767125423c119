import { Dataset } from './dataset.ts';
import type { Position } from './disk.ts';
import type { Server } from './server.ts';

/** Reads the data of a server that starts (`loadDataFromDisk` of server.c). */
export function boot(server: Server, done: () => void): void {
  const { disk, machine, settings } = server;
  const keepsAof = settings.isOn('appendonly');
  // Where an append-only file is configured, nothing else is looked at, and be it missing.
  const data = keepsAof ? disk.aof : disk.rdb?.data;
  const position = keepsAof ? undefined : disk.rdb?.position;
  const finish = () => {
    server.loading = undefined;
    if (data !== undefined) server.data = data.copy();
    if (keepsAof) {
      disk.aof ??= new Dataset();
      server.aof.goOn();
    }
    if (position !== undefined) goOnFrom(server, position);
    done();
  };
  const loadMs = data === undefined ? 0 : machine.speeds.loadMs(data.size);
  if (loadMs === 0) {
    finish();
    return;
  }
  server.loading = 'only';
  server.after(loadMs, finish);
}

function goOnFrom(server: Server, position: Position): void {
  const { history, upstream } = server;
  history.offset = position.offset;
  if (upstream !== undefined) {
    history.replId = position.replId;
    upstream.cached = { ...position };
    return;
  }
  // A primary goes on under a new name, and serves those who know the former one.
  history.replId2 = position.replId;
  history.secondOffset = position.offset + 1;
  server.createBacklog();
}
