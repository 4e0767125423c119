import { visible } from '../../terminal/text.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The data of a node as text; undefined when it is not valid UTF-8. */
export function textOf(data: Uint8Array): string | undefined {
  try {
    return utf8.decode(data);
  } catch {
    return undefined;
  }
}

/** For JSON: base64, and `text` where it is UTF-8. null is a node without data. */
export function dataToJson(data: Uint8Array | null): object {
  if (data === null) return { data: null };
  const text = textOf(data);
  return {
    data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
    ...(text === undefined ? {} : { text }),
  };
}

/** For a terminal: text with escapes instead of control characters, else a hex dump. */
export function dataForTerminal(data: Uint8Array): string {
  const text = textOf(data);
  if (text === undefined) return hexDump(data);
  const shown = text.replace(/[^\n\t]+/g, visible);
  return text === '' || text.endsWith('\n') ? shown : `${shown}\n`;
}

/** Offset, 16 bytes and their ASCII on each line. */
export function hexDump(data: Uint8Array): string {
  let dump = '';
  for (let offset = 0; offset < data.length; offset += 16) {
    const line = data.subarray(offset, offset + 16);
    const hex = Array.from(line, (byte) => byte.toString(16).padStart(2, '0'));
    const halves = `${hex.slice(0, 8).join(' ')}  ${hex.slice(8).join(' ')}`.padEnd(48);
    const ascii = Array.from(line, (byte) =>
      byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.',
    ).join('');
    dump += `${offset.toString(16).padStart(8, '0')}  ${halves}  ${ascii}\n`;
  }
  return dump;
}
