// The editor of a guardrail policy, an organization's or the platform's: its definition, a try-out of the draft,
// publishing, and its versions.

import { type BodyOf, call } from '../../api.ts';
import { whole } from '../../logic/format.ts';
import { FormRefusal, useSubmit } from '../../parts/form.tsx';
import { PolicyEditor } from '../../parts/policy-editor.tsx';
import { type Column, numberColumn } from '../../parts/table.tsx';
import { Versions } from '../../parts/versions.tsx';
import { useRead } from '../../state/load.ts';
import {
  type GuardrailDefinition as Definition,
  type GuardrailOwner,
  type GuardrailHistory as History,
} from '../../state/policies.ts';
import { TryOut } from './guardrail-try-out.tsx';

type Version = History['versions'][number];

const COLUMNS: readonly Column<Version>[] = [numberColumn('Rules', ({ rule_count: count }) => count, whole)];

const SKELETON = {
  rules: [{ id: 'mail', detect: ['email'], stage: 'input', action: 'mask' }],
} as unknown as Definition;

interface EditorProps {
  readonly owner: GuardrailOwner;
  /** null for a new policy. */
  readonly name: string | null;
  readonly onNewVersion: () => void;
  readonly onClose: () => void;
}

export function GuardrailEditor({ owner, name, onNewVersion, onClose }: EditorProps) {
  const { paths, permission } = owner;
  const load = useRead(name === null ? null : paths.policy, { pathParameters: { policyName: name ?? '' } });
  return (
    <PolicyEditor<Definition, History>
      load={load}
      isNew={name === null}
      permission={permission}
      skeleton={SKELETON}
      note="In JSON. A rule detects entities, words or patterns, and blocks, masks, cloaks or flags them."
      hintOf={() => 'Gateways use a published version within a second.'}
      effectOf={({ policy }, definition) => effectOf(owner, policy, definition)}
      publish={(policyName, definition, base) =>
        call('put', paths.policy, {
          pathParameters: { policyName },
          body: { ...definition, ...base } as unknown as BodyOf<typeof paths.policy, 'put'>,
        })
      }
      onNewVersion={onNewVersion}
      onClose={onClose}
    >
      {(draft) => (
        <>
          <TryOut title="Try the draft" owner={owner} policies={[]} definition={draft.definition} />
          {draft.policy !== null && <LoadedVersions owner={owner} policy={draft.policy} onTake={draft.setDefinition} />}
        </>
      )}
    </PolicyEditor>
  );
}

interface VersionsProps {
  readonly owner: GuardrailOwner;
  readonly policy: History;
  readonly onTake: (definition: Definition) => void;
}

/** The history has no definitions of earlier versions, so one that is taken into the editor is loaded first. */
function LoadedVersions({ owner, policy, onTake }: VersionsProps) {
  const loading = useSubmit<{ readonly data: History }>(({ data }) => onTake(data.definition));
  const take = ({ version }: Version) => {
    const pathParameters = { policyName: policy.name };
    void loading.run(() => call('get', owner.paths.policy, { pathParameters, query: { version } }));
  };
  return (
    <>
      <FormRefusal refusal={loading.refusal} />
      <Versions history={policy} columns={COLUMNS} onTake={take} />
    </>
  );
}

function effectOf({ setBy }: GuardrailOwner, policy: History | null, { floor }: Definition): string {
  if (setBy === 'platform' && floor === true) return 'It screens every organization within a second.';
  if (policy !== null) return `Version ${policy.version + 1} takes effect within a second for whom the policy screens.`;
  return setBy === 'platform'
    ? 'It screens nobody before it is assigned.'
    : 'It screens nobody before it is switched on.';
}
