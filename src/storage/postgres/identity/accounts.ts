// Adds accounts of people: one for each email address, stored in lower case.

import type { PostgresClient } from '../pool.ts';

/**
 * Adds an account, unless it exists. The address is stored in lower case: any organization's administrators can add any
 * address, and an account in the spelling of whoever added it first would reveal that it existed before.
 */
export async function addAccount(client: PostgresClient, email: string): Promise<void> {
  await client.query('INSERT INTO users (email) VALUES (lower($1)) ON CONFLICT (lower(email)) DO NOTHING', [email]);
}
