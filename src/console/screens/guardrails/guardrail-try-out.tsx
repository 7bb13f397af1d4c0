// Shows what a guardrail policy, or its draft, would find in a text. Nothing is stored, sent on or charged.

import { useState } from 'preact/hooks';
import { type AnswerOf, type BodyOf, call } from '../../api.ts';
import { markedPieces } from '../../logic/marked-pieces.ts';
import { Badge } from '../../parts/figures.tsx';
import { FormRefusal, SelectField, useSubmit } from '../../parts/form.tsx';
import { Card } from '../../parts/page.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { useDraft } from '../../state/drafts.ts';
import type { GuardrailDefinition as Definition, GuardrailOwner } from '../../state/policies.ts';

type TestPath = GuardrailOwner['paths']['test'];
type Tried = AnswerOf<TestPath, 'post'>;

interface TryOutProps {
  readonly title: string;
  readonly owner: GuardrailOwner;
  /** The policies to choose from if `definition` is undefined. */
  readonly policies: readonly { readonly name: string }[];
  /** The draft to try; null while its text cannot be read. */
  readonly definition?: Definition | null;
}

export function TryOut({ title, owner, policies, definition }: TryOutProps) {
  const [text, setText] = useState('');
  const [name, setName] = useState('');
  const [tried, setTried] = useState<{ readonly text: string; readonly answer: Tried } | null>(null);
  const { isBusy, refusal, run } = useSubmit<Tried>((answer) => setTried({ text, answer }));
  useDraft(text !== '' && text !== tried?.text);
  const policy = name || policies[0]?.name || '';
  const tryOn = definition === undefined ? { policy } : { definition: definition ?? undefined };
  const isReady = text !== '' && (definition === undefined ? policy !== '' : definition !== null);
  const body = { text, ...tryOn } as BodyOf<TestPath, 'post'>;
  return (
    <Card title={title} note="Nothing is stored, sent on or charged. External detectors are not asked.">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => call('post', owner.paths.test, { body }));
        }}
      >
        <label>
          <span class="unseen">Text to scan</span>
          <textarea
            rows={3}
            value={text}
            placeholder="Write to ada@example.com about card 4111 1111 1111 1111"
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <div class="filters try">
          {definition === undefined && (
            <SelectField label="Policy" value={policy} onValue={setName} options={policies.map((one) => one.name)} />
          )}
          <button type="submit" disabled={isBusy || !isReady}>
            Scan
          </button>
        </div>
      </form>
      <FormRefusal refusal={refusal} />
      {tried !== null && <Findings tried={tried} />}
    </Card>
  );
}

function Findings({ tried: { text, answer } }: { readonly tried: { readonly text: string; readonly answer: Tried } }) {
  const { findings } = answer.data;
  const columns: Column<(typeof findings)[number]>[] = [
    { name: 'Entity', raw: ({ entity }) => entity },
    { name: 'Rule', raw: ({ policy, rule }) => `${policy} / ${rule}` },
    {
      name: 'Action',
      raw: ({ action }) => action,
      show: ({ action }) => <Badge tone={action === 'block' ? 'bad' : 'warn'}>{action}</Badge>,
    },
  ];
  return (
    <div aria-live="polite">
      <p class="sample">
        {markedPieces(text, findings).map(({ piece, isFound }, index) =>
          isFound ? (
            <mark key={index} class="found">
              {piece}
            </mark>
          ) : (
            piece
          ),
        )}
      </p>
      {findings.length === 0 ? (
        <p class="note">Nothing was found.</p>
      ) : (
        <Table caption="Findings" columns={columns} rows={findings} />
      )}
    </div>
  );
}
