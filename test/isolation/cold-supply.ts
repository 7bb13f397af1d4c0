// Supplies keys, wallets, saved responses and numbers of exchanges that no gateway has seen, each for one look-up. What
// a gateway remembers it may serve without a look-up, even while the store does not answer.

import { derivePepper, hashCredential } from '../../src/domain/identity/key-hash.ts';
import type { Postgres } from '../../src/storage/postgres/pool.ts';
import { COLD_TENANTS, coldKey, FIRST_COLD_TENANT, MODELS, slugOf } from './world.ts';

/** The first number of these exchanges. */
const FIRST_INDEX = 50_000_000_000;

export interface SavedBefore {
  readonly tenant: number;
  readonly responseId: string;
  /** The model's public id. */
  readonly model: string;
}

export class ColdSupply {
  private readonly pepper: Buffer;
  private exchanges = 0;
  private keys = 0;
  private wallets = 0;

  constructor(masterKey: string) {
    this.pepper = derivePepper(Buffer.from(masterKey, 'base64'));
  }

  nextIndex(): number {
    return FIRST_INDEX + this.exchanges++;
  }

  get hasWallet(): boolean {
    return this.wallets < COLD_TENANTS;
  }

  /** Returns a tenant from whose wallet nothing was ever leased. */
  takeWallet(): number {
    if (!this.hasWallet) throw new Error('every cold wallet is used up');
    return FIRST_COLD_TENANT + this.wallets++;
  }

  /** Creates a new key for each of these tenants, in order. */
  async makeKeys(postgres: Postgres, tenants: readonly number[]): Promise<string[]> {
    const secrets = tenants.map((tenant) => coldKey(tenant, this.keys++));
    await postgres.query(
      `INSERT INTO api_keys (organization_id, team_id, user_id, name, key_hash, key_prefix)
       SELECT warm.organization_id, warm.team_id, warm.user_id, cold.name, cold.hash, warm.key_prefix
         FROM unnest($1::text[], $2::text[], $3::bytea[]) AS cold (slug, name, hash)
         JOIN organizations USING (slug)
         JOIN api_keys warm ON warm.organization_id = organizations.id AND warm.name = 'key 0'`,
      [tenants.map(slugOf), secrets, secrets.map((secret) => hashCredential(this.pepper, secret))],
    );
    return secrets;
  }

  /** Stores saved responses, as if a gateway that is gone had relayed them. */
  async saveResponses(postgres: Postgres, saved: readonly SavedBefore[]): Promise<void> {
    const providerOf = (model: string): string => MODELS.find(({ id }) => id === model)?.deployments[0]?.provider ?? '';
    await postgres.query(
      `INSERT INTO saved_responses (organization_id, response_id, wallet_id, provider, model, provider_model,
         execution_id, input_tokens, output_tokens, created_at)
       SELECT organizations.id, saved.id, wallets.id, saved.provider, saved.model, saved.model,
              gen_random_uuid(), 3, 2, now()
         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS saved (slug, id, model, provider)
         JOIN organizations USING (slug)
         LEFT JOIN wallets ON wallets.organization_id = organizations.id AND wallets.user_id IS NULL
              AND organizations.billing <> 'none'`,
      [
        saved.map(({ tenant }) => slugOf(tenant)),
        saved.map(({ responseId }) => responseId),
        saved.map(({ model }) => model),
        saved.map(({ model }) => providerOf(model)),
      ],
    );
  }
}
