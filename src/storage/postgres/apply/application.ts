// The state of applying one configuration file: its transaction, and what its parts report along the way.

import type { PostgresClient } from '../pool.ts';
import type { SecretBox } from '../secret-box.ts';

export interface GeneratedKey {
  readonly organization: string;
  readonly name: string;
  /** Returned once; only its hash is stored. */
  readonly secret: string;
}

export interface Application {
  readonly client: PostgresClient;
  readonly box: SecretBox;
  readonly pepper: Buffer;
  /** Removes what the sections of the file no longer have. */
  readonly prune: boolean;
  /** Ids of the providers in the file. */
  readonly providers: ReadonlySet<string>;
  /** Keys, users and organizations whose credentials gateways must look up again (changes.ts). */
  readonly changedIds: string[];
  readonly generatedKeys: GeneratedKey[];
}

/** The file contradicts the database, so nothing was applied. The message has a line for each contradiction. */
export class ConfigurationConflict extends Error {
  override readonly name = 'ConfigurationConflict';
}
