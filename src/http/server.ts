// The HTTP server of a gateway process: registers the route table on its front, guards frames, counts and bounds what
// is open, drains.

import type { Refusal } from '../domain/refusals/refusal.ts';
import { atTickEnd } from '../platform/event-loop/tick.ts';
import { type ConnectionCap, type ConnectionLimits, Connections } from './connections.ts';
import type { CrossOrigin } from './cross-origin.ts';
import { Exchange } from './exchange.ts';
import type { ExchangeContext } from './exchange-context.ts';
import { guardFrame } from './frame-guard.ts';
import type { ClientRequest, ClientResponse, Front } from './fronts/front.ts';
import type { RequestBody } from './request-body.ts';
import { METHODS, type RequestHead } from './request-head.ts';
import type { Route } from './route.ts';
import { explainUnknownPaths } from './unknown-path.ts';

export interface ServerOptions {
  /** Not listening yet. */
  readonly front: Front;
  readonly routes: readonly Route[];
  readonly renderContext: ExchangeContext['renderContext'];
  readonly nextRequestId: () => string;
  readonly onRefusal: (kind: Refusal['kind']) => void;
  readonly onFault: (fault: unknown, request: RequestHead) => void;
  readonly onConnectionRefused?: (cap: ConnectionCap) => void;
  readonly limits?: HttpLimits;
  /** null, as by default: pages of other origins cannot read answers. */
  readonly crossOrigin?: CrossOrigin | null;
}

export interface HttpLimits extends ConnectionLimits {
  /**
   * The time for a whole body from its first packet. uWebSockets.js also ends a body that comes slower than 16 KB a
   * second.
   */
  readonly bodyTimeoutMs: number;
  /** How many bytes are read of a body that is dropped because its request is refused. */
  readonly droppedBytesMax: number;
}

const NO_LIMITS: HttpLimits = {
  connectionsMax: Number.POSITIVE_INFINITY,
  connectionsPerAddressMax: Number.POSITIVE_INFINITY,
  trustedAddresses: [],
  bodyTimeoutMs: Number.POSITIVE_INFINITY,
  droppedBytesMax: Number.POSITIVE_INFINITY,
};

/**
 * How many answers one tick may write at once. A client that does not pipeline gets at most one for each connection.
 */
const ANSWERS_AT_ONCE_MAX = 32;

export class Server {
  /** Exchanges whose response is not complete. */
  openExchanges = 0;
  private readonly front: Front;
  private readonly context: ExchangeContext;
  private readonly limits: HttpLimits;
  private readonly connections: Connections;
  /** Bodies that arrive or are dropped, oldest first. */
  private readonly arriving = new Set<RequestBody>();
  /** No new connection is accepted, and open exchanges should end. */
  draining = false;
  private onIdle: (() => void) | null = null;
  private onUnconnected: (() => void) | null = null;
  /** How many answers this tick has written at once. */
  private answeredAtOnce = 0;

  constructor(options: ServerOptions) {
    const { front, limits = NO_LIMITS } = options;
    this.front = front;
    this.limits = limits;
    this.connections = new Connections(limits);
    this.context = {
      renderContext: options.renderContext,
      nextRequestId: options.nextRequestId,
      crossOrigin: options.crossOrigin ?? null,
      bodyTimeoutMs: limits.bodyTimeoutMs,
      droppedBytesMax: limits.droppedBytesMax,
      closing: (isKnown) => this.draining || !this.connections.keeps(isKnown),
      mayAnswerAtOnce: () => this.mayAnswerAtOnce(),
      onOpen: () => {
        this.openExchanges += 1;
      },
      onClose: () => {
        this.openExchanges -= 1;
        if (this.openExchanges === 0) this.onIdle?.();
      },
      onBodyArriving: (body) => this.arriving.add(body),
      onBodySettled: (body) => this.arriving.delete(body),
      sourceOf: (address, forwardedFor) => this.connections.sourceOf(address, forwardedFor),
      onRefusal: options.onRefusal,
      onFault: options.onFault,
    };
    this.watchConnections(options);
    this.register(options.routes);
  }

  private watchConnections({ onConnectionRefused }: ServerOptions): void {
    this.front.watchConnections({
      onOpened: (address) => {
        const cap = this.connections.onOpened(address);
        if (cap !== null) onConnectionRefused?.(cap);
        return cap === null;
      },
      onClosed: () => {
        this.connections.onClosed();
        if (this.connections.open === 0) this.onUnconnected?.();
      },
    });
  }

  /** Open connections, with and without a request. */
  get openConnections(): number {
    return this.connections.open;
  }

  /** Requests whose body is arriving, including bodies that are dropped. */
  get arrivingBodies(): number {
    return this.arriving.size;
  }

  /**
   * Ends bodies that take too long, and begins to count opened connections anew when it is time. To be called about
   * every second.
   */
  tick(nowMs: number): void {
    this.connections.tick(nowMs);
    for (const body of this.arriving) body.tick(nowMs);
  }

