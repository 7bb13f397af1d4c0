// The list of routing policies with their tiers, and the editor of the one that is open.

import { type AnswerOf, call, curlCommand } from '../../api.ts';
import { moment, whole } from '../../logic/format.ts';
import { Badge } from '../../parts/figures.tsx';
import { ManagedList } from '../../parts/managed-list.tsx';
import { Page } from '../../parts/page.tsx';
import { type Column, numberColumn } from '../../parts/table.tsx';
import { params, setParams } from '../../state/address.ts';
import { mayLeave } from '../../state/drafts.ts';
import { useRead } from '../../state/load.ts';
import { autoModel } from '../../state/session.ts';
import { zone } from '../../state/view.ts';
import { Adder } from '../people.tsx';
import { PolicyEditor } from './policy-editor.tsx';

const PATH = '/v1/admin/routing/policies';
type Policy = AnswerOf<typeof PATH>['data'][number];

/** The value in the address, instead of a policy's name, that opens a new policy. No policy can have this name. */
const NEW = '+';

const COLUMNS: readonly Column<Policy>[] = [
  {
    name: 'Policy',
    raw: ({ name }) => name,
    show: ({ name, version, created_at: at }) => (
      <>
        <span class="cell-main">{name}</span>
        <span class="note">
          version {version}, {moment(at, zone.value, false)}
        </span>
      </>
    ),
  },
  {
    name: 'Tiers, the cheapest first',
    raw: ({ definition }) => definition.tiers.map(({ name }) => name).join(' '),
    show: ({ definition }) => (
      <ol>
        {definition.tiers.map(({ name, models }) => (
          <li key={name}>
            <Badge>{name}</Badge> {models.map(({ id }) => id).join(', ')}
          </li>
        ))}
      </ol>
    ),
  },
  { name: 'Classifier', raw: ({ definition }) => definition.classifier.model, isExtra: true },
  {
    name: 'Floor',
    raw: ({ definition }) => definition.classifier.confidence_floor ?? null,
    show: ({ definition }) => definition.classifier.confidence_floor ?? '–',
    isNumber: true,
    isExtra: true,
  },
  numberColumn('Organizations', ({ organizations }) => organizations, whole),
];

export function Policies() {
  const policies = useRead(PATH);
  const asked = params.value['policy'];
  const open = (name: string | null) => mayLeave() && setParams({ policy: name });
  return (
    <Page
      title="Routing policies"
      lead={`Which models serve ${autoModel()}. Every change makes a version, which each record names.`}
      tools={<Adder isMain name="New policy" onClick={() => open(NEW)} />}
      commands={[curlCommand(PATH), 'tollgate routing replay --policy FILE --days 7', 'tollgate apply FILE']}
    >
      <ManagedList
        title="Policies"
        load={policies}
        rowsOf={({ data }) => data}
        columns={COLUMNS}
        permission="platform.admin"
        empty={`No policy: ${autoModel()} is an unknown model.`}
        actions={({ name }) => (
          <button type="button" class="small" aria-pressed={name === asked} onClick={() => open(name)}>
            Edit
          </button>
        )}
        removal={{
          verb: 'Remove',
          ask: ({ name }) => `The policy “${name}” is removed; its versions stay for the records that name them.`,
          send: ({ name, version }) =>
            call('delete', `${PATH}/{policyName}`, { pathParameters: { policyName: name }, query: { version } }),
          isFor: ({ organizations }) => organizations === 0,
        }}
      />
      {asked !== undefined && policies.data !== null && (
        <PolicyEditor
          key={asked}
          name={asked === NEW ? null : asked}
          template={policies.data.data[0]?.definition ?? null}
          onPublished={(name) => {
            policies.reload();
            setParams({ policy: name });
          }}
          onClose={() => open(null)}
        />
      )}
    </Page>
  );
}
