// One application of a configuration file: its transaction, and what the parts of it find out on the way.

import type { PostgresClient } from '../pool.ts';
import type { SecretBox } from '../secret-box.ts';

export interface GeneratedKey {
  readonly organization: string;
  readonly name: string;
  /** Known here and nowhere else: to be shown once. */
  readonly secret: string;
}

export interface Application {
  readonly client: PostgresClient;
  readonly box: SecretBox;
  readonly pepper: Buffer;
  /** Something that gateways hold in memory is different. */
  catalogChanged: boolean;
  /** Keys, users and organizations whose credentials stand for something else than before (changes.ts). */
  readonly changedIds: string[];
  readonly generatedKeys: GeneratedKey[];
}

/** The file contradicts what the database holds from before; nothing was applied. One line a contradiction. */
export class ConfigurationConflict extends Error {
  override readonly name = 'ConfigurationConflict';
}
