// What a model costs an organization at its own provider.

import type { Price } from '../models/price.ts';

export interface OwnModelPrice {
  /** Public id. */
  readonly model: string;
  /** In the words of the configuration file. */
  readonly words: Readonly<Record<string, unknown>>;
  readonly price: Price;
}
