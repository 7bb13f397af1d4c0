// The rows of the route table for the console: its page, signing in and out, and its session.

import { FINISH_OIDC, finishOidc, START_OIDC, startOidc } from '../control-plane/console/oidc.ts';
import { createPlaygroundKey } from '../control-plane/console/playground-key.ts';
import { serveConsole } from '../control-plane/console/serve-console.ts';
import { changeSession, END_SESSION, endSession, getSession } from '../control-plane/console/session.ts';
import { GET_SIGN_IN, getSignIn, type Identify, SIGN_IN, signIn } from '../control-plane/console/sign-in.ts';
import type { DescribedRoute } from '../control-plane/openapi/described-route.ts';
import { GET_CONSOLE, GET_CONSOLE_FILE } from '../control-plane/openapi/read-descriptions.ts';
import type { Operation } from '../control-plane/operation.ts';
import type { Exchange } from '../http/exchange.ts';
import { StoreAway } from '../platform/store-away.ts';
import { authorizeWithSession } from './authorize.ts';
import { type ControlPlaneRow, row } from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

const SESSION_PATH = '/v1/console/session';
const SIGN_IN_PATH = '/v1/console/sign-in';
const ANY = { permission: null, scope: 'none' } as const;
const OPEN = { ...ANY, plane: 'process', envelope: 'platform' } as const;

export function consoleRows(parts: RouteParts): ControlPlaneRow[] {
  return [
    row('GET', SESSION_PATH, { ...ANY, looksUpSession: true }, orAway(getSession(() => parts.console))),
    row('PATCH', SESSION_PATH, ANY, orAway(changeSession(parts.identity))),
    row(
      'POST',
      '/v1/console/playground-key',
      { permission: 'inference', scope: 'organization' },
      orAway(createPlaygroundKey(() => parts.console.createPlaygroundKey)),
    ),
  ];
}

export function consoleRoutes(parts: RouteParts): readonly DescribedRoute[] {
  const { authenticator } = parts;
  const identify: Identify = {
    token: (token, exchange) => authenticator.identify(`Bearer ${token}`, null, undefined, exchange),
    session: (secret, exchange) => authenticator.identifySession(secret, undefined, exchange),
  };
  const session = { method: 'DELETE', path: SESSION_PATH, ...ANY } as const;
  const page = { method: 'GET', ...OPEN, answersHead: true } as const;
  return [
    {
      ...page,
      path: '/console',
      description: GET_CONSOLE,
      handle: (exchange) => serveConsole(parts.console.built, exchange),
    },
    {
      ...page,
      path: '/console/:path',
      takesRest: true,
      description: GET_CONSOLE_FILE,
      handle: (exchange) => serveConsole(parts.console.built, exchange),
    },
    {
      method: 'GET',
      path: SIGN_IN_PATH,
      ...OPEN,
      description: GET_SIGN_IN,
      handle: (exchange) => getSignIn(parts.console, exchange),
    },
    {
      method: 'POST',
      path: SIGN_IN_PATH,
      ...OPEN,
      description: SIGN_IN,
      handle: unlessAway((exchange) => signIn(parts.console, identify, exchange)),
    },
    {
      method: 'GET',
      path: '/v1/console/oidc/:providerName',
      ...OPEN,
      description: START_OIDC,
      handle: (exchange) => startOidc(parts.console, exchange),
    },
    {
      method: 'GET',
      path: '/v1/console/oidc/:providerName/callback',
      ...OPEN,
      description: FINISH_OIDC,
      handle: (exchange) => finishOidc(parts.console, exchange),
    },
    {
      ...session,
      plane: 'control',
      takesSession: true,
      envelope: 'platform',
      description: END_SESSION,
      handle: unlessAway((exchange) =>
        endSession(parts.console, exchange, authorizeWithSession(parts, session, exchange)),
      ),
    },
  ];
}

/**
 * While the database is away, nobody can say who is signed in. The answer says so, and the console signs nobody out.
 */
function unlessAway<More extends readonly unknown[]>(
  serve: (exchange: Exchange, ...more: More) => Promise<void>,
): typeof serve {
  return async (exchange, ...more) => {
    try {
      await serve(exchange, ...more);
    } catch (fault) {
      if (!(fault instanceof StoreAway)) throw fault;
      exchange.refuse({ kind: 'sessions_unavailable' });
    }
  };
}

function orAway(operation: Operation): Operation {
  return { ...operation, serve: unlessAway(operation.serve) };
}
