// The editor of a guardrail policy, an organization's or the platform's: its definition, a try-out of the draft,
// publishing, and its versions.

import { useState } from 'preact/hooks';
import { type BodyOf, call } from '../../api.ts';
import { readDefinition, writeDefinition } from '../../logic/definition-text.ts';
import { whole } from '../../logic/format.ts';
import { DefinitionField } from '../../parts/definition-field.tsx';
import { Confirm, FormRefusal, TextField, useSubmit } from '../../parts/form.tsx';
import { Loading, RefusalNotice } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { type Column, numberColumn } from '../../parts/table.tsx';
import { Changes, Versions } from '../../parts/versions.tsx';
import { useDraft } from '../../state/drafts.ts';
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

const NAME_HINT = 'Small letters, digits and dashes.';

interface EditorProps {
  readonly owner: GuardrailOwner;
  /** null for a new policy. */
  readonly name: string | null;
  readonly onPublished: (name: string) => void;
  readonly onClose: () => void;
}

export function GuardrailEditor({ owner, name, onPublished, onClose }: EditorProps) {
  const load = useRead(name === null ? null : owner.paths.policy, { pathParameters: { policyName: name ?? '' } });
  if (load.refusal !== null) return <RefusalNotice refusal={load.refusal} permission={owner.permission} />;
  if (name !== null && load.data === null) return <Loading />;
  const history = load.data?.data ?? null;
  // With the key the editor starts anew from each version that is published.
  return (
    <Editing
      key={history?.version ?? 0}
      owner={owner}
      history={history}
      onPublished={(published) => {
        load.reload();
        onPublished(published);
      }}
      onClose={onClose}
    />
  );
}

interface EditingProps {
  readonly owner: GuardrailOwner;
  readonly history: History | null;
  readonly onPublished: (name: string) => void;
  readonly onClose: () => void;
}

function Editing({ owner, history, onPublished, onClose }: EditingProps) {
  const [name, setName] = useState(history?.name ?? '');
  const begin = writeDefinition(history?.definition ?? SKELETON);
  const [text, setText] = useState(begin);
  useDraft(text !== begin || name !== (history?.name ?? ''));
  const [isConfirming, setConfirming] = useState(false);
  const earlier = useSubmit<{ readonly data: History }>(({ data }) => setText(writeDefinition(data.definition)));
  const take = ({ version }: Version) =>
    void earlier.run(() =>
      call('get', owner.paths.policy, { pathParameters: { policyName: name }, query: { version } }),
    );
  const read = readDefinition<Definition>(text);
  return (
    <>
      <Card
        title={history === null ? 'New policy' : `Policy ${history.name}`}
        note="In JSON. A rule detects entities, words or patterns, and blocks, masks, cloaks or flags them."
        tools={
          <button type="button" class="quiet" onClick={onClose}>
            Close
          </button>
        }
      >
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setConfirming(read.ok);
          }}
        >
          {history === null && <TextField label="Name" value={name} onValue={setName} isRequired hint={NAME_HINT} />}
          <DefinitionField label="Definition" text={text} onText={setText} problem={read.ok ? null : read.problem} />
          <div class="tools">
            <button
              type="submit"
              class="main"
              disabled={!read.ok || name.trim() === '' || (history !== null && text === begin)}
            >
              Publish
            </button>
            {text !== begin && (
              <button type="button" onClick={() => setText(begin)}>
                Undo the changes
              </button>
            )}
            <span class="note">Gateways use it within a second, for whom it screens.</span>
          </div>
        </form>
      </Card>
      <TryOut title="Try the draft" owner={owner} policies={[]} definition={read.ok ? read.definition : null} />
      <FormRefusal refusal={earlier.refusal} />
      {history !== null && <Versions history={history} columns={COLUMNS} onTake={take} />}
      {isConfirming && read.ok && (
        <Confirm
          title="Publish?"
          verb="Publish"
          send={() => publish(owner, name.trim(), read.definition, history?.version ?? null)}
          onDone={() => onPublished(name.trim())}
          onClose={() => setConfirming(false)}
        >
          {effectOf(owner, history, read.definition)}
          {history !== null && <Changes before={history.definition} after={read.definition} />}
        </Confirm>
      )}
    </>
  );
}

function effectOf({ setBy }: GuardrailOwner, history: History | null, { floor }: Definition): string {
  if (setBy === 'platform' && floor === true) return 'It screens every organization within a second.';
  if (history !== null) return `Version ${history.version + 1} holds for whom it screens within a second.`;
  return setBy === 'platform'
    ? 'It screens nobody before it is assigned to an organization.'
    : 'It screens nobody before it is switched on.';
}

/** `version` is the one that the draft was made from. If somebody has published a newer one, the gateway says 409. */
function publish(owner: GuardrailOwner, policyName: string, definition: Definition, version: number | null) {
  const body = { ...definition, ...(version === null ? {} : { version }) };
  return call('put', owner.paths.policy, {
    pathParameters: { policyName },
    body: body as unknown as BodyOf<typeof owner.paths.policy, 'put'>,
  });
}
