// Selects the deployments of a model that have a price for what a request names beside the plain price, and orders
// those first that have a price for calls the model may make. Only a request that names such things comes here.

import type { Price } from '../../domain/models/price.ts';
import { flatFee } from '../../domain/own-keys/fee-price.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { hasCallPrice, hasOutputAudio, hasVariation } from '../../domain/settlement/rates-of.ts';
import type { CallBound, NamedCost, NamedCosts } from '../dialects/dialect.ts';
import type { Deployment } from './serving-catalog.ts';

/** `ownKey` is needed because the fee of an own key does not always depend on what the key is used for. */
type Priced = Pick<Deployment, 'price' | 'ownKey'>;

/** The deployments with a price for all items, at least one; or the refusal for a billed organization. */
export function pricedDeployments<Candidate extends Priced>(
  deployments: readonly Candidate[],
  { items }: NamedCosts,
): readonly Candidate[] | Refusal {
  const able = deployments.filter((deployment) => items.every((item) => isPriced(deployment, item)));
  if (able.length > 0) return able;
  const lacking = items.find((item) => !deployments.some((deployment) => isPriced(deployment, item))) ?? items[0];
  return lacking?.refusal ?? able;
}

/**
 * Puts deployments first that have a price for all tools the request may call; calls at the others are charged as held.
 * Own keys keep their places, since their providers bill the organization.
 */
export function pricedCallsFirst<Candidate extends Priced>(
  deployments: readonly Candidate[],
  calls: readonly CallBound[],
): readonly Candidate[] {
  const isAble = ({ price }: Candidate): boolean => calls.every(({ tool }) => hasCallPrice(price?.terms, tool));
  const ofService = deployments.filter(({ ownKey }) => ownKey === undefined);
  const able = ofService.filter(isAble);
  if (able.length === 0 || able.length === ofService.length) return deployments;
  const inOrder = [...able, ...ofService.filter((deployment) => !isAble(deployment))].values();
  return deployments.map((deployment) =>
    deployment.ownKey === undefined ? inOrder.next().value : deployment,
  ) as Candidate[];
}

function isPriced({ price, ownKey }: Priced, item: NamedCost): boolean {
  return (ownKey !== undefined && flatFee(ownKey.fee) !== null) || hasPrice(price, item);
}

function hasPrice(price: Price | null, { kind, name }: NamedCost): boolean {
  if (price === null) return false;
  if (kind === 'calls') return hasCallPrice(price.terms, name);
  return kind === 'audio' ? hasOutputAudio(price.terms) : hasVariation(price.terms, kind, name);
}
