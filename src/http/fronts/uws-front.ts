// The front on uWebSockets.js: an application of it, its routes and its connections.

import type { ConnectionWatch, Front, FrontMethod, RequestHandler } from './front.ts';
import type { ListenSocket, TemplatedApp, Uws } from './load-uws.ts';
import { UwsResponse } from './uws-response.ts';

export class UwsFront implements Front {
  private readonly uws: Uws;
  private readonly app: TemplatedApp;
  private listenSocket: ListenSocket | null = null;

  constructor(uws: Uws) {
    this.uws = uws;
    this.app = uws.App();
  }

  handle(method: FrontMethod, pattern: string, handler: RequestHandler): void {
    const name = method === 'delete' ? 'del' : method;
    this.app[name](pattern, (response, request) => handler(new UwsResponse(response), request));
  }

  watchConnections(watch: ConnectionWatch): void {
    this.app.filter((socket, change) => {
      if (change < 0) watch.onClosed();
      else if (!watch.onOpened(new Uint8Array(socket.getRemoteAddress()))) socket.close();
    });
  }

  listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.app.listen(host, port, (listenSocket) => {
        if (listenSocket === false) return reject(new Error(`cannot listen on ${host}:${port}`));
        this.listenSocket = listenSocket;
        resolve();
      });
    });
  }

  stopListening(): void {
    if (this.listenSocket !== null) this.uws.us_listen_socket_close(this.listenSocket);
    this.listenSocket = null;
  }

  close(): void {
    this.app.close();
  }
}
