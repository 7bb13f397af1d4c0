// The HTTP front of a gateway process: registers the route table on uWebSockets.js, guards frames, counts what is open, drains.

import type { Refusal } from '../domain/refusals/refusal.ts';
import type { RenderContext } from '../domain/refusals/render.ts';
import { Exchange, type ExchangeContext } from './exchange.ts';
import { guardFrame } from './frame-guard.ts';
import { App, closeListenSocket, type HttpRequest, type HttpResponse, type ListenSocket, type TemplatedApp } from './native-server.ts';
import type { Route } from './route.ts';
import { explainUnknownPath } from './unknown-path.ts';

export interface ServerOptions {
  readonly routes: readonly Route[];
  readonly renderContext: RenderContext;
  readonly onRefusal: (kind: Refusal['kind']) => void;
  readonly onFault: (fault: unknown, exchange: Exchange) => void;
}

const NATIVE_METHODS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'del' } as const;

export class Server {
  /** Exchanges whose response is not complete. */
  openExchanges = 0;
  private readonly app: TemplatedApp = App();
  private readonly context: ExchangeContext;
  private listenSocket: ListenSocket | null = null;
  /** Nothing new is accepted, and what is open should end. */
  draining = false;
  private onIdle: (() => void) | null = null;

  constructor(options: ServerOptions) {
    this.context = {
      renderContext: options.renderContext,
      closing: () => this.draining,
      onOpen: () => {
        this.openExchanges += 1;
      },
      onClose: () => {
        this.openExchanges -= 1;
        if (this.openExchanges === 0) this.onIdle?.();
      },
      onRefusal: options.onRefusal,
      onFault: options.onFault,
    };
    this.register(options.routes);
  }

  private register(routes: readonly Route[]): void {
    for (const route of routes) {
      const handler = (response: HttpResponse, request: HttpRequest) => this.accept(response, request, route);
      this.app[NATIVE_METHODS[route.method]](route.path, handler);
    }
    for (const path of new Set(routes.map((route) => route.path))) {
      const allowed = routes.filter((route) => route.path === path);
      const envelope = allowed[0]?.envelope ?? 'platform';
      const refusal: Refusal = { kind: 'method_not_allowed', allow: allowed.map((route) => route.method) };
      // Where items are kept, a POST names an endpoint and not an item, and there is none: OpenAI has `/v1/responses/input_tokens`.
      const isItem = /\/:\w+$/.test(path);
      const refuse = (exchange: Exchange): void =>
        exchange.refuse(isItem && exchange.method === 'post' ? { kind: 'unknown_path', path: exchange.path } : refusal);
      const wrongMethod: Route = { method: 'GET', anyMethod: true, path, envelope, handle: refuse };
      this.app.any(path, (response, request) => this.accept(response, request, wrongMethod));
    }
    // A route that is not in the table does not exist (DESIGN 5).
    this.app.any('/*', (response, request) => {
      const { envelope, hint } = explainUnknownPath(request.getUrl(), routes, this.context.renderContext.publicUrl);
      const handle = (exchange: Exchange): void => exchange.refuse({ kind: 'unknown_path', path: exchange.path, hint });
      this.accept(response, request, { method: 'GET', anyMethod: true, path: '/*', envelope, handle });
    });
  }

  /** A uWebSockets.js handler must never throw and never leave a response without `onAborted`: both are seen to here. */
  private accept(response: HttpResponse, request: HttpRequest, route: Route): void {
    const exchange = new Exchange(response, request, route, this.context);
    try {
      const refusal = guardFrame(exchange);
      if (refusal !== null) {
        exchange.refuse(refusal);
        return;
      }
      const done = route.handle(exchange);
      if (done instanceof Promise) done.catch((fault: unknown) => exchange.fail(fault));
    } catch (fault) {
      exchange.fail(fault);
    }
  }

  /** Listens with SO_REUSEPORT, so that the gateway processes of one machine share the port. */
  listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.app.listen(host, port, (listenSocket) => {
        if (listenSocket === false) {
          reject(new Error(`cannot listen on ${host}:${port}`));
          return;
        }
        this.listenSocket = listenSocket;
        resolve();
      });
    });
  }

  /** Stops accepting connections, lets open exchanges end for at most `drainMs`, then closes every connection. */
  async drain(drainMs: number): Promise<void> {
    this.draining = true;
    if (this.listenSocket !== null) closeListenSocket(this.listenSocket);
    this.listenSocket = null;
    if (this.openExchanges > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, drainMs);
        this.onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.app.close();
  }
}
