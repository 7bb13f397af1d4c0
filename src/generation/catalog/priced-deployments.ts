// Which deployments of a model can serve what a request names beside its plain price: those whose price says what it
// costs. Only a request that names something comes here.

import type { Price } from '../../domain/models/price.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { hasCallPrice, hasOutputAudio, hasVariation } from '../../domain/settlement/rates-of.ts';
import type { NamedCost, NamedCosts } from '../dialects/dialect.ts';

interface Priced {
  readonly price: Price | null;
}

/** At least one, or why a billed organization is refused. */
export function pricedDeployments<Deployment extends Priced>(
  deployments: readonly Deployment[],
  { items }: NamedCosts,
): readonly Deployment[] | Refusal {
  const able = deployments.filter(({ price }) => items.every((item) => hasPrice(price, item)));
  if (able.length > 0) return able;
  const lacking = items.find((item) => !deployments.some(({ price }) => hasPrice(price, item))) ?? items[0];
  return lacking?.refusal ?? able;
}

function hasPrice(price: Price | null, { kind, name }: NamedCost): boolean {
  if (price === null) return false;
  if (kind === 'calls') return hasCallPrice(price.terms, name);
  return kind === 'audio' ? hasOutputAudio(price.terms) : hasVariation(price.terms, kind, name);
}
