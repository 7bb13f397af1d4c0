// Accounts of people: one for each e-mail address, kept in small letters.

import type { PostgresClient } from '../pool.ts';

/**
 * Leaves an account that is there. In small letters: anybody's administrators add any address, and an account with the
 * spelling of whoever named it first would tell them that it is there, and how that one wrote it.
 */
export async function addAccount(client: PostgresClient, email: string): Promise<void> {
  await client.query('INSERT INTO users (email) VALUES (lower($1)) ON CONFLICT (lower(email)) DO NOTHING', [email]);
}
