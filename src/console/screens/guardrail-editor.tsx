// The editor of one guardrail policy of the organization: its definition, a try-out of the draft, its versions.

import { useState } from 'preact/hooks';
import { type BodyOf, call } from '../api.ts';
import { readDefinition, writeDefinition } from '../logic/definition-text.ts';
import { DefinitionField } from '../parts/definition-field.tsx';
import { Said, TextField, useSubmit } from '../parts/form.tsx';
import { RefusalNotice, Waiting } from '../parts/loaded.tsx';
import { Card } from '../parts/page.tsx';
import type { Column } from '../parts/table.tsx';
import { Versions } from '../parts/versions.tsx';
import { useRead } from '../state/load.ts';
import {
  type GuardrailDefinition as Definition,
  GUARDRAIL_POLICY,
  type GuardrailHistory as History,
} from '../state/policies.ts';
import { TryOut } from './guardrail-try-out.tsx';

const PATH = GUARDRAIL_POLICY;
type Version = History['versions'][number];

const COLUMNS: readonly Column<Version>[] = [
  { name: 'Rules', raw: ({ definition }) => definition.rules.map(({ id }) => id).join(', ') },
];

const SKELETON = {
  rules: [{ id: 'mail', detect: ['email'], stage: 'input', action: 'mask' }],
} as unknown as Definition;

interface EditorProps {
  /** null: a new one. */
  readonly name: string | null;
  readonly onPublished: (name: string) => void;
  readonly onClose: () => void;
}

export function GuardrailEditor({ name, onPublished, onClose }: EditorProps) {
  const load = useRead(name === null ? null : PATH, { at: { policyName: name ?? '' } });
  if (load.refusal !== null) return <RefusalNotice refusal={load.refusal} permission="org.admin" />;
  if (name !== null && load.data === null) return <Waiting />;
  const history = load.data?.data ?? null;
  // A version that is published is what the next one is made from.
  return (
    <Editing
      key={history?.version ?? 0}
      history={history}
      onPublished={(published) => {
        load.again();
        onPublished(published);
      }}
      onClose={onClose}
    />
  );
}

interface EditingProps {
  readonly history: History | null;
  readonly onPublished: (name: string) => void;
  readonly onClose: () => void;
}

function Editing({ history, onPublished, onClose }: EditingProps) {
  const [name, setName] = useState(history?.name ?? '');
  const begin = writeDefinition(history?.definition ?? SKELETON);
  const [text, setText] = useState(begin);
  const { isBusy, refusal, run } = useSubmit<unknown>(() => onPublished(name.trim()));
  const read = readDefinition<Definition>(text);
  const publish = (definition: Definition) => {
    const version = history === null ? {} : { version: history.version };
    const body = { ...definition, ...version } as unknown as BodyOf<typeof PATH, 'put'>;
    return call('put', PATH, { at: { policyName: name.trim() }, body });
  };
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
            if (read.ok) void run(() => publish(read.definition));
          }}
        >
          {history === null && (
            <TextField
              label="Name"
              value={name}
              onValue={setName}
              isRequired
              hint="Small letters, digits and dashes."
            />
          )}
          <DefinitionField label="Definition" text={text} onText={setText} problem={read.ok ? null : read.problem} />
          <Said refusal={refusal} />
          <div class="tools">
            <button
              type="submit"
              class="main"
              disabled={isBusy || !read.ok || name.trim() === '' || (history !== null && text === begin)}
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
      <TryOut title="Try the draft" policies={[]} definition={read.ok ? read.definition : null} />
      {history !== null && (
        <Versions history={history} columns={COLUMNS} onTake={(taken) => setText(writeDefinition(taken))} />
      )}
    </>
  );
}
