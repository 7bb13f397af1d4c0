// Which deployments of a model can serve what a request names beside its plain price: those whose price says what it
// costs, and first those whose price says what it may do unnamed. Only a request that names something comes here.

import type { Price } from '../../domain/models/price.ts';
import { flatFee } from '../../domain/own-keys/fee-price.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { hasCallPrice, hasOutputAudio, hasVariation } from '../../domain/settlement/rates-of.ts';
import type { CallBound, NamedCost, NamedCosts } from '../dialects/dialect.ts';
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

/**
 * First those that have a price for all tools that the request may call: what the others let it call is charged as
 * held. Own keys stay where they are, since their providers bill the organization.
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
