// The guardrails of the organization: its own policies and the platform's, and which of them screen the whole
// organization.

import { call } from '../../api.ts';
import { Badge } from '../../parts/figures.tsx';
import { FormRefusal, useSubmit } from '../../parts/form.tsx';
import { ManagedList } from '../../parts/managed-list.tsx';
import type { Column } from '../../parts/table.tsx';
import { EditButton } from '../../parts/versions.tsx';
import { type Load, useRead } from '../../state/load.ts';
import { type GuardrailPolicies, type GuardrailPolicy, ORGANIZATION_OWNED } from '../../state/policies.ts';
import { tollgateCommands } from '../../state/session.ts';
import { GuardrailPage, POLICY_COLUMNS, policyRemoval } from './guardrail-page.tsx';

const ASSIGNMENTS = '/v1/admin/active-org/guardrails/assignments';

export function Guardrails() {
  return (
    <GuardrailPage
      owner={ORGANIZATION_OWNED}
      title="Guardrails"
      lead="What is blocked, masked, cloaked or flagged in requests and replies."
      commands={tollgateCommands('guardrail list')}
      list={(policies) => <PolicyList policies={policies} />}
    />
  );
}

/** The policies, with switches that let a policy screen everybody in the organization. */
function PolicyList({ policies }: { readonly policies: Load<GuardrailPolicies> }) {
  const assigned = useRead(ASSIGNMENTS);
  const { isBusy, refusal, run } = useSubmit<unknown>(() => assigned.reload());
  const everybody = assigned.data?.data.organization.policies ?? [];
  const floor = assigned.data?.data.floor ?? [];
  const byPlatform = assigned.data?.data.platform.policies ?? [];
  const isPlatforms = (name: string) => floor.includes(name) || byPlatform.includes(name);
  const toggle = (name: string) => {
    const names = everybody.includes(name) ? everybody.filter((one) => one !== name) : [...everybody, name];
    void run(() => call('put', ASSIGNMENTS, { body: { policies: names } }));
  };
  return (
    <>
      <FormRefusal refusal={refusal ?? assigned.refusal} />
      <ManagedList
        title="Policies"
        load={policies}
        rowsOf={({ data }) => data}
        columns={[...POLICY_COLUMNS, whomColumn(floor, byPlatform, everybody)]}
        permission={ORGANIZATION_OWNED.permission}
        empty="No policy yet. A new one screens nobody before it is switched on."
        actions={({ name, set_by: by }) => (
          <>
            {assigned.data !== null && !isPlatforms(name) && (
              <button type="button" class="small" disabled={isBusy || assigned.isLoading} onClick={() => toggle(name)}>
                {everybody.includes(name) ? 'Switch off' : 'Switch on'}
              </button>
            )}{' '}
            {by === 'organization' && <EditButton name={name} />}
          </>
        )}
        removal={{
          ...policyRemoval(ORGANIZATION_OWNED),
          isFor: ({ name, set_by: by }) => by === 'organization' && !everybody.includes(name),
        }}
      />
    </>
  );
}

/** Teams and keys can have further policies. The command and the API assign those; this column does not show them. */
function whomColumn(
  floor: readonly string[],
  byPlatform: readonly string[],
  everybody: readonly string[],
): Column<GuardrailPolicy> {
  const whom = (name: string): string => {
    if (floor.includes(name)) return 'everybody, the platform’s floor';
    if (byPlatform.includes(name)) return 'everybody, by the platform';
    return everybody.includes(name) ? 'everybody' : '';
  };
  return {
    name: 'Screens',
    raw: ({ name }) => whom(name),
    show: ({ name }) =>
      whom(name) === '' ? '–' : <Badge tone={everybody.includes(name) ? 'good' : 'plain'}>{whom(name)}</Badge>,
  };
}
