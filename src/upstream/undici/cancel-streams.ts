// Makes undici give up an HTTP/2 stream with CANCEL, as a client should. It closes one without a code, which is
// NO_ERROR, and destroys it in the same tick: where a part of the request is not sent yet, Node's HTTP/2 then never
// returns, and the whole process stands still (undici 8.12.4 on Node 22.23.3;
// test/integration/upstream-transports.test.ts).

import { subscribe } from 'node:diagnostics_channel';
import { type ClientHttp2Stream, constants } from 'node:http2';

let isSubscribed = false;

/** For all streams of this process from now on; undici alone opens any. */
export function cancelStreams(): void {
  if (isSubscribed) return;
  isSubscribed = true;
  subscribe('http2.client.stream.created', (message) => {
    const { stream } = message as { readonly stream: ClientHttp2Stream };
    const close = stream.close.bind(stream);
    stream.close = (code = constants.NGHTTP2_CANCEL, callback) => close(code, callback);
  });
}
