// P18: CPU per request of an organization without own provider keys, on an installation where 200 others have some and
// each send a request before every pair of windows ÷ on one where nobody has any.

import { OWN_CLIENT, startProduct } from '../harness/product.ts';
import { comparePair } from './compare-pair.ts';
import type { Measure, Row } from './measure.ts';
import { OTHERS, OTHERS_REPLY, otherOrganizations, sendAsOthers } from './other-organizations.ts';

const KIND = OTHERS_REPLY.replaceAll('/', '-');
const SIZES = ['1k', '16k'] as const;
const PART = 'own';
const OWN_KEYS = otherOrganizations(
  PART,
  (index) => `    byok: { enabled: true }
    provider_credentials: [{ kind: ${KIND}, name: ours, secret: sk-own-${index}-0123456789 }]
`,
);

export const ownKeysBeside: Measure = {
  ids: ['P18'],
  async run(run) {
    if (run.product === null) return [];
    const plain = await startProduct(run.direct.port, undefined, null, { ...OWN_CLIENT, name: 'without' });
    const beside = await startProduct(run.direct.port, undefined, null, {
      ...OWN_CLIENT,
      name: 'beside',
      otherOrganizations: OWN_KEYS,
    });
    if (plain === null || beside === null) return [];
    try {
      await Promise.all([plain.suspendJobs(), beside.suspendJobs()]);
      const rows: Row[] = [];
      const what = (size: string): string =>
        `CPU of a ${size} request without own keys, beside ${OTHERS} organizations with some, over alone`;
      // After this the gateway holds the keys, connections and cached state of every one of these organizations.
      const use = (): Promise<void> => sendAsOthers(beside, PART, 'hi');
      for (const size of SIZES) rows.push(await comparePair(run, [plain, beside], { size, what: what(size), use }));
      return rows;
    } finally {
      await Promise.all([plain.stop(), beside.stop()]);
    }
  },
};
