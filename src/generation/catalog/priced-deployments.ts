// Which deployments of a model can serve what a request names beside its plain price: those whose price says what it
// costs. Only a request that names something comes here.

import type { Price } from '../../domain/models/price.ts';
import { flatFee } from '../../domain/own-keys/fee-price.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { hasCallPrice, hasOutputAudio, hasVariation } from '../../domain/settlement/rates-of.ts';
import type { NamedCost, NamedCosts } from '../dialects/dialect.ts';
import type { Deployment } from './serving-catalog.ts';

/** What an own key costs does not always depend on what it is used for. */
type Priced = Pick<Deployment, 'price' | 'ownKey'>;

/** At least one, or why a billed organization is refused. */
export function pricedDeployments<Candidate extends Priced>(
  deployments: readonly Candidate[],
  { items }: NamedCosts,
): readonly Candidate[] | Refusal {
  const able = deployments.filter((deployment) => items.every((item) => isPriced(deployment, item)));
  if (able.length > 0) return able;
  const lacking = items.find((item) => !deployments.some((deployment) => isPriced(deployment, item))) ?? items[0];
  return lacking?.refusal ?? able;
}

function isPriced({ price, ownKey }: Priced, item: NamedCost): boolean {
  return (ownKey !== undefined && flatFee(ownKey.fee) !== null) || hasPrice(price, item);
}

function hasPrice(price: Price | null, { kind, name }: NamedCost): boolean {
  if (price === null) return false;
  if (kind === 'calls') return hasCallPrice(price.terms, name);
  return kind === 'audio' ? hasOutputAudio(price.terms) : hasVariation(price.terms, kind, name);
}
