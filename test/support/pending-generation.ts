// A generation of which only the beginning is known, for tests of how such a generation is shown.

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
