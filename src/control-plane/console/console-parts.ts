// What the console's routes need; the composition root provides it.

import type { OpenedSession, OpenSessionParams, SessionNames } from '../../domain/identity/session.ts';
import type { FairQueue } from '../../platform/fair-queue.ts';
import type { BuiltConsole } from './built-console.ts';
import type { ConsoleSessions } from './console-sessions.ts';
import type { OidcParts } from './oidc-parts.ts';
import type { CreatePlaygroundKey } from './playground-key.ts';

export interface ConsoleStore {
  /** null: the access token that opens it is revoked. */
  openSession(params: OpenSessionParams): Promise<OpenedSession | null>;
  /** null: the code is unknown, used or too old. */
  openSessionByLink(code: string): Promise<OpenedSession | null>;
  endSession(sessionId: string): Promise<void>;
  nameSession(of: { readonly userId: string | null; readonly organizationId: string | null }): Promise<SessionNames>;
}

export interface ConsoleParts {
  /** null: the operator has switched the console off (CONSOLE); nobody can sign in then. */
  readonly built: BuiltConsole | null;
  readonly sessions: ConsoleSessions;
  readonly store: ConsoleStore;
  /** Codes of links are looked up one after another, so that a flood of them delays nothing else. */
  readonly linkLookUps: FairQueue;
  readonly oidc: OidcParts;
  /** null: the console is switched off. */
  readonly createPlaygroundKey: CreatePlaygroundKey | null;
  readonly brand: string;
}
