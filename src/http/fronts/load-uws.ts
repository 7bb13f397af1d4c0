// Loads uWebSockets.js, after setting what it reads from the environment at load time; nothing else in the project
// imports it.

export type Uws = Pick<typeof import('uWebSockets.js'), 'App' | 'us_listen_socket_close'>;
export type { HttpResponse, TemplatedApp, us_listen_socket as ListenSocket } from 'uWebSockets.js';

/** Throws where it has no binary for this system and this Node. */
export async function loadUws(): Promise<Uws> {
  // Coding agents send more than the 4 KB of header that uWebSockets.js allows by default. It reads this
  // once, when the addon loads, and has no other way to be told.
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= '16384';
  return import('uWebSockets.js');
}
