import type { Codec, ReplyHeader } from '@incumbent/zookeeper/internal';
import { JuteWriter, replyHeader, watcherEvent, xids } from '@incumbent/zookeeper/internal';

/** A frame: its length and what `write` writes. */
export function frame(write: (writer: JuteWriter) => void): Uint8Array {
  const writer = new JuteWriter(128);
  const start = writer.beginFrame();
  write(writer);
  writer.endFrame(start);
  return writer.written();
}

/** A reply; its body only where there is no error. */
export function replyFrame(
  header: ReplyHeader,
  codec?: Codec<unknown>,
  body?: unknown,
): Uint8Array {
  return frame((writer) => {
    replyHeader.write(writer, header);
    if (header.error === 0 && codec !== undefined) codec.write(writer, body);
  });
}

export function notificationFrame(
  type: number,
  state: number,
  path: string,
  zxid: bigint,
): Uint8Array {
  return frame((writer) => {
    replyHeader.write(writer, { xid: xids.notification, zxid, error: 0 });
    watcherEvent.write(writer, { type, state, path });
  });
}

/** The same reply for another request. */
export function withXid(bytes: Uint8Array, change: (xid: number) => number): Uint8Array {
  const copy = new Uint8Array(bytes);
  const view = new DataView(copy.buffer);
  view.setInt32(4, change(view.getInt32(4)));
  return copy;
}
