// P18: CPU per request of an organization without screening, on an installation where many others have policies and
// send requests ÷ on one without any policy.

import { OWN_CLIENT, startProduct } from '../harness/product.ts';
import { comparePair } from './compare-pair.ts';
import type { Measure, Row } from './measure.ts';
import { OTHERS, otherOrganizations, sendAsOthers } from './other-organizations.ts';

const SIZES = ['1k', '16k'] as const;
const PART = 'guarded';
const TEXT = 'Write to ada@acme.test about DE89370400440532013000.';

/** The policies follow the organizations as the last lines of the configuration. */
const WITH_POLICIES = `${otherOrganizations(PART, () => '    guardrails: { policy: people }\n')}guardrails:
  - name: people
    rules:
      - { id: secrets, detect: [api_key, private_key, jwt, url_password], stage: both, action: block }
      - { id: people, detect: [email, phone, iban, card], stage: input, action: cloak }
`;

export const guardrailsBeside: Measure = {
  ids: ['P18'],
  async run(run) {
    if (run.product === null) return [];
    const without = await startProduct(run.direct.port, undefined, null, { ...OWN_CLIENT, name: 'no policy' });
    const beside = await startProduct(run.direct.port, undefined, null, {
      ...OWN_CLIENT,
      name: 'others have some',
      otherOrganizations: WITH_POLICIES,
    });
    if (without === null || beside === null) return [];
    try {
      await Promise.all([without.suspendJobs(), beside.suspendJobs()]);
      const rows: Row[] = [];
      // After this the gateway has compiled the policies, and has the organizations' principals and keys in memory.
      const use = (): Promise<void> => sendAsOthers(beside, PART, TEXT);
      for (const size of SIZES) {
        const what = `CPU of a ${size} request without a policy, beside ${OTHERS} organizations with one, over alone`;
        rows.push(await comparePair(run, [without, beside], { size, what, use }));
      }
      return rows;
    } finally {
      await Promise.all([without.stop(), beside.stop()]);
    }
  },
};
