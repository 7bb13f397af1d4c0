// Loads uWebSockets.js, after setting what it reads from the environment at load time; nothing else in the project
// imports it.

// Coding agents send more than the 4 KB of header that uWebSockets.js allows by default. It reads this once, when the
// addon loads. oxlint-disable-next-line no-restricted-properties -- the addon has no other way to be told
process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= '16384';

const uws = await import('uWebSockets.js');

export const App = uws.App;
export const closeListenSocket = uws.us_listen_socket_close;
export type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket as ListenSocket } from 'uWebSockets.js';
