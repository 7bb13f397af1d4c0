// The platform's guardrail policies: those that screen everybody (`floor`), and those assigned to organizations.

import { call } from '../../api.ts';
import { Badge } from '../../parts/figures.tsx';
import { ManagedList } from '../../parts/managed-list.tsx';
import type { Column } from '../../parts/table.tsx';
import { EditButton } from '../../parts/versions.tsx';
import { type GuardrailPolicy, PLATFORM_OWNED } from '../../state/policies.ts';
import { GuardrailPage, POLICY_COLUMNS } from './guardrail-page.tsx';

const COLUMNS: readonly Column<GuardrailPolicy>[] = [
  ...POLICY_COLUMNS,
  {
    name: 'Screens',
    raw: ({ floor }) => (floor ? 'everybody' : 'whom it is assigned to'),
    show: ({ floor }) => (floor ? <Badge tone="good">everybody</Badge> : 'whom it is assigned to'),
  },
];

export function PlatformGuardrails() {
  return (
    <GuardrailPage
      owner={PLATFORM_OWNED}
      title="Platform guardrails"
      lead="What holds for all organizations (“floor”), or for those to which it is assigned. None can take it away."
      commands={['tollgate guardrail list']}
      list={(policies) => (
        <ManagedList
          title="Policies"
          load={policies}
          rowsOf={({ data }) => data}
          columns={COLUMNS}
          permission={PLATFORM_OWNED.permission}
          empty="The platform screens nobody. A policy with “floor”: true screens every organization."
          actions={({ name }) => <EditButton name={name} />}
          removal={{
            verb: 'Remove',
            ask: ({ name }) => `The policy “${name}” is removed. One that screens somebody is not.`,
            send: ({ name, version }) =>
              call('delete', PLATFORM_OWNED.paths.policy, { pathParameters: { policyName: name }, query: { version } }),
          }}
        />
      )}
    />
  );
}
