// A generation of which nothing is known yet but that it began, for tests of what is shown of one.

import type { Generation } from '../../src/records/generation.ts';

export function pendingGeneration(id: string): Generation {
  return {
    id,
    model: 'sim/small',
    streamed: false,
    inputTokens: null,
    outputTokens: null,
    usageDetails: null,
    screening: null,
    credentialId: null,
    ownFailures: null,
    fee: null,
    billingStatus: 'pending',
    charge: null,
    ratedCost: null,
    authorizedAmount: '8212500000',
    virtualModel: null,
    hasProvider: true,
  };
}
