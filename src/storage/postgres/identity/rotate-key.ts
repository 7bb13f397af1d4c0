// A new secret for a key: the old one is good for as long as the overlap lasts, so that nobody has to change at one instant.

import type { Actor } from '../../../domain/identity/actor.ts';
import type { Postgres } from '../pool.ts';
import type { Refused } from './change.ts';
import type { KeyName, KeySecrets, KeyWithSecret } from './keys.ts';

/** Overlap 0 ends the old secret at once; at most 30 days. Rotating again ends every secret but the two newest. */
export async function rotateKey(_postgres: Postgres, _secrets: KeySecrets, _actor: Actor, _name: KeyName, _order: { overlapSeconds: number }): Promise<KeyWithSecret | Refused> {
  throw new Error('follows');
}