  private register(routes: readonly Route[]): void {
    for (const route of routes) {
      const handler = (response: ClientResponse, request: ClientRequest) => this.accept(response, request, route);
      this.front.handle(METHODS[route.method], patternOf(route), handler);
      if (route.answersHead === true) this.front.handle('head', patternOf(route), handler);
    }
    for (const path of new Set(routes.map((route) => route.path))) {
      const allowed = routes.filter((route) => route.path === path);
      const envelope = allowed[0]?.envelope ?? 'platform';
      const refusal: Refusal = { kind: 'method_not_allowed', allow: allowed.flatMap(methodsOf) };
      // A POST to an item's path names an endpoint that does not exist, not an item: OpenAI has
      // `/v1/responses/input_tokens`.
      const isItem = /\/:\w+$/.test(path);
      const refuse = (exchange: Exchange): void =>
        exchange.refuse(isItem && exchange.method === 'post' ? { kind: 'unknown_path', path: exchange.path } : refusal);
      const takesRest = allowed[0]?.takesRest === true ? ({ takesRest: true } as const) : {};
      const wrongMethod: Route = { method: 'GET', anyMethod: true, path, ...takesRest, envelope, handle: refuse };
      this.front.handle('any', patternOf(wrongMethod), (response, request) =>
        this.accept(response, request, wrongMethod),
      );
    }
    if (this.context.crossOrigin !== null) this.answerPreflights(this.context.crossOrigin);
    const explain = explainUnknownPaths(routes, this.context.renderContext.publicUrl);
    // A route that is not in the table does not exist.
    this.front.handle('any', '/*', (response, request) => {
      const { envelope, hint } = explain(request.getUrl());
      const handle = (exchange: Exchange): void => exchange.refuse({ kind: 'unknown_path', path: exchange.path, hint });
      this.accept(response, request, { method: 'GET', anyMethod: true, path: '/*', envelope, handle });
    });
  }

  /** A preflight has no credential, so its answer says nothing about the path that it asks for. */
  private answerPreflights(crossOrigin: CrossOrigin): void {
    const handle = (exchange: Exchange): void => {
      const asked = exchange.header('access-control-request-headers');
      exchange.answer(200, crossOrigin.preflightHeadersFor(exchange.header('origin'), asked), '');
    };
    const route: Route = { method: 'GET', anyMethod: true, path: '/*', envelope: 'platform', handle };
    this.front.handle('options', '/*', (response, request) => this.accept(response, request, route));
  }

  /**
   * uWebSockets.js reads a socket until it is empty, and calls a handler for each request in it. A client that writes
   * requests faster than they are answered would have the process for itself.
   */
  private mayAnswerAtOnce(): boolean {
    if (this.answeredAtOnce === 0)
      atTickEnd(() => {
        this.answeredAtOnce = 0;
      });
    this.answeredAtOnce += 1;
    return this.answeredAtOnce <= ANSWERS_AT_ONCE_MAX;
  }

  /** A front's handler must not throw and must attach to the response. This method ensures both. */
  private accept(response: ClientResponse, request: ClientRequest, route: Route): void {
    const exchange = new Exchange(response, request, route, this.context);
    try {
      const refusal = guardFrame(exchange);
      if (refusal !== null) {
        exchange.refuse(refusal);
        return;
      }
      const done = route.handle(exchange);
      exchange.body.watch();
      if (done instanceof Promise) done.catch((fault: unknown) => exchange.fail(fault));
    } catch (fault) {
      exchange.fail(fault);
    }
  }

  /** Listens with SO_REUSEPORT, so that the gateway processes of one machine share the port. */
  listen(host: string, port: number): Promise<void> {
    return this.front.listen(host, port);
  }

  /**
   * Stops accepting connections, lets open exchanges end for at most `drainMs`, then closes every connection. In the
   * first `keptMs` of that time a request on a kept connection is answered, too, and ends its connection: closing it at
   * once would lose a request that the client is just sending.
   */
  async drain(drainMs: number, keptMs = 0): Promise<void> {
    this.draining = true;
    this.front.stopListening();
    const waitMs = Math.min(keptMs, drainMs);
    if (waitMs > 0 && this.connections.open > 0)
      await within(waitMs, (over) => {
        this.onUnconnected = over;
      });
    if (this.openExchanges > 0)
      await within(drainMs - waitMs, (over) => {
        this.onIdle = over;
      });
    this.front.close();
  }
}

/** Resolves when `over` is called, or when the time is over. */
function within(limitMs: number, begin: (over: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs);
    begin(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function methodsOf({ method, answersHead, servesNothing }: Route): readonly string[] {
  if (servesNothing === true) return [];
  return answersHead === true ? [method, 'HEAD'] : [method];
}

function patternOf({ path, takesRest }: Route): string {
  return takesRest === true ? path.replace(/:\w+$/, '*') : path;
}
