/** As far as the types of `@kubernetes/client-node` name it: they come without those of `ws`. */
declare module 'ws' {
  class WebSocket {}
  // biome-ignore lint/style/noNamespace: how that module declares itself
  namespace WebSocket {
    export type ClientOptions = object;

    export { WebSocket };
  }
  export = WebSocket;
}
