// The platform's guardrail policies: those that screen everybody (`floor`), and those that are assigned.

import { Badge } from '../../parts/figures.tsx';
import { ManagedList } from '../../parts/managed-list.tsx';
import type { Column } from '../../parts/table.tsx';
import { EditButton } from '../../parts/versions.tsx';
import { type GuardrailPolicy, PLATFORM_OWNED } from '../../state/policies.ts';
import { GuardrailPage, POLICY_COLUMNS, policyRemoval } from './guardrail-page.tsx';

const COLUMNS: readonly Column<GuardrailPolicy>[] = [
  ...POLICY_COLUMNS,
  {
    name: 'Screens',
    raw: ({ floor }) => (floor ? 'everybody' : 'those it is assigned to'),
    show: ({ floor }) => (floor ? <Badge tone="good">everybody</Badge> : 'those it is assigned to'),
  },
];

export function PlatformGuardrails() {
  return (
    <GuardrailPage
      owner={PLATFORM_OWNED}
      title="Platform guardrails"
      lead="Policies that screen everybody (“floor”), or whom they are assigned to. No organization can switch one off."
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
          removal={policyRemoval(PLATFORM_OWNED)}
        />
      )}
    />
  );
}
