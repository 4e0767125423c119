import type { Server } from './server.ts';

/** The answer to one of the words that stand for themselves in front of any frame. */
export function answerFourLetterWord(server: Server, chunk: Uint8Array): Uint8Array | undefined {
  const answer = answerOf(server, new TextDecoder('latin1').decode(chunk.subarray(0, 4)));
  return answer === undefined ? undefined : new TextEncoder().encode(answer);
}

function answerOf(server: Server, word: string): string | undefined {
  switch (word) {
    case 'isro':
      return server.isReadOnly ? 'ro' : 'rw';
    case 'ruok':
      return 'imok';
    case 'srvr':
      return `Zookeeper version: fake\nZxid: 0x${server.zxid.toString(16)}\nMode: ${
        server.isReadOnly ? 'read-only' : 'standalone'
      }\n`;
    default:
      return undefined;
  }
}
