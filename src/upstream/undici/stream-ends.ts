// Corrects how streams of HTTP/2 end, where undici or Node's HTTP/2 ends them in a way that hurts a client of
// providers.

import { subscribe } from 'node:diagnostics_channel';
import { type ClientHttp2Stream, constants } from 'node:http2';

let isSubscribed = false;

/** Streams whose reply has come to its end, or that were given up here. */
const ended = new WeakSet<ClientHttp2Stream>();

/** Watches all HTTP/2 streams of this process from now on; only undici opens any. */
export function watchStreamEnds(): void {
  if (isSubscribed) return;
  isSubscribed = true;
  subscribe('http2.client.stream.created', (message) => {
    const { stream } = message as { readonly stream: ClientHttp2Stream };
    noteEnd(stream);
    closeAsCancelled(stream);
  });
  subscribe('http2.client.stream.close', (message) => failReset((message as { stream: ClientHttp2Stream }).stream));
}

/** Node pushes null for the frame that ends a reply, before it says that the stream is closed. */
function noteEnd(stream: ClientHttp2Stream): void {
  const push = stream.push.bind(stream);
  stream.push = (chunk, encoding) => {
    if (chunk === null) ended.add(stream);
    return push(chunk, encoding);
  };
}

/**
 * Closes a stream with the code CANCEL. undici gives no code, which is NO_ERROR, and destroys the stream in the same
 * tick. If a part of the request is not sent yet, Node's HTTP/2 then never returns, and the whole process stands still
 * (undici 8.12.4 on Node 22.23.3; test/integration/upstream-transports.test.ts).
 */
function closeAsCancelled(stream: ClientHttp2Stream): void {
  const close = stream.close.bind(stream);
  stream.close = (code = constants.NGHTTP2_CANCEL, callback) => {
    ended.add(stream);
    close(code, callback);
  };
}

/** When a provider resets a stream with NO_ERROR or CANCEL, Node would report an incomplete reply as complete. */
function failReset(stream: ClientHttp2Stream): void {
  if (!ended.has(stream)) stream.destroy(new Error(`the stream was reset with code ${stream.rstCode}`));
}
